/**
 * One CPU profile of many, as V8 writes it (.cpuprofile). Processes wrote them, so nothing in them is believed: the
 * nodes need not be a tree. Of releases in other folders the files count as those of one of them.
 */
export type CallFrame = { functionName: string, scriptId: string, url: string, lineNumber: number,
  columnNumber: number }
/** A function as it was called from its caller, in all profiles together. `us`: in the function itself; `ticks`: by line */
export type Merged = { id: number, frame: CallFrame, below: Map<string, Merged>, ticks: Map<number, number>,
  us: number }
export type Node = { id: number, callFrame: CallFrame, children: number[],
  positionTicks: { line: number, ticks: number }[] }
export type Profile = { nodes: Node[], samples: number[], timeDeltas: number[], startTime: number, endTime: number }

/** The tree of a profile that never ends must not fill the master. */
const MAX_NODES = 50_000
const MAX_DEPTH = 300

export function createMergedProfile () {
  const all: Merged[] = []
  const root = createNode({ functionName: '(root)', scriptId: '0', url: '', lineNumber: -1, columnNumber: -1 })

  return {
    /** Callers come before what they called; the root is the first. */
    all,

    /** `from`: where the files of its release are, which count as those in `to` */
    add (profile: unknown, { from, to }: { from: string | null, to: string | null } = { from: null, to: null }) {
      const { nodes, samples, timeDeltas, startTime, endTime } = Object(profile)
      if (![nodes, samples, timeDeltas].every(Array.isArray) || nodes.length === 0) return
      const known = new Map<unknown, Record<string, unknown>>(
        nodes.map((node: unknown) => [Object(node).id, Object(node)])
      )
      const times = timesOf(samples, timeDeltas, Number(endTime) - Number(startTime))
      const first = Object(nodes[0]).id
      const seen = new Set([first])
      const waiting = [{ id: first, into: root, depth: 0 }]
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        const { id, into, depth } = next
        const node = known.get(id)
        into.us += times.get(id) ?? 0
        addTicks(into.ticks, node?.positionTicks)
        for (const child of Array.isArray(node?.children) ? node.children : []) {
          const below = known.get(child)
          if (seen.has(child) || !below) continue
          seen.add(child)
          waiting.push({ id: child, into: depth < MAX_DEPTH ? childOf(into, frameOf(below.callFrame, from, to)) : into,
            depth: depth + 1 })
        }
      }
    },

    profile (): Profile {
      const timed = all.filter(({ us }) => us > 0)
      return {
        nodes: all.map(({ id, frame, below, ticks }) => ({ id, callFrame: frame,
          children: [...below.values()].map((child) => child.id),
          positionTicks: [...ticks].map(([line, count]) => ({ line, ticks: count })) })
        ),
        samples: timed.map(({ id }) => id),
        timeDeltas: [0, ...timed.slice(0, -1).map(({ us }) => us)],
        startTime: 0,
        endTime: timed.reduce((sum, { us }) => sum + us, 0)
      }
    }
  }

  function createNode (frame: CallFrame): Merged {
    const made = { id: all.length + 1, frame, below: new Map(), ticks: new Map(), us: 0 }
    all.push(made)
    return made
  }

  function childOf (parent: Merged, frame: CallFrame): Merged {
    const key = keyOf(frame)
    const known = parent.below.get(key)
    if (known) return known
    // Its time is its caller's then.
    if (all.length >= MAX_NODES) return parent
    const made = createNode(frame)
    parent.below.set(key, made)
    return made
  }
}

/** @returns the same for one function, wherever it was called */
export function keyOf ({ functionName, url, lineNumber, columnNumber }: CallFrame): string {
  return JSON.stringify([functionName, url, lineNumber, columnNumber])
}

function frameOf (callFrame: unknown, from: string | null, to: string | null): CallFrame {
  const { functionName, url, lineNumber, columnNumber } = Object(callFrame)
  return { functionName: String(functionName ?? ''), scriptId: '0', url: moved(String(url ?? ''), from, to),
    lineNumber: Number(lineNumber), columnNumber: Number(columnNumber) }
}

function moved (url: string, from: string | null, to: string | null) {
  if (from === null || to === null || from === to) return url
  for (const scheme of ['file://', ''])
    if (url.startsWith(`${scheme}${from}/`)) return `${scheme}${to}${url.slice(scheme.length + from.length)}`
  return url
}

/** A sample holds until the next one. @returns µs by node */
function timesOf (samples: unknown[], deltas: unknown[], wholeUs: number): Map<unknown, number> {
  const times: Map<unknown, number> = new Map()
  let elapsed = Number(deltas[0]) || 0
  samples.forEach((id, index) => {
    const us = index === samples.length - 1 ? wholeUs - elapsed : Number(deltas[index + 1])
    // The clock of a profile may go back a little.
    if (!(us > 0 && us < Infinity)) return
    elapsed += us
    times.set(id, (times.get(id) ?? 0) + us)
  })
  return times
}

function addTicks (ticks: Map<number, number>, more: unknown) {
  for (const each of Array.isArray(more) ? more : []) {
    const { line, ticks: count } = Object(each)
    if (Number.isSafeInteger(line) && line > 0 && count > 0 && count < 1e9)
      ticks.set(line, (ticks.get(line) ?? 0) + Number(count))
  }
}
