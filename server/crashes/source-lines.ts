import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createSourceMaps, realPathInside } from './source-maps.ts'
import { parseStack } from './stack-frames.ts'
import { attempt } from '../errors.ts'
import type { Frame } from '../../db/crashes.ts'

/** `number`: from 1 */
export type Lines = { number: number, text: string }[]

const AROUND = 3
const MAX_FRAMES = 6
const MAX_BYTES = 1024 * 1024
const MAX_LINE_CHARS = 300
const MAX_KEPT = 50
/** A stack is text of the app and may name any file: only files of code are read. */
const CODE =
  /^(?!.*(?:^|[\\/])\.).+\.(?:[cm]?[jt]s|[jt]sx|vue|svelte|coffee|py|go|java|kts?|scala|groovy|rs|rb|php|c|cc|cpp|cxx|h|hpp|cs|fs)$/i
/** Java tells the package of a file, not its folder. */
const OF_PACKAGES = /\.(?:java|kt|scala|groovy)$/
const SOURCE_FOLDERS = ['src/main/java', 'src/main/kotlin', 'src/main/scala', 'src/main/groovy', 'src']

/**
 * Reads the lines around the app's own frames, from the files of the release that crashed or from its source maps. It
 * reads nothing outside of the release's folder, and no file that has changed since the crash.
 */
export function createSourceLines () {
  const { sourceOf } = createSourceMaps()
  /** by file, time of change and line, oldest first */
  const known: Map<string, Lines> = new Map()

  /** `root`: the release's folder. Returns one for each frame; null: unknown. */
  return function around ({ at, stack, frames }: { at: string, stack: string | null, frames: Frame[] },
    root: string | null): (Lines | null)[]
  {
    if (root === null) return frames.map(() => null)
    const own = frames.filter(({ isInApp }) => isInApp).slice(0, MAX_FRAMES)
    return frames.map((frame) =>
      own.includes(frame) ? linesOf(frame, { root, stack, crashedMs: Date.parse(at) }) : null
    )
  }

  function linesOf ({ file, line }: Frame,
    { root, stack, crashedMs }: { root: string, stack: string | null, crashedMs: number }): Lines | null
  {
    if (file === null || line === null || !CODE.test(file)) return null
    // A file that is gone or cannot be read leaves the frame without its lines.
    for (const folder of OF_PACKAGES.test(file) ? SOURCE_FOLDERS : []) {
      const lines = attempt(() => fromFile(realPathInside(root, path.resolve(root, folder, file)), line, crashedMs))
      if (lines) return lines
    }
    return attempt(() => fromFile(realPathInside(root, path.resolve(root, file)), line, crashedMs)) ??
      attempt(() => fromMap({ file, line }, { root, stack, crashedMs }))
  }

  function fromFile (file: string, line: number, crashedMs: number) {
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

  /** Some sources are only in the maps. */
  function fromMap ({ file, line }: { file: string, line: number },
    { root, stack, crashedMs }: { root: string, stack: string | null, crashedMs: number })
  {
    for (const frame of parseStack(stack, { root }).filter(({ isInApp }) => isInApp)) {
      const source = sourceOf(frame, root, crashedMs)
      if (source?.file === file && source.line === line) return excerptOf(source.text, line)
    }
    return null
  }

  function keepLines (key: string, lines: Lines) {
    known.set(key, lines)
    const [oldest] = known.keys()
    if (known.size > MAX_KEPT) known.delete(oldest)
  }
}

/** Null: the text has no such line */
function excerptOf (text: string, line: number): Lines | null {
  const lines = text.split(/\r?\n/)
  if (line > lines.length) return null
  const first = Math.max(1, line - AROUND)
  return lines.slice(first - 1, line + AROUND).map((text, index) => ({ number: first + index, text: clipLine(text) }))
}

function clipLine (text: string) {
  return text.length > MAX_LINE_CHARS ? `${text.slice(0, MAX_LINE_CHARS)} …` : text
}
