import { DeckError } from '../errors.ts'

/**
 * Values as systemd reads them, each kind of setting in its own way: systemd.syntax(7), "Command lines" in
 * systemd.service(5), "Specifiers" in systemd.unit(5). A value that none of them can hold is refused.
 */

const SIMPLE_WORD = /^[\w@%+=:,./-]+$/

/** The program of an ExecStart=. No variable is looked for in it. */
export function quotedProgram (file: string) {
  return quoteIfNeeded(escapedSpecifiers(mustBePrintable('node', file)))
}

/** One word of an ExecStart= after the first. `what`: for the error. */
export function quotedWord (what: string, text: string) {
  return quoteIfNeeded(escapedSpecifiers(mustBePrintable(what, text)).replaceAll('$', '$$$$'))
}

/** A setting that takes all of its line, as it stands. */
export function wholeLine (what: string, text: string) {
  const isCut = /^\s|\s$|\\$/.test(text)
  if (isCut) throw unitRefusal(what, 'no space at an end and no backslash at the end', text)
  return escapedSpecifiers(mustBePrintable(what, text))
}

/** One path of a setting that takes several, in which a backslash stands for itself. */
export function listedPath (what: string, file: string) {
  if (/["\\]/.test(file)) throw unitRefusal(what, 'no double quote and no backslash', file)
  const text = escapedSpecifiers(mustBePrintable(what, file))
  return SIMPLE_WORD.test(text) ? text : `"${text}"`
}

function quoteIfNeeded (text: string) {
  return SIMPLE_WORD.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
}

function escapedSpecifiers (text: string) {
  return text.replaceAll('%', '%%')
}

function mustBePrintable (what: string, text: string) {
  if (/[\u0000-\u001f\u007f]/.test(text))
    throw unitRefusal(what, 'no line breaks and no other control characters', text)
  return text
}

function unitRefusal (what: string, expected: string, received: string) {
  return new DeckError('invalid-config',
    `${what}: expected ${expected}, for the sake of the unit file, received ${JSON.stringify(received)}`)
}
