import { readFileSync, realpathSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { toFrame } from './stack-frames.ts'
import type { Frame } from '../../db/crashes.ts'

/** `file`: absolute; `name`: of what is there, if the map has it */
type OriginalPlace = { file: string, line: number, column: number, name: string | null }

// A larger map would block the master's loop.
const MAX_BYTES = 2 * 1024 * 1024
const MAX_KEPT = 8
const MAX_FRAMES = 20
/** Files without a map, of which nothing but that is kept. */
const MAX_WITHOUT = 2000
/** With more on one line a tool has made it, and the line alone does not say which source it is of. */
const MAX_LINE_CHARS = 300

/**
 * Finds the original places of frames by the source maps of a release: inline, or in a file that the last
 * `sourceMappingURL` names. It reads nothing outside of the release's folder, and ignores a broken map.
 */
export function createSourceMaps () {
  /** by file and time of change, least recently used first */
  const maps: Map<string, SourceMap> = new Map()
  /** files that have no map, the same way */
  const without: Set<string> = new Set()

  return {
    /** `generated`: from 1 */
    placeOf: (generated: { file: string, line: number, column: number }, root: string): OriginalPlace | null =>
      placeOf(generated, root),

    /** Of a line as a whole. */
    lineOf: ({ file, line }: { file: string, line: number }, root: string): OriginalPlace | null =>
      placeOf({ file, line, column: Infinity }, root),

    /** `root`: the release's folder */
    original (frames: Frame[], root: string | null): Frame[] {
      if (root === null) return frames
      return frames.map((frame, index) =>
        index < MAX_FRAMES && frame.isInApp ? findOriginal(frame, root)?.frame ?? frame : frame
      )
    },

    /**
     * The text of a source, if the map has it. `frame`: of the file that ran; `unchangedMs`: the file must not have
     * changed since then.
     */
    sourceOf (frame: Frame, root: string, unchangedMs: number): { file: string | null, line: number | null,
      text: string } | null
    {
      const found = findOriginal(frame, root)
      if (!found || statSync(found.file).ctimeMs > unchangedMs) return null
      const { sources, sourcesContent } = found.map.payload
      const text = sourcesContent?.[sources.indexOf(found.source)]
      return typeof text === 'string' ? { file: found.frame.file, line: found.frame.line, text } : null
    }
  }

  function findOriginal (frame: Frame, root: string) {
    return attempt(() => {
      const { line, column } = frame
      if (frame.file === null || line === null || column === null) return null
      const file = realPathInside(root, path.resolve(root, frame.file))
      const map = mapOf(file, root)
      const entry = map?.findEntry(line - 1, column - 1)
      if (!map || !entry || !('originalSource' in entry) || typeof entry.originalSource !== 'string' ||
        !Number.isSafeInteger(entry.originalLine)) return null
      const source = entry.originalSource.replace(/^file:\/\//, '').slice(0, 1000)
      const place = { function: frame.function, file: path.resolve(path.dirname(file), source),
        line: entry.originalLine + 1, column: entry.originalColumn + 1 }
      return { file, map, entry, source: entry.originalSource, frame: { ...toFrame(place, root), isInApp: true } }
    })
  }

  function placeOf ({ file, line, column }: { file: string, line: number, column: number }, root: string):
    | OriginalPlace
    | null
  {
    const isLine = column === Infinity
    const found = findOriginal({ function: null, file, line, column: isLine ? Number.MAX_SAFE_INTEGER : column,
      isInApp: true }, root)
    if (!found || (isLine && (found.entry.generatedLine !== line - 1 || found.entry.generatedColumn > MAX_LINE_CHARS)))
      return null
    const { frame, entry } = found
    // Node's types leave out the name.
    const { name } = Object(entry)
    return { file: path.resolve(root, frame.file ?? ''), line: entry.originalLine + 1, column: entry.originalColumn + 1,
      name: typeof name === 'string' && name !== '' ? name : null }
  }

  function mapOf (file: string, root: string): SourceMap | null {
    const key = `${file} ${statSync(file).mtimeMs}`
    if (without.has(key)) return null
    const known = maps.get(key)
    const map = known === undefined ? loadMap(file, root) : known
    if (map === null) return keepWithout(key)
    maps.delete(key)
    maps.set(key, map)
    const [oldest] = maps.keys()
    if (maps.size > MAX_KEPT) maps.delete(oldest)
    return map
  }

  function keepWithout (key: string) {
    without.add(key)
    const [oldest] = without
    if (without.size > MAX_WITHOUT) without.delete(oldest)
    return null
  }
}

function loadMap (file: string, root: string): SourceMap | null {
  return attempt(() => {
    const source = readBounded(file)
    const url = /\n\/\/[#@] sourceMappingURL=(\S+)\s*$/.exec(source.slice(source.lastIndexOf('\n//')))?.[1]
    if (url === undefined) return null
    const inline = /^data:application\/json(?:;charset=[\w-]+)?;base64,(.*)$/.exec(url)
    if (inline) return new SourceMap(JSON.parse(Buffer.from(inline[1], 'base64').toString()))
    return new SourceMap(
      JSON.parse(readBounded(realPathInside(root, path.resolve(path.dirname(file), decodeURIComponent(url)))))
    )
  })
}

/** @throws where it lies outside, also by a link */
export function realPathInside (root: string, file: string): string {
  const real = realpathSync(file)
  if (!real.startsWith(realpathSync(root) + path.sep)) throw new Error('outside of the release')
  return real
}

function readBounded (file: string) {
  const stats = statSync(file)
  if (!stats.isFile() || stats.size > MAX_BYTES) throw new Error('no file of a size that is read')
  return readFileSync(file, 'utf8')
}
