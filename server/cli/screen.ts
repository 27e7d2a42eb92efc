import { inspect } from 'node:util'
import stringWidth from 'string-width'
import { oneLine } from '../system/one-line.ts'
import { drawnStream } from './shown-stream.ts'

/** A whole terminal, of which only the lines that have changed are written. */
export type Style = 'bold' | 'dim' | 'inverse' | 'red' | 'yellow'
/** `text`: of anybody */
export type Row = { text: string, style?: Style }

// ECMA-48 and xterm: the alternate screen, without a cursor and without wrapped lines.
const OPEN = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J'
const CLOSE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const RESET = '\u001b[0m'
const ERASE_LINE = '\u001b[K'
const COLOURS = ['red', 'yellow']

/** Characters that take a cell each, as nearly all do. */
const PLAIN = /^[\x20-\x7e]*$/

const CLIPPED = '…'

/** `onResize`: has to draw again */
export function createScreen (given: NodeJS.WriteStream,
  { onResize, hasColours = true }: { onResize: () => void, hasColours?: boolean })
{
  const stdout = drawnStream(given)
  /** by row */
  let shown: string[] = []
  const size = () => ({ rows: stdout.rows || 24, columns: stdout.columns || 80 })

  return { size, open () {
    stdout.write(OPEN)
    stdout.on('resize', drawAnew)
  }, close () {
    stdout.off('resize', drawAnew)
    stdout.write(CLOSE)
  }, draw (rows: readonly Row[]) {
    const { rows: height, columns } = size()
    const lines = Array.from({ length: height }, (_, y) => lineOf(rows[y] ?? { text: '' }, columns))
    // The cursor stays on the last character of a full line, so the line is erased before.
    const text = lines.map((line, y) => line === (shown[y] ?? '') ? '' : `\u001b[${y + 1};1H${ERASE_LINE}${line}`).join(
      ''
    )
    shown = lines
    if (text !== '') stdout.write(text)
  } }

  /** A terminal moves what it shows as it likes when its size changes. */
  function drawAnew () {
    stdout.write('\u001b[2J')
    shown = []
    onResize()
  }

  function lineOf ({ text, style }: Row, columns: number): string {
    const clipped = clipText(text, columns)
    if (style === undefined || clipped === '' || (!hasColours && COLOURS.includes(style))) return clipped
    return `\u001b[${inspect.colors[style]?.[0]}m${clipped}${RESET}`
  }
}

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
