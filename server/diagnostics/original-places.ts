import { fileURLToPath, pathToFileURL } from 'node:url'
import { attempt } from '../errors.ts'
import type { CallFrame, Node, Profile } from './merged-profile.ts'

/** Puts the places of sources into a profile whose code was made from them, such as by TypeScript or a bundler. */
/** `file`: absolute; line and column from 1 */
type Place = { file: string, line: number, column: number, name: string | null }
/** by source maps; null: there is none for it */
export type Places = {
  placeOf: (generated: { file: string, line: number, column: number }, root: string) => Place | null,
  /** null too where the line has so much code that it tells nothing */
  lineOf: (generated: { file: string, line: number }, root: string) => Place | null
}

const PACKAGE = /[\\/]node_modules[\\/]/
/** A minifier made such a name, and its map may have the one that people gave. */
const SHORT_NAME = /^[\w$]{1,3}$/

/** `root`: the folder of the release */
export function withOriginalPlaces (profile: Profile, root: string, places: Places): Profile {
  /** by generated place: functions are called from many places */
  const known: Map<string, CallFrame | null> = new Map()
  // One file after the other, as few maps are kept.
  const ofApp = profile.nodes.filter(({ callFrame: { url } }) => url.startsWith('file://') || url.startsWith('/')).sort(
    (one, other) => one.callFrame.url < other.callFrame.url ? -1 : 1
  )
  const moved: Map<number, Node> = new Map()
  for (const node of ofApp) {
    const { url } = node.callFrame
    const file = attempt(() => url.startsWith('/') ? url : fileURLToPath(url))
    if (file === null || PACKAGE.test(file)) continue
    const key = JSON.stringify([file, node.callFrame.lineNumber, node.callFrame.columnNumber,
      node.callFrame.functionName])
    const frame = known.has(key) ? known.get(key) : originalOf(node.callFrame, file)
    known.set(key, frame ?? null)
    if (frame) moved.set(node.id, { ...node, callFrame: frame, positionTicks: ticksOf(node, file, frame) })
  }
  return moved.size === 0 ? profile : { ...profile, nodes: profile.nodes.map((node) => moved.get(node.id) ?? node) }

  function originalOf (frame: CallFrame, file: string): CallFrame | null {
    // V8 counts from 0.
    const place = places.placeOf({ file, line: frame.lineNumber + 1, column: frame.columnNumber + 1 }, root)
    if (!place) return null
    const functionName = place.name && SHORT_NAME.test(frame.functionName) ? place.name : frame.functionName
    return { ...frame, functionName, url: pathToFileURL(place.file).href, lineNumber: place.line - 1,
      columnNumber: place.column - 1 }
  }

  function ticksOf ({ positionTicks = [] }: Node, file: string, frame: CallFrame) {
    const ticks: Map<number, number> = new Map()
    for (const { line, ticks: count } of positionTicks) {
      const place = places.lineOf({ file, line }, root)
      // Code that was put into the function from another file has its line there.
      if (place && pathToFileURL(place.file).href === frame.url)
        ticks.set(place.line, (ticks.get(place.line) ?? 0) + count)
    }
    return [...ticks].map(([line, count]) => ({ line, ticks: count }))
  }
}
