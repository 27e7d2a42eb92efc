import { stripVTControlCharacters } from 'node:util'
import { readDotnet } from './traces/dotnet.js'
import { readGo } from './traces/go.js'
import { readJava } from './traces/java.js'
import { readJavaScript } from './traces/javascript.js'
import { readNative } from './traces/native.js'
import { readPhp } from './traces/php.js'
import { readPython } from './traces/python.js'
import { readRuby } from './traces/ruby.js'
import { readRust } from './traces/rust.js'

/** @typedef {import('./traces/trace.js').Trace} Trace */

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
const OF_STACK = /^\s+at /
const NAMES_A_FAULT = /\b(?:error|fatal|panic|emerg|fail(?:ed|ure)?|exception|abort(?:ed)?|can(?:'t|not| not)|could not|unable|refused|denied|invalid|missing|not found|no such|in use|not set|required|killed|segmentation fault)\b|(?:Error|Exception)\b/i

/**
 * Reads from the last lines of a program why it has ended, as the runtime of its language writes it.
 * @param {string[]} written
 * @returns {import('./record.js').ExitNote | null}
 */
export function noteFrom (written) {
  const lines = written.map((line) => stripVTControlCharacters(line.slice(0, MAX_LINE_CHARS)).replace(ENDS_NO_LINE, ' ').trimEnd())
  const traces = READERS.map((read) => read(lines)).filter((trace) => trace !== null)
  const last = traces.reduce((/** @type {Trace | null} */ latest, trace) => latest && latest.to >= trace.to ? latest : trace, null)
  if (!last || lines.slice(last.to).filter((line) => line !== '').length > MAX_LINES_AFTER) return null
  const { kind, errorName, errorMessage, from, to, stackTo = to, places, causes } = last
  return {
    kind,
    errorName: errorName.slice(0, MAX_NAME_CHARS),
    errorMessage: errorMessage.slice(0, MAX_TEXT_CHARS),
    stack: lines.slice(from, stackTo).join('\n').trimEnd().slice(0, MAX_TEXT_CHARS),
    places: places && places.slice(0, MAX_PLACES),
    causes: causes.slice(0, MAX_CAUSES).map((cause, index) => ({ depth: index + 1, errorName: cause.errorName.slice(0, MAX_NAME_CHARS), errorMessage: cause.errorMessage.slice(0, MAX_TEXT_CHARS), stack: null }))
  }
}

/**
 * @param {string[]} lines of an app
 * @returns {string[]} the last ones that are not empty, of each stack the first: what an app logs after it says less; hostile text
 */
export function lastLinesOf (lines) {
  return lines
    .filter((line, index) => !OF_NODE.test(line) && !(OF_STACK.test(line) && OF_STACK.test(lines[index - 1] ?? '')))
    .map((line) => stripVTControlCharacters(line).trimEnd().slice(0, MAX_SAID_CHARS))
    .filter((line) => line.trim() !== '')
    .slice(-LAST_LINES)
}

/** @param {string[]} lines  the last ones @returns {string | null} the last that tells of a fault */
export function faultIn (lines) {
  return lines.findLast((line) => NAMES_A_FAULT.test(line)) ?? null
}
