import { stripVTControlCharacters } from 'node:util'

/** And what changes the order in which a line is shown. */
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g
/** The same, but for tabs and ends of lines. */
const CONTROLS_IN_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * Text of an app or its errors on one line, without anything that moves a terminal's cursor, begins another line or
 * turns one around.
 */
export function oneLine (text: string) {
  return stripVTControlCharacters(text).replace(CONTROLS, ' ')
}

/** The same for many lines, as a program has written them. */
export function readableText (text: string) {
  return stripVTControlCharacters(text).replace(/\r\n?/g, '\n').replace(CONTROLS_IN_LINES, '')
}
