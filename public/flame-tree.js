import { readable } from './readable-text.js'

/**
 * Shows where the time of a CPU profile went, as a tree of calls. The profiled process wrote it, so nothing in it is believed:
 * names may be anything, and the nodes need not be a tree.
 * @typedef {object} Frame  a function as it was called from its parent
 * @property {string} key  of the function, the same wherever it was called
 * @property {string} name
 * @property {string} place  file and line; empty for what is of V8 itself
 * @property {string} path  the same with the folder of the app
 * @property {'app' | 'package' | 'node' | 'engine'} owner
 * @property {number} selfMs  in the function itself
 * @property {number} totalMs  with all that it called
 * @property {Frame | null} parent
 * @property {Frame[]} children  by time, most first
 *
 * @typedef {Pick<Frame, 'key' | 'name' | 'place' | 'path' | 'owner' | 'selfMs' | 'totalMs'>} HotFunction
 * @typedef {object} FlameTree
 * @property {Frame} root
 * @property {number} idleMs  in which nothing ran
 * @property {HotFunction[]} functions  by their own time, most first
 * @property {number} leftOut  frames that were too short to see
 */

/** A frame with a smaller share of the busy time is narrower than a pixel of a wide screen. */
const MIN_SHARE = 1 / 2000
/** V8 itself records no deeper stacks. */
const MAX_DEPTH = 300
const MAX_NAME_CHARS = 200
const MAX_PLACE_CHARS = 400
const IDLE = '(idle)'
const PACKAGE = /[\\/]node_modules[\\/]/

/**
 * @param {unknown} profile as V8 writes it (.cpuprofile)
 * @param {{ folder?: string, minShare?: number }} [options] `folder`: of the app, which is left out of the places
 * @returns {FlameTree}
 * @throws {TypeError} it is no CPU profile
 */
export function toFlameTree (profile, { folder = '', minShare = MIN_SHARE } = {}) {
  if (!isProfile(profile)) throw new TypeError('This file is no CPU profile.')
  const { nodes, root: start } = readNodes(profile)
  const selfUs = timesOf(profile)
  const root = frameOf('', { name: 'All', place: '', path: '', owner: 'engine' }, null)
  const frames = [root]
  /** @type {Map<Frame, Map<string, Frame>>} children by key */
  const below = new Map()
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
      else waiting.push({ id: child, frame: depth >= MAX_DEPTH ? frame : frameBelow(frame, node.callFrame), depth: depth + 1 })
    }
  }
  addUp()
  const functions = functionsOf(frames)
  return { root, idleMs: idleUs / 1000, functions, leftOut: pruneTree(root, root.totalMs * minShare) }

  /** @param {Frame} parent @param {CallFrame} callFrame @returns {Frame} the same for two nodes of one function */
  function frameBelow (parent, callFrame) {
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

/** @typedef {{ functionName: string, url: string, lineNumber: number, columnNumber: number }} CallFrame */
/** @typedef {{ callFrame: CallFrame, children: unknown[] }} Node */
/** @typedef {{ nodes: unknown[], samples: unknown[], timeDeltas?: unknown, startTime?: unknown, endTime?: unknown }} Profile  what of it is checked */

/** @param {unknown} profile @returns {profile is Profile} */
function isProfile (profile) {
  const { nodes, samples } = Object(profile)
  return Array.isArray(nodes) && nodes.length > 0 && Array.isArray(samples)
}

/** @param {Profile} profile @returns {{ nodes: Map<unknown, Node>, root: unknown }} by id */
function readNodes (profile) {
  /** @type {Map<unknown, Node>} */
  const nodes = new Map()
  for (const node of profile.nodes) {
    const { id, callFrame, children } = Object(node)
    const { functionName, url, lineNumber, columnNumber } = Object(callFrame)
    nodes.set(id, {
      callFrame: { functionName: String(functionName ?? ''), url: String(url ?? ''), lineNumber: Number(lineNumber), columnNumber: Number(columnNumber) },
      children: Array.isArray(children) ? children : []
    })
  }
  return { nodes, root: Object(profile.nodes[0]).id }
}

/** A sample holds until the next one. @param {Profile} profile @returns {Map<unknown, number>} µs by node */
function timesOf ({ samples, timeDeltas, startTime, endTime }) {
  const deltas = Array.isArray(timeDeltas) ? timeDeltas : []
  /** @type {Map<unknown, number>} */
  const times = new Map()
  let elapsed = microseconds(deltas[0])
  for (let index = 0; index < samples.length; index++) {
    const isLast = index === samples.length - 1
    const lasted = microseconds(isLast ? Number(endTime) - Number(startTime) - elapsed : deltas[index + 1])
    elapsed += lasted
    times.set(samples[index], (times.get(samples[index]) ?? 0) + lasted)
  }
  return times
}

/** The clock of a profile may go back a little. @param {unknown} value */
function microseconds (value) {
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(0, value) : 0
}

/** @param {string} key @param {Pick<Frame, 'name' | 'place' | 'path' | 'owner'>} about @param {Frame | null} parent @returns {Frame} */
function frameOf (key, about, parent) {
  return { key, ...about, selfMs: 0, totalMs: 0, parent, children: [] }
}

/** @param {CallFrame} callFrame */
function keyOf ({ functionName, url, lineNumber, columnNumber }) {
  return JSON.stringify([functionName, url, lineNumber, columnNumber])
}

/** @param {CallFrame} callFrame @param {string} folder @returns {Pick<Frame, 'name' | 'place' | 'path' | 'owner'>} */
function describeFrame ({ functionName, url, lineNumber }, folder) {
  const file = url.startsWith('file://') ? decodePath(url.slice('file://'.length)) : url
  // V8 counts from 0.
  const path = file === '' || !(lineNumber >= 0) ? file : `${file}:${lineNumber + 1}`
  const place = folder !== '' && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path
  const name = readable(functionName.slice(0, MAX_NAME_CHARS)) || '(anonymous)'
  return { name, place: readable(place.slice(-MAX_PLACE_CHARS)), path: readable(path.slice(-MAX_PLACE_CHARS)), owner: ownerOf(url) }
}

/** @param {string} path */
function decodePath (path) {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** @param {string} url @returns {Frame['owner']} */
function ownerOf (url) {
  if (url === '') return 'engine'
  if (url.startsWith('node:')) return 'node'
  return PACKAGE.test(url) ? 'package' : 'app'
}

/** @param {Frame[]} frames the root first @returns {HotFunction[]} */
function functionsOf (frames) {
  /** @type {Map<string, HotFunction>} */
  const functions = new Map()
  for (const { key, name, place, path, owner, selfMs, totalMs, parent } of frames.slice(1)) {
    const known = functions.get(key) ?? { key, name, place, path, owner, selfMs: 0, totalMs: 0 }
    known.selfMs += selfMs
    // The time of a recursive call counts once.
    if (!isBelow(parent, key)) known.totalMs += totalMs
    functions.set(key, known)
  }
  return [...functions.values()].sort((a, b) => b.selfMs - a.selfMs || b.totalMs - a.totalMs)
}

/** @param {Frame | null} frame @param {string} key */
function isBelow (frame, key) {
  for (let each = frame; each; each = each.parent) if (each.key === key) return true
  return false
}

/** @param {Frame} root @param {number} minMs @returns {number} how many frames are gone */
function pruneTree (root, minMs) {
  let leftOut = 0
  const waiting = [root]
  for (let frame = waiting.pop(); frame; frame = waiting.pop()) {
    const seen = frame.children.filter(({ totalMs }) => totalMs >= minMs && totalMs > 0)
    leftOut += frame.children.length - seen.length
    frame.children = seen
    waiting.push(...seen)
  }
  return leftOut
}
