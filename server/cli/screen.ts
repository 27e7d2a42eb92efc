import { inspect } from 'node:util'
import { cellsOf, isPlain } from './cells.ts'
import { drawnStream } from './shown-stream.ts'

/** A whole terminal, of which only what has changed is written: over a slow line each byte counts. */
export type Style = '' | 'bold' | 'dim' | 'inverse' | 'red' | 'yellow' | 'green' | 'cyan'
export type Span = { text: string, style?: Style }
export type Row = Span[]
/** what is on a row; `key`: the same for the same row */
type Line = { cells: string[], styles: Style[], key: string, isPlain: boolean }
/** the first and the last row of what moves up as new lines come */
export type Region = { top: number, bottom: number }

// ECMA-48 and xterm: the alternate screen, without a cursor and without wrapped lines; pasted text comes in brackets.
const OPEN = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?2004h'
const CLOSE = '\u001b[0m\u001b[?2004l\u001b[?7h\u001b[?25h\u001b[?1049l'
const RESET = '\u001b[0m'
const ERASE_REST = '\u001b[K'
const ERASE_ALL = '\u001b[H\u001b[2J'
const WHOLE_REGION = '\u001b[r'

/** Two changes that are nearer than this are written as one: to move the cursor takes as many bytes. */
const NEAR = 8
const COLOURS = ['red', 'yellow', 'green', 'cyan']
const IN_ASCII: Readonly<Record<string, string>> = Object.freeze({ '…': '.', '–': '-' })
const BLANK: Line = Object.freeze({ cells: [], styles: [], key: '', isPlain: true })

export function createScreen (
  { stdout: given, env }: { stdout: NodeJS.WriteStream, env: Record<string, string | undefined> }
) {
  const stdout = drawnStream(given)
  const hasColours = !env.NO_COLOR
  const isAscii = !takesUnicode(env)
  /** null: nobody knows what is there */
  let shown: Line[] | null = null

  return {
    open () {
      shown = null
      stdout.write(OPEN)
    },

    close () {
      stdout.write(CLOSE)
    },

    /** Draws all anew next time, as after a change of size. */
    forget () {
      shown = null
    },

    size: () => ({ rows: stdout.rows || 24, columns: stdout.columns || 80 }),

    draw (rows: Row[], region?: Region) {
      const { rows: height, columns } = this.size()
      const keys = Array.from({ length: height }, (_, y) => keyOf(rows[y] ?? []))
      let text = ''
      if (shown === null) {
        text = RESET + ERASE_ALL
        shown = keys.map(() => BLANK)
      }
      const lines = shown
      if (region) text += scrollUp(lines, keys, region)
      for (const [y, key] of keys.entries()) {
        if (lines[y].key === key) continue
        const line = toLine(rows[y], key, columns)
        text += changeOf(lines[y], line, y)
        lines[y] = line
      }
      if (text !== '') stdout.write(text)
    }
  }

  function toLine (row: Row, key: string, columns: number): Line {
    const cells = [] as string[]
    const styles = [] as Style[]
    for (const { text, style = '' } of row) {
      for (const cell of cellsOf(text)) {
        cells.push(isAscii ? inAscii(cell) : cell)
        styles.push(hasColours || !COLOURS.includes(style) ? style : '')
      }
    }
    // One half of a character cannot be shown.
    if (cells[columns] === '') cells[columns - 1] = ' '
    cells.length = styles.length = Math.min(cells.length, columns)
    while (cells.at(-1) === ' ' && styles.at(-1) !== 'inverse') cells.length = --styles.length
    return { cells, styles, key, isPlain: cells.every((cell) => cell !== '' && isPlain(cell)) }
  }
}

/** @returns nothing for an empty one */
function keyOf (row: Row): string {
  return row.map(({ text, style = '' }) => `${style}:${text}`).join('\n')
}

function inAscii (cell: string) {
  return cell !== '' && isPlain(cell) ? cell : IN_ASCII[cell] ?? '?'
}

/**
 * Lets the terminal move the lines that are there already. `lines`: is changed likewise; `keys`: of what is to be
 * there.
 */
function scrollUp (lines: Line[], keys: string[], { top, bottom }: Region): string {
  const height = bottom - top + 1
  if (height < 3 || lines[top].key === keys[top]) return ''
  for (let by = 1; by < height - 1; by++) {
    if (!keys.slice(top, bottom + 1 - by).every((key, index) => key === lines[top + by + index].key)) continue
    lines.splice(top, by)
    lines.splice(bottom + 1 - by, 0, ...Array(by).fill(BLANK))
    return `\u001b[${top + 1};${bottom + 1}r${moveTo(bottom, 0)}${'\n'.repeat(by)}${WHOLE_REGION}`
  }
  return ''
}

function changeOf (before: Line, line: Line, y: number): string {
  // How wide a terminal shows other characters is not sure, so what follows them is written with them.
  if (!before.isPlain || !line.isPlain) return `${moveTo(y, 0)}${partOf(line, 0, line.cells.length)}${ERASE_REST}`
  return runsOf(before, line).map(([from, to]) => {
    const rest = to > line.cells.length ? ERASE_REST : ''
    return `${moveTo(y, from)}${partOf(line, from, Math.min(to, line.cells.length))}${rest}`
  }).join('')
}

/** @returns where they differ */
function runsOf (before: Line, line: Line): [from: number, to: number][] {
  const runs: [number, number][] = []
  for (let x = 0; x < Math.max(before.cells.length, line.cells.length); x++) {
    if (cellAt(before, x) === cellAt(line, x) && styleAt(before, x) === styleAt(line, x)) continue
    const last = runs.at(-1)
    if (last && x - last[1] < NEAR) last[1] = x + 1
    else runs.push([x, x + 1])
  }
  return runs
}

function cellAt ({ cells }: Line, x: number) {
  return cells[x] ?? ' '
}

function styleAt ({ styles }: Line, x: number) {
  return styles[x] ?? ''
}

/** @returns it ends without a style */
function partOf ({ cells, styles }: Line, from: number, to: number): string {
  let text = ''
  let style: Style = ''
  for (let x = from; x < to; x++) {
    if (styles[x] !== style) text += styles[x] === '' ? RESET : `\u001b[0;${inspect.colors[styles[x]]?.[0]}m`
    style = styles[x]
    text += cells[x]
  }
  return style === '' ? text : text + RESET
}

/** `x`: from 0 */
function moveTo (y: number, x: number) {
  return `\u001b[${y + 1};${x + 1}H`
}

/** Other characters than those of ASCII are shown unless the locale says that they cannot be. */
function takesUnicode ({ LC_ALL, LC_CTYPE, LANG }: Record<string, string | undefined>) {
  const locale = LC_ALL || LC_CTYPE || LANG || ''
  return locale === '' || /utf-?8/i.test(locale)
}
