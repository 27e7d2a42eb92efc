import { DeckError } from '../errors.js'

/**
 * Values as systemd reads them, each kind of setting in its own way: systemd.syntax(7), "Command lines" in
 * systemd.service(5), "Specifiers" in systemd.unit(5). A value that none of them can hold is refused.
 */

const SIMPLE_WORD = /^[\w@%+=:,./-]+$/

/** The program of an ExecStart=. No variable is looked for in it. @param {string} file */
export function quotedProgram (file) {
  return quoteIfNeeded(escapedSpecifiers(mustBePrintable('node', file)))
}

/** One word of an ExecStart= after the first. @param {string} what for the error @param {string} text */
export function quotedWord (what, text) {
  return quoteIfNeeded(escapedSpecifiers(mustBePrintable(what, text)).replaceAll('$', '$$$$'))
}

/** A setting that takes all of its line, as it stands. @param {string} what @param {string} text */
export function wholeLine (what, text) {
  const isCut = /^\s|\s$|\\$/.test(text)
  if (isCut) throw unitRefusal(what, 'no space at an end and no backslash at the end', text)
  return escapedSpecifiers(mustBePrintable(what, text))
}

/** One path of a setting that takes several, in which a backslash stands for itself. @param {string} what @param {string} file */
export function listedPath (what, file) {
  if (/["\\]/.test(file)) throw unitRefusal(what, 'no double quote and no backslash', file)
  const text = escapedSpecifiers(mustBePrintable(what, file))
  return SIMPLE_WORD.test(text) ? text : `"${text}"`
}

/** @param {string} text */
function quoteIfNeeded (text) {
  return SIMPLE_WORD.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** @param {string} text */
function escapedSpecifiers (text) {
  return text.replaceAll('%', '%%')
}

/** @param {string} what @param {string} text */
function mustBePrintable (what, text) {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) throw unitRefusal(what, 'no line breaks and no other control characters', text)
  return text
}

/** @param {string} what @param {string} expected @param {string} received */
function unitRefusal (what, expected, received) {
  return new DeckError('invalid-config', `${what}: expected ${expected}, for the sake of the unit file, received ${JSON.stringify(received)}`)
}
