import { toCallTree, type Frame } from '../diagnostics/api-call-tree.ts'
import { folderOf } from '../diagnostics/api-hot-functions.ts'
import type { Window } from '../diagnostics/profiling.ts'

/**
 * What has kept the workers busy in a window of time, against what they ran before: for the first look at something
 * that went wrong.
 */
export type Deck = Pick<import('../deck.ts').Deck, 'profiling' | 'crashes' | 'releases'>
/** `percent`: of the time of a worker; `line`: its busiest */
export type Share = Pick<Frame, 'name' | 'place' | 'path' | 'owner'> & { key: string, line: number | null,
  percent: number }
type Ran = { name: string, place: string, owner: Frame['owner'], percent: number, beforePercent: number | null,
  line: number | null, source: { number: number, text: string }[] | null }

const MAX_FUNCTIONS = 5
/** Less of the time of a worker explains nothing. */
const MIN_PERCENT = 1
/** What is usual is read from so much before. */
const BEFORE_MS = 10 * 60_000
/** What V8 does by itself, and what it cannot tell. */
const NOT_NAMED = new Set(['(program)', '(root)'])

/** @returns `functions`: those first that got more of the time, with what Node.js and V8 did for them */
export async function readWhatRan (deck: Deck,
  window: Window & { since: number }
): Promise<{ slices: number, busyPercent: number, beforePercent: number | null, functions: Ran[] }> {
  const during = await sharesOf(deck, window)
  const before = await sharesOf(deck, { ...window, since: window.since - BEFORE_MS, until: window.since })
  const isKnown = before.slices.length > 0
  const ranked = [...during.shares.values()].filter(({ percent }) => percent >= MIN_PERCENT).map((each) => ({ ...each,
    beforePercent: isKnown ? before.shares.get(each.key)?.percent ?? 0 : null })
  ).sort((one, other) => moreOf(other) - moreOf(one)).slice(0, MAX_FUNCTIONS)
  return { slices: during.slices.length, busyPercent: during.busyPercent,
    beforePercent: isKnown ? before.busyPercent : null,
    functions: ranked.map(({ name, place, owner, percent, beforePercent, path, line }) => ({ name, place, owner,
      percent, beforePercent, ...sourceOf(deck, { path, name, owner, line }, during) })
    ) }
}

function moreOf ({ percent, beforePercent }: { percent: number, beforePercent: number | null }) {
  return percent - (beforePercent ?? 0)
}

/** The functions of the app by their share, with what Node.js and V8 did for them. Returns `slices`: newest first. */
export async function sharesOf (deck: Pick<Deck, 'profiling' | 'releases'>, window: Window) {
  const { profile, slices } = await deck.profiling.read(window)
  const { release = '', at = 0 } = slices[0] ?? {}
  const { root, idleMs, functions } = toCallTree(profile, { folder: folderOf(deck, release) })
  const lines = new Map(functions.map(({ key, line }) => [key, line]))
  const allMs = root.totalMs + idleMs
  const shares: Map<string, Share> = new Map()
  const waiting = [{ frame: root, owner: root }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { frame } = next
    const owner = ownerOf(frame, next.owner)
    if (frame !== root && frame.selfMs > 0 && !NOT_NAMED.has(owner.name)) {
      // Another release may have it in another line.
      const key = JSON.stringify([owner.name, owner.place.replace(/:\d+$/, '')])
      const known = shares.get(key) ??
        { key, name: owner.name, place: owner.place, path: owner.path, owner: owner.owner,
          line: lines.get(owner.key) ?? null, percent: 0 }
      known.percent += 100 * frame.selfMs / allMs
      shares.set(key, known)
    }
    for (const child of frame.children) waiting.push({ frame: child, owner })
  }
  return { slices, busyPercent: allMs > 0 ? 100 * root.totalMs / allMs : 0, shares, release, at }
}

/** The code of the app that a frame runs for; without any, the package. */
function ownerOf (frame: Frame, above: Frame) {
  if (frame.owner === 'app') return frame
  if (above.owner === 'app') return above
  return frame.owner === 'package' || above.parent === null || above.owner !== 'package' ? frame : above
}

/** `line`: its busiest */
function sourceOf (deck: Deck,
  { path, name, owner, line: busiest }: { path: string, name: string, owner: string, line: number | null },
  { release, at }: { release: string, at: number })
{
  const line = busiest ?? Number(/:(\d+)$/.exec(path)?.[1] ?? NaN)
  if (owner !== 'app' || Number.isNaN(line)) return { line: null, source: null }
  const frame = { function: name, file: path.replace(/:\d+$/, ''), line, column: null, isInApp: true }
  return { line,
    source: deck.crashes.sourceLines({ at: new Date(at).toISOString(), release, stack: null, frames: [frame] })[0] ??
      null }
}
