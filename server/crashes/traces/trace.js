/**
 * What the runtime of a language writes at the end of a program: its error, and what has called what.
 * @typedef {object} Trace
 * @property {'exception' | 'unhandled-rejection' | 'panic' | 'signal'} kind
 * @property {string} errorName
 * @property {string} errorMessage
 * @property {number} from  the index of its first line
 * @property {number} to  of the line after its last one
 * @property {number} [stackTo]  where what has called what ends, if more comes behind it
 * @property {Place[] | null} places  innermost first; null: they are written as V8 does
 * @property {Cause[]} causes  outermost first
 *
 * @typedef {{ function: string | null, file: string | null, line: number | null, column: number | null, isOwn: boolean }} Place `isOwn`: of the app
 * @typedef {{ errorName: string, errorMessage: string }} Cause
 * @typedef {(lines: string[]) => Trace | null} Reader  of the last trace in these lines, without colours
 */

const MAX_MESSAGE_LINES = 20
/** How logs begin their lines: a level, a date, a bracket. */
const OF_A_LOG = /^(?:\[|\{|\d{4}[-/]\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b)/

/**
 * A message may have several lines.
 * @param {string} first @param {string[]} lines @param {number} from  the index of the second one @param {RegExp} [end]  what comes after it
 * @returns {{ text: string, to: number }}
 */
export function messageOf (first, lines, from, end = /^$/) {
  let to = from
  while (to < lines.length && to - from < MAX_MESSAGE_LINES && lines[to].trim() !== '' && !end.test(lines[to]) && !OF_A_LOG.test(lines[to])) to++
  return { text: [first, ...lines.slice(from, to)].join('\n').trim(), to }
}

/** @param {string[]} lines @param {number} index @param {RegExp} pattern @returns {number} the first of the neighbours before it that are like this */
export function backWhile (lines, index, pattern) {
  while (index > 0 && pattern.test(lines[index - 1])) index--
  return index
}

/** @param {string[]} lines @param {number} index @param {RegExp} pattern @returns {number} the first from there that is not like this */
export function onWhile (lines, index, pattern) {
  while (index < lines.length && pattern.test(lines[index])) index++
  return index
}
