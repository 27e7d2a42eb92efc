import { attempt } from '../errors.ts'
import { readable } from '../../public/readable-text.ts'
import { createMergedProfile, keyOf, type CallFrame } from './merged-profile.ts'

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
  /** how often it was seen in a line */
  ticks: ReadonlyMap<number, number>,
  parent: Frame | null,
  /** by time, most first */
  children: Frame[]
}
/** `line`: with the most time; null: not known */
type HotFunction = Pick<Frame, 'key' | 'name' | 'place' | 'path' | 'owner' | 'selfMs' | 'totalMs'> & {
  line: number | null
}
export type CallTree = {
  root: Frame,
  /** in which nothing ran */
  idleMs: number,
  /** by their own time, most first */
  functions: HotFunction[]
}

const MAX_NAME_CHARS = 200
const MAX_PLACE_CHARS = 400
const IDLE = '(idle)'
const PACKAGE = /[\\/]node_modules[\\/]/

/**
 * `profile`: as V8 writes it (.cpuprofile); `folder`: of the app, which is left out of the places.
 * @throws {TypeError} it is no CPU profile
 */
export function toCallTree (profile: unknown, { folder = '' }: { folder?: string } = {}): CallTree {
  const { nodes, samples } = Object(profile)
  if (!Array.isArray(nodes) || nodes.length === 0 || !Array.isArray(samples))
    throw new TypeError('This file is no CPU profile.')
  const merged = createMergedProfile()
  merged.add(profile)
  const root = frameOf('', { name: 'All', place: '', path: '', owner: 'engine' }, null)
  const frames = new Map([[merged.all[0].id, root]])
  let idleMs = 0
  for (const { id, us, ticks, below } of merged.all) {
    const frame = frames.get(id)
    if (!frame) continue
    frame.selfMs = us / 1000
    frame.ticks = ticks
    for (const child of below.values()) {
      if (child.frame.functionName === IDLE) idleMs += child.us / 1000
      else frames.set(child.id, frameOf(keyOf(child.frame), describeFrame(child.frame, folder), frame))
    }
  }
  const all = [...frames.values()]
  for (const frame of all.reverse()) {
    frame.totalMs += frame.selfMs
    if (frame.parent) frame.parent.totalMs += frame.totalMs
    frame.parent?.children.push(frame)
    frame.children.sort((a, b) => b.totalMs - a.totalMs)
  }
  return { root, idleMs, functions: functionsOf(all.reverse()) }
}

function frameOf (key: string, about: Pick<Frame, 'name' | 'place' | 'path' | 'owner'>, parent: Frame | null): Frame {
  return { key, ...about, selfMs: 0, totalMs: 0, ticks: new Map(), parent, children: [] }
}

function describeFrame ({ functionName, url, lineNumber }: CallFrame,
  folder: string): Pick<Frame, 'name' | 'place' | 'path' | 'owner'>
{
  const encoded = url.slice('file://'.length)
  const file = url.startsWith('file://') ? attempt(() => decodeURIComponent(encoded), encoded) : url
  // V8 counts from 0.
  const path = file === '' || !(lineNumber >= 0) ? file : `${file}:${lineNumber + 1}`
  const place = folder !== '' && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path
  const name = readable(functionName.slice(0, MAX_NAME_CHARS)) || '(anonymous)'
  return { name, place: readable(place.slice(-MAX_PLACE_CHARS)), path: readable(path.slice(-MAX_PLACE_CHARS)),
    owner: ownerOf(url) }
}

function ownerOf (url: string): Frame['owner'] {
  if (url === '') return 'engine'
  if (url.startsWith('node:')) return 'node'
  return PACKAGE.test(url) ? 'package' : 'app'
}

/** `frames`: the root first */
function functionsOf (frames: Frame[]): HotFunction[] {
  const functions: Map<string, HotFunction & { lines: Map<number, number> }> = new Map()
  for (const { key, name, place, path, owner, selfMs, totalMs, ticks, parent } of frames.slice(1)) {
    const known = functions.get(key) ??
      { key, name, place, path, owner, selfMs: 0, totalMs: 0, line: null, lines: new Map() }
    known.selfMs += selfMs
    // The time of a recursive call counts once.
    if (!isBelow(parent, key)) known.totalMs += totalMs
    for (const [line, count] of ticks) known.lines.set(line, (known.lines.get(line) ?? 0) + count)
    functions.set(key, known)
  }
  return [...functions.values()].map(({ lines, ...each }) => ({ ...each,
    line: [...lines].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null })
  ).sort((a, b) => b.selfMs - a.selfMs || b.totalMs - a.totalMs)
}

function isBelow (frame: Frame | null, key: string) {
  for (let each = frame; each; each = each.parent) if (each.key === key) return true
  return false
}
