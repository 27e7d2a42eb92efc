import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt } from '../errors.ts'
import type { Frame } from '../../db/crashes.ts'
import type { Place } from './traces/trace.ts'

const MAX_LINES = 200
const MAX_FRAMES = 50
const MAX_LINE_CHARS = 2000
/** Where Deno keeps packages. */
const OF_DENO = /\/deno\/(?:npm|remote)\//
/** Where our own code is that runs in a worker. */
const OWN_FOLDER = fileURLToPath(new URL('../../dist/', import.meta.url))

/**
 * Reads V8's text form of a stack, innermost frame first. Lines that are no frames are passed over.
 * @param options `root`: the release's folder
 */
export function parseStack (stack: string | null | undefined, { root }: { root: string | null }): Frame[] {
  if (!stack) return []
  const lines = stack.split('\n', MAX_LINES).map((line) => line.slice(0, MAX_LINE_CHARS))
  const places = lines.map(parseLine).filter((place) => place !== null)
  const syntax = parseSyntax(lines)
  return [...(syntax ? [syntax] : []), ...places].slice(0, MAX_FRAMES).map((place) => toFrame(place, root))
}

export function toFrame (
  place: { function: string | null, file: string | null, line: number | null, column: number | null },
  root: string | null
): Frame {
  const file = place.file === null ? null : localPath(place.file)
  const isInApp = file !== null && path.isAbsolute(file) && !file.split(path.sep).includes('node_modules') &&
    !file.startsWith(OWN_FOLDER) && !OF_DENO.test(file)
  return { ...place, file: withinRoot(file, root), isInApp }
}

/** `place`: of another language */
export function placedIn ({ isOwn, file, ...place }: Place, root: string | null): Frame {
  return { ...place, file: withinRoot(file, root), isInApp: isOwn }
}

function parseLine (text: string) {
  const line = text.trim()
  if (!line.startsWith('at ')) return null
  const call = line.slice(3).replace(/^async /, '')
  const open = call.endsWith(')') ? call.lastIndexOf(' (') : -1
  const place = parsePlace(open === -1 ? call : call.slice(open + 2, -1))
  const name = open === -1 ? null : call.slice(0, open).replace(/ \[as [^\]]*\]$/, '')
  if (place === null) return { function: name ?? call, file: null, line: null, column: null }
  return { function: name, ...place }
}

/** `text`: `file:line:column` */
function parsePlace (text: string) {
  const [, file, line, column] = /^([^()]+):(\d{1,9}):(\d{1,9})$/.exec(text) ?? []
  return file === undefined ? null : { file, line: Number(line), column: Number(column) }
}

/** A file that cannot be parsed calls nothing: it is named on the first line alone. */
function parseSyntax ([first]: string[]) {
  const [, file, line] = /^((?:file:\/\/)?\/[^()]*):(\d{1,9})$/.exec(first) ?? []
  return file === undefined ? null : { function: null, file, line: Number(line), column: null }
}

function localPath (file: string) {
  if (!file.startsWith('file:')) return file
  return attempt(() => fileURLToPath(file.replace(/[?#].*$/, '')), file)
}

/** @returns the path from there, if it is below */
function withinRoot (file: string | null, root: string | null): string | null {
  return file !== null && root !== null && file.startsWith(root + path.sep) ? file.slice(root.length + 1) : file
}
