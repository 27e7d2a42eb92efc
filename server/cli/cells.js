import stringWidth from 'string-width'
import { oneLine } from '../system/one-line.js'

/** Characters that take a cell each, as nearly all do. */
const PLAIN = /^[\x20-\x7e]*$/
const CLIPPED = '…'

/** @param {string} text @returns {boolean} */
export function isPlain (text) {
  return PLAIN.test(text)
}

/**
 * What a terminal shows of a text, in its cells. Whatever moves the cursor or sets a mode is gone.
 * @param {string} text of anybody
 * @returns {string[]} what is in each cell; behind a character of two cells is an empty one
 */
export function cellsOf (text) {
  if (isPlain(text)) return [...text]
  /** @type {string[]} */
  const cells = []
  for (const { segment } of new Intl.Segmenter().segment(oneLine(text.replaceAll('\t', '  ')))) {
    const width = stringWidth(segment)
    if (width > 0) cells.push(segment, ...Array(width - 1).fill(''))
  }
  return cells
}

/** @param {string} text of anybody @returns {number} in cells */
export function widthOf (text) {
  return isPlain(text) ? text.length : cellsOf(text).length
}

/** @param {string} text of anybody @param {number} width @returns {string} at most as wide, with a mark where something is missing */
export function clipText (text, width) {
  if (isPlain(text) && text.length <= width) return text
  const cells = cellsOf(text)
  if (cells.length <= width) return cells.join('')
  if (width < 1) return ''
  // One half of a character cannot be shown.
  const end = cells[width - 1] === '' ? width - 2 : width - 1
  return `${cells.slice(0, end).join('')}${CLIPPED}`
}

/** @param {string} text of anybody @param {number} width @param {{ isRight?: boolean }} [how] @returns {string} exactly as wide */
export function fitText (text, width, { isRight = false } = {}) {
  const clipped = clipText(text, width)
  const blanks = ' '.repeat(Math.max(0, width - widthOf(clipped)))
  return isRight ? blanks + clipped : clipped + blanks
}
