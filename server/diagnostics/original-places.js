import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * Puts the places of sources into a profile whose code was made from them, such as by TypeScript or a bundler.
 * @typedef {import('./merged-profile.js').Profile} Profile
 * @typedef {import('./merged-profile.js').CallFrame} CallFrame
 * @typedef {{ file: string, line: number, column: number, name: string | null }} Place  `file`: absolute; line and column from 1
 * @typedef {object} Places  by source maps; null: there is none for it
 * @property {(generated: { file: string, line: number, column: number }, root: string) => Place | null} placeOf
 * @property {(generated: { file: string, line: number }, root: string) => Place | null} lineOf  null too where the line has so much code that it tells nothing
 */

const PACKAGE = /[\\/]node_modules[\\/]/
/** A minifier made such a name, and its map may have the one that people gave. */
const SHORT_NAME = /^[\w$]{1,3}$/

/** @param {Profile} profile @param {string} root  the folder of the release @param {Places} places @returns {Profile} */
export function withOriginalPlaces (profile, root, places) {
  /** @type {Map<string, CallFrame | null>} by generated place: functions are called from many places */
  const known = new Map()
  // One file after the other, as few maps are kept.
  const ofApp = profile.nodes.filter(({ callFrame: { url } }) => url.startsWith('file://') || url.startsWith('/')).sort((one, other) => one.callFrame.url < other.callFrame.url ? -1 : 1)
  /** @type {Map<number, import('./merged-profile.js').Node>} */
  const moved = new Map()
  for (const node of ofApp) {
    const file = fileOf(node.callFrame.url)
    if (file === null || PACKAGE.test(file)) continue
    const key = JSON.stringify([file, node.callFrame.lineNumber, node.callFrame.columnNumber, node.callFrame.functionName])
    const frame = known.has(key) ? known.get(key) : originalOf(node.callFrame, file)
    known.set(key, frame ?? null)
    if (frame) moved.set(node.id, { ...node, callFrame: frame, positionTicks: ticksOf(node, file, frame) })
  }
  return moved.size === 0 ? profile : { ...profile, nodes: profile.nodes.map((node) => moved.get(node.id) ?? node) }

  /** @param {CallFrame} frame @param {string} file @returns {CallFrame | null} */
  function originalOf (frame, file) {
    // V8 counts from 0.
    const place = places.placeOf({ file, line: frame.lineNumber + 1, column: frame.columnNumber + 1 }, root)
    if (!place) return null
    const functionName = place.name && SHORT_NAME.test(frame.functionName) ? place.name : frame.functionName
    return { ...frame, functionName, url: pathToFileURL(place.file).href, lineNumber: place.line - 1, columnNumber: place.column - 1 }
  }

  /** @param {import('./merged-profile.js').Node} node @param {string} file @param {CallFrame} frame */
  function ticksOf ({ positionTicks = [] }, file, frame) {
    /** @type {Map<number, number>} */
    const ticks = new Map()
    for (const { line, ticks: count } of positionTicks) {
      const place = places.lineOf({ file, line }, root)
      // Code that was put into the function from another file has its line there.
      if (place && pathToFileURL(place.file).href === frame.url) ticks.set(place.line, (ticks.get(place.line) ?? 0) + count)
    }
    return [...ticks].map(([line, count]) => ({ line, ticks: count }))
  }
}

/** @param {string} url */
function fileOf (url) {
  try {
    return url.startsWith('/') ? url : fileURLToPath(url)
  } catch {
    return null
  }
}
