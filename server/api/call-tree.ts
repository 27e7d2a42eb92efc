import { readable } from '../../public/readable-text.ts'

/**
 * Where the time of a CPU profile went, as a tree of calls. The profiled process wrote it, so nothing in it is believed:
 * names may be anything, and the nodes need not be a tree.
 */

/** A function as it was called from its parent. */
export type Frame = {
  /** of the function, the same wherever it was called */
  key: string,
  name: string,
  /** file and line; empty for what is of V8 itself */
  place: string,
  /** the same with the folder of the app */
  path: string,
  owner: 'app' | 'package' | 'node' | 'engine',
  /** in the function itself */
  selfMs: number,
  /** with all that it called */
  totalMs: number,
  parent: Frame | null,
  /** by time, most first */
  children: Frame[]
}
type HotFunction = Pick<Frame, 'key' | 'name' | 'place' | 'path' | 'owner' | 'selfMs' | 'totalMs'>
export type CallTree = {
  root: Frame,
  /** in which nothing ran */
  idleMs: number,
  /** by their own time, most first */
  functions: HotFunction[]
}

/** V8 itself records no deeper stacks. */
const MAX_DEPTH = 300
const MAX_NAME_CHARS = 200
const MAX_PLACE_CHARS = 400
const IDLE = '(idle)'
const PACKAGE = /[\\/]node_modules[\\/]/

/**
 * `profile`: as V8 writes it (.cpuprofile); `folder`: of the app, which is left out of the places.
 * @throws {TypeError} it is no CPU profile
 */
export function toCallTree (profile: unknown, { folder = '' }: { folder?: string } = {}): CallTree {
  if (!isProfile(profile)) throw new TypeError('This file is no CPU profile.')
  const { nodes, root: start } = readNodes(profile)
  const selfUs = timesOf(profile)
  const root = frameOf('', { name: 'All', place: '', path: '', owner: 'engine' }, null)
  const frames = [root]
  /** children by key */
  const below: Map<Frame, Map<string, Frame>> = new Map()
  let idleUs = 0
  const seen = new Set([start])
  const waiting = [{ id: start, frame: root, depth: 0 }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { id, frame, depth } = next
    frame.selfMs += (selfUs.get(id) ?? 0) / 1000
    for (const child of nodes.get(id)?.children ?? []) {
      const node = nodes.get(child)
      // Each node counts once, as nodes may form a loop.
      if (!node || seen.has(child)) continue
      seen.add(child)
      if (node.callFrame.functionName === IDLE) idleUs += selfUs.get(child) ?? 0
      else waiting.push({ id: child, frame: depth >= MAX_DEPTH ? frame : frameBelow(frame, node.callFrame),
          depth: depth + 1 })
    }
  }
  addUp()
  return { root, idleMs: idleUs / 1000, functions: functionsOf(frames) }

  /** @returns the same for two nodes of one function */
  function frameBelow (parent: Frame, callFrame: CallFrame): Frame {
    const key = keyOf(callFrame)
    const siblings = below.get(parent) ?? new Map()
    const known = siblings.get(key)
    if (known) return known
    const frame = frameOf(key, describeFrame(callFrame, folder), parent)
    below.set(parent, siblings.set(key, frame))
    parent.children.push(frame)
    frames.push(frame)
    return frame
  }

  /** Parents come before their children. */
  function addUp () {
    for (let index = frames.length - 1; index >= 0; index--) {
      const frame = frames[index]
      frame.totalMs += frame.selfMs
      if (frame.parent) frame.parent.totalMs += frame.totalMs
      frame.children.sort((a, b) => b.totalMs - a.totalMs)
    }
  }
}

type CallFrame = { functionName: string, url: string, lineNumber: number, columnNumber: number }
type Node = { callFrame: CallFrame, children: unknown[] }
/** what of it is checked */
type Profile = { nodes: unknown[], samples: unknown[], timeDeltas?: unknown, startTime?: unknown, endTime?: unknown }

function isProfile (profile: unknown): profile is Profile {
  const { nodes, samples } = Object(profile)
  return Array.isArray(nodes) && nodes.length > 0 && Array.isArray(samples)
}

/** @returns by id */
function readNodes (profile: Profile): { nodes: Map<unknown, Node>, root: unknown } {
  const nodes: Map<unknown, Node> = new Map()
  for (const node of profile.nodes) {
    const { id, callFrame, children } = Object(node)
    const { functionName, url, lineNumber, columnNumber } = Object(callFrame)
    nodes.set(id, {
      callFrame: { functionName: String(functionName ?? ''), url: String(url ?? ''), lineNumber: Number(lineNumber),
        columnNumber: Number(columnNumber) },
      children: Array.isArray(children) ? children : []
    })
  }
  return { nodes, root: Object(profile.nodes[0]).id }
}

/** A sample holds until the next one. Returns µs by node. */
function timesOf ({ samples, timeDeltas, startTime, endTime }: Profile): Map<unknown, number> {
  const deltas = Array.isArray(timeDeltas) ? timeDeltas : []
  const times: Map<unknown, number> = new Map()
  let elapsed = microseconds(deltas[0])
  for (let index = 0; index < samples.length; index++) {
    const isLast = index === samples.length - 1
    const lasted = microseconds(isLast ? Number(endTime) - Number(startTime) - elapsed : deltas[index + 1])
    elapsed += lasted
    times.set(samples[index], (times.get(samples[index]) ?? 0) + lasted)
  }
  return times
}

/** The clock of a profile may go back a little. */
function microseconds (value: unknown) {
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(0, value) : 0
}

function frameOf (key: string, about: Pick<Frame, 'name' | 'place' | 'path' | 'owner'>, parent: Frame | null): Frame {
  return { key, ...about, selfMs: 0, totalMs: 0, parent, children: [] }
}

function keyOf ({ functionName, url, lineNumber, columnNumber }: CallFrame) {
  return JSON.stringify([functionName, url, lineNumber, columnNumber])
}

function describeFrame ({ functionName, url, lineNumber }: CallFrame,
  folder: string): Pick<Frame, 'name' | 'place' | 'path' | 'owner'>
{
  const file = url.startsWith('file://') ? decodePath(url.slice('file://'.length)) : url
  // V8 counts from 0.
  const path = file === '' || !(lineNumber >= 0) ? file : `${file}:${lineNumber + 1}`
  const place = folder !== '' && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path
  const name = readable(functionName.slice(0, MAX_NAME_CHARS)) || '(anonymous)'
  return { name, place: readable(place.slice(-MAX_PLACE_CHARS)), path: readable(path.slice(-MAX_PLACE_CHARS)),
    owner: ownerOf(url) }
}

function decodePath (path: string) {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function ownerOf (url: string): Frame['owner'] {
  if (url === '') return 'engine'
  if (url.startsWith('node:')) return 'node'
  return PACKAGE.test(url) ? 'package' : 'app'
}

/** `frames`: the root first */
function functionsOf (frames: Frame[]): HotFunction[] {
  const functions: Map<string, HotFunction> = new Map()
  for (const { key, name, place, path, owner, selfMs, totalMs, parent } of frames.slice(1)) {
    const known = functions.get(key) ?? { key, name, place, path, owner, selfMs: 0, totalMs: 0 }
    known.selfMs += selfMs
    // The time of a recursive call counts once.
    if (!isBelow(parent, key)) known.totalMs += totalMs
    functions.set(key, known)
  }
  return [...functions.values()].sort((a, b) => b.selfMs - a.selfMs || b.totalMs - a.totalMs)
}

function isBelow (frame: Frame | null, key: string) {
  for (let each = frame; each; each = each.parent) if (each.key === key) return true
  return false
}
