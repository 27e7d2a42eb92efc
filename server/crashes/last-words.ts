import { stripVTControlCharacters } from 'node:util'
import { readDotnet } from './traces/dotnet.ts'
import { readGo } from './traces/go.ts'
import { readJava } from './traces/java.ts'
import { readJavaScript } from './traces/javascript.ts'
import { readNative } from './traces/native.ts'
import { readPhp } from './traces/php.ts'
import { readPython } from './traces/python.ts'
import { readRuby } from './traces/ruby.ts'
import { readRust } from './traces/rust.ts'
import type { Trace } from './traces/trace.ts'
import type { ExitNote } from './record.ts'

const READERS = [readPython, readGo, readJava, readRust, readJavaScript, readRuby, readPhp, readDotnet, readNative]
/** A program may log so many lines between its error and its end. An older error was one that it has lived with. */
const MAX_LINES_AFTER = 10
const MAX_TEXT_CHARS = 16_384
const MAX_NAME_CHARS = 200
const MAX_LINE_CHARS = 2000
const MAX_PLACES = 50
const MAX_CAUSES = 8
/** Among so many last lines is what has ended it. */
const LAST_LINES = 6
const MAX_SAID_CHARS = 300
/** A dot in a pattern does not match these, which takes some patterns very long to find out. */
const ENDS_NO_LINE = /[\r\u2028\u2029]/g
const OF_NODE = /^(\(Use `node --trace|\s+at .*node:internal\/|Node\.js v\d|\s+at .*\bnode:diagnostics_channel)/
const OF_STACK = /^\s+(?:at |from |\d+: |\.\.\. \d+ lines matching )|^#\d+ /
/** Go writes a function, and below it where that is. */
const PLACE_OF_GO = /^\t\S.*:\d+(?: \+0x[0-9a-f]+)?$/
/** The first line of an object, of a list, or of what an error has beside its message. */
const OPENS = /[{[(]$/
const CLOSES = /^\s*[}\])]+[,;]?$/
/** Among what an error has, what it was caused by. */
const OF_CAUSE = /^(?:\[cause\]: )?([\w.]*(?:Error|Exception)\b.*: \S.*|"?message"?: .*)/
const NAMES_A_FAULT =
  /\b(?:error|fatal|panic|emerg|fail(?:ed|ure)?|exception|abort(?:ed)?|can(?:'t|not| not)|could not|unable|refused|denied|invalid|missing|not found|no such|in use|not set|required|killed|segmentation fault)\b|(?:Error|Exception)\b/i

/** Reads from the last lines of a program why it has ended, as the runtime of its language writes it. */
export function noteFrom (written: string[]): ExitNote | null {
  const lines = written.map((line) =>
    stripVTControlCharacters(line.slice(0, MAX_LINE_CHARS)).replace(ENDS_NO_LINE, ' ').trimEnd()
  )
  const traces = READERS.map((read) => read(lines)).filter((trace) => trace !== null)
  const last = traces.reduce((latest: Trace | null, trace) => latest && latest.to >= trace.to ? latest : trace, null)
  if (!last || lines.slice(last.to).filter((line) => line !== '').length > MAX_LINES_AFTER) return null
  const { kind, errorName, errorMessage, from, to, stackTo = to, places, causes } = last
  return { kind, errorName: errorName.slice(0, MAX_NAME_CHARS), errorMessage: errorMessage.slice(0, MAX_TEXT_CHARS),
    stack: lines.slice(from, stackTo).join('\n').replace(/ \{\s*$/, '').trimEnd().slice(0, MAX_TEXT_CHARS),
    places: places && places.slice(0, MAX_PLACES),
    causes: causes.slice(0, MAX_CAUSES).map((cause, index) => ({ depth: index + 1,
      errorName: cause.errorName.slice(0, MAX_NAME_CHARS), errorMessage: cause.errorMessage.slice(0, MAX_TEXT_CHARS),
      stack: null })
    ) }
}

/**
 * `lines`: of an app. Returns the last ones that are not empty, of each stack the first: what an app logs after it says
 * less; hostile text.
 */
export function lastLinesOf (lines: string[]): string[] {
  return inOneLineEach(lines.map((line) => stripVTControlCharacters(line.slice(0, MAX_LINE_CHARS)).trimEnd())).filter((
    line,
    index,
    all
  ) => !OF_NODE.test(line) && !CLOSES.test(line) && !(isOfStack(all, index) && isOfStack(all, index - 1))).map((line) =>
    line.slice(0, MAX_SAID_CHARS)
  ).filter((line) => line.trim() !== '').slice(-LAST_LINES)
}

function isOfStack (lines: string[], index: number) {
  return OF_STACK.test(lines[index] ?? '') || PLACE_OF_GO.test(lines[index] ?? '') ||
    PLACE_OF_GO.test(lines[index + 1] ?? '')
}

/**
 * What is shown in several lines becomes one; of what stands behind a stack only the cause remains, beside the error.
 */
function inOneLineEach (lines: string[]): string[] {
  const said: string[] = []
  let error = -1
  for (let at = 0; at < lines.length; at++) {
    const [line, isOfStack] = [lines[at], OF_STACK.test(lines[at])]
    const end = OPENS.test(line) ? endOfBlock(lines, at, isOfStack ? 0 : depthOf(line)) : at + 1
    const inside = lines.slice(at + 1, end).map((each) => each.trim())
    if (!isOfStack) error = said.push([line, ...inside].join(' ').slice(0, MAX_LINE_CHARS)) - 1
    else said.push(end > at + 1 ? line.replace(/ ?[{[(]$/, '') : line)
    const cause = isOfStack && error >= 0 && inside.map((each) => OF_CAUSE.exec(each)?.[1]).find(Boolean)
    if (cause) said[error] += ` (${cause.replace(/,$/, '')})`
    at = end - 1
  }
  return said
}

/** `at`: of the first. Returns the index behind it. */
function endOfBlock (lines: string[], at: number, depth: number): number {
  let end = at + 1
  while (end < lines.length && depthOf(lines[end]) > depth) end++
  return end < lines.length && CLOSES.test(lines[end]) ? end + 1 : end
}

function depthOf (line: string) {
  return line.length - line.trimStart().length
}

/** `lines`: the last ones. Returns the last that tells of a fault. */
export function faultIn (lines: string[]): string | null {
  return lines.findLast((line, index) => NAMES_A_FAULT.test(line) && !isOfStack(lines, index))?.trim() ?? null
}
