import { withoutEscapes } from './log-text.ts'

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g
/** They change the order in which a line is shown, have no width, or end a line where none ends. */
const TRICKSTERS = /[\u0080-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g
const ORDINARY = /^[\t\n\x20-\x7e]*$/
const CONTROL_PICTURES = 0x2400
const DELETE_PICTURE = '\u2421'

/**
 * Text of an app as it can be read and copied without surprises: what a terminal would obey is gone, and what could
 * hide or reorder the rest is shown by its name.
 * @returns still to be escaped for HTML
 */
export function readable (text: unknown): string {
  const given = String(text ?? '')
  if (ORDINARY.test(given)) return given
  return withoutEscapes(given).replaceAll('\r\n', '\n').replace(CONTROLS,
    (character) =>
      character === '\u007f' ? DELETE_PICTURE : String.fromCharCode(CONTROL_PICTURES + character.charCodeAt(0)))
    .replace(TRICKSTERS, (character) => `<U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`)
}
