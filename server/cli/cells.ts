import stringWidth from 'string-width'
import { oneLine } from '../system/one-line.ts'

/** Characters that take a cell each, as nearly all do. */
const PLAIN = /^[\x20-\x7e]*$/
const CLIPPED = '…'

export function isPlain (text: string): boolean {
  return PLAIN.test(text)
}

/**
 * What a terminal shows of a text, in its cells. Whatever moves the cursor or sets a mode is gone. `text`: of anybody.
 * Returns what is in each cell; behind a character of two cells is an empty one.
 */
export function cellsOf (text: string): string[] {
  if (isPlain(text)) return [...text]
  const cells: string[] = []
  for (const { segment } of new Intl.Segmenter().segment(oneLine(text.replaceAll('\t', '  ')))) {
    const width = stringWidth(segment)
    if (width > 0) cells.push(segment, ...Array(width - 1).fill(''))
  }
  return cells
}

/** `text`: of anybody @returns in cells */
export function widthOf (text: string): number {
  return isPlain(text) ? text.length : cellsOf(text).length
}

/** `text`: of anybody @returns at most as wide, with a mark where something is missing */
export function clipText (text: string, width: number): string {
  if (isPlain(text) && text.length <= width) return text
  const cells = cellsOf(text)
  if (cells.length <= width) return cells.join('')
  if (width < 1) return ''
  // One half of a character cannot be shown.
  const end = cells[width - 1] === '' ? width - 2 : width - 1
  return `${cells.slice(0, end).join('')}${CLIPPED}`
}

/** `text`: of anybody @returns exactly as wide */
export function fitText (text: string, width: number, { isRight = false }: { isRight?: boolean } = {}): string {
  const clipped = clipText(text, width)
  const blanks = ' '.repeat(Math.max(0, width - widthOf(clipped)))
  return isRight ? blanks + clipped : clipped + blanks
}
