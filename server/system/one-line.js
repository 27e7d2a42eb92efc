import { stripVTControlCharacters } from 'node:util'

/** And what changes the order in which a line is shown. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g

/**
 * Text of an app or its errors on one line, without anything that moves a terminal's cursor, begins another line or turns one around.
 * @param {string} text
 */
export function oneLine (text) {
  return stripVTControlCharacters(text).replace(CONTROLS, ' ')
}
