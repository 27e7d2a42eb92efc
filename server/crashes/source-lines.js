import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createSourceMaps, realPathInside } from './source-maps.js'
import { parseStack } from './stack-frames.js'

/** @typedef {import('./stack-frames.js').Frame} Frame */
/** @typedef {{ number: number, text: string }[]} Lines  `number`: from 1 */

const AROUND = 3
const MAX_FRAMES = 6
const MAX_BYTES = 1024 * 1024
const MAX_LINE_CHARS = 300
const MAX_KEPT = 50
/** A stack is text of the app and may name any file: only files of code are read. */
const CODE = /^(?!.*(?:^|[\\/])\.).+\.(?:[cm]?[jt]s|[jt]sx|vue|svelte|coffee|py|go|java|kts?|scala|groovy|rs|rb|php|c|cc|cpp|cxx|h|hpp|cs|fs)$/i
/** Java tells the package of a file, not its folder. */
const OF_PACKAGES = /\.(?:java|kt|scala|groovy)$/
const SOURCE_FOLDERS = ['src/main/java', 'src/main/kotlin', 'src/main/scala', 'src/main/groovy', 'src']

/**
 * Reads the lines around the app's own frames, from the files of the release that crashed or from its source maps. It reads
 * nothing outside of the release's folder, and no file that has changed since the crash.
 */
export function createSourceLines () {
  const { sourceOf } = createSourceMaps()
  /** @type {Map<string, Lines>} by file, time of change and line, oldest first */
  const known = new Map()

  /**
   * @param {{ at: string, stack: string | null, frames: Frame[] }} crash @param {string | null} root the release's folder
   * @returns {(Lines | null)[]} one for each frame; null: unknown
   */
  return function around ({ at, stack, frames }, root) {
    if (root === null) return frames.map(() => null)
    const own = frames.filter(({ isInApp }) => isInApp).slice(0, MAX_FRAMES)
    return frames.map((frame) => own.includes(frame) ? linesOf(frame, { root, stack, crashedMs: Date.parse(at) }) : null)
  }

  /** @param {Frame} frame @param {{ root: string, stack: string | null, crashedMs: number }} place @returns {Lines | null} */
  function linesOf ({ file, line }, { root, stack, crashedMs }) {
    if (file === null || line === null || !CODE.test(file)) return null
    for (const folder of OF_PACKAGES.test(file) ? SOURCE_FOLDERS : []) {
      const lines = attemptRead(() => fromFile(realPathInside(root, path.resolve(root, folder, file)), line, crashedMs))
      if (lines) return lines
    }
    return attemptRead(() => fromFile(realPathInside(root, path.resolve(root, file)), line, crashedMs)) ??
      attemptRead(() => fromMap({ file, line }, { root, stack, crashedMs }))
  }

  /** @param {string} file @param {number} line @param {number} crashedMs */
  function fromFile (file, line, crashedMs) {
    // The flags keep the master from waiting for a pipe, and from following a link that was made meanwhile.
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    try {
      const stats = fstatSync(descriptor)
      if (!stats.isFile() || stats.size > MAX_BYTES || stats.ctimeMs > crashedMs) return null
      const key = `${file} ${stats.ctimeMs} ${line}`
      const lines = known.get(key) ?? excerptOf(readFileSync(descriptor, 'utf8'), line)
      if (lines) keepLines(key, lines)
      return lines
    } finally {
      closeSync(descriptor)
    }
  }

  /** Some sources are only in the maps. @param {{ file: string, line: number }} frame @param {{ root: string, stack: string | null, crashedMs: number }} place */
  function fromMap ({ file, line }, { root, stack, crashedMs }) {
    for (const frame of parseStack(stack, { root }).filter(({ isInApp }) => isInApp)) {
      const source = sourceOf(frame, root, crashedMs)
      if (source?.file === file && source.line === line) return excerptOf(source.text, line)
    }
    return null
  }

  /** @param {string} key @param {Lines} lines */
  function keepLines (key, lines) {
    known.set(key, lines)
    const [oldest] = known.keys()
    if (known.size > MAX_KEPT) known.delete(oldest)
  }
}

/** @param {string} text @param {number} line @returns {Lines | null} null: the text has no such line */
function excerptOf (text, line) {
  const lines = text.split(/\r?\n/)
  if (line > lines.length) return null
  const first = Math.max(1, line - AROUND)
  return lines.slice(first - 1, line + AROUND).map((text, index) => ({ number: first + index, text: clipLine(text) }))
}

/** @param {string} text */
function clipLine (text) {
  return text.length > MAX_LINE_CHARS ? `${text.slice(0, MAX_LINE_CHARS)} …` : text
}

/** @template T @param {() => T} read @returns {T | null} */
function attemptRead (read) {
  try {
    return read()
  } catch {
    // The file is gone or not readable: the frame is shown without its lines.
    return null
  }
}
