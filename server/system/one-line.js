import { stripVTControlCharacters } from 'node:util'

// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g

/**
 * Text of an app or its errors on one line, without anything that moves a terminal's cursor or begins another line.
 * @param {string} text
 */
export function oneLine (text) {
  return stripVTControlCharacters(text).replace(CONTROLS, ' ')
}
