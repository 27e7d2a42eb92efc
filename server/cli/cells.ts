import stringWidth from 'string-width'
import { oneLine } from '../system/one-line.ts'

/** Characters that take a cell each, as nearly all do. */
const PLAIN = /^[\x20-\x7e]*$/
const CLIPPED = '…'

/**
 * What a terminal shows of a text, without whatever moves the cursor or sets a mode. `text`: of anybody; `width`: in
 * cells. Returns at most as wide, with a mark where something is missing.
 */
export function clipText (text: string, width: number): string {
  if (PLAIN.test(text) && text.length <= width) return text
  const shown = oneLine(text.replaceAll('\t', '  '))
  let clipped = ''
  let cells = 0
  /** of what stays if there is no room for the rest */
  let kept = ''
  for (const { segment } of new Intl.Segmenter().segment(shown)) {
    cells += stringWidth(segment)
    if (cells > width) return width < 1 ? '' : `${kept}${CLIPPED}`
    clipped += segment
    if (cells < width) kept = clipped
  }
  return clipped
}
