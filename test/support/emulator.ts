import stringWidth from 'string-width'

/**
 * A terminal without a window: as much of ECMA-48 and xterm as a program on the whole screen needs. What it does not
 * know is strange.
 */
export function createEmulator ({ rows, columns }: { rows: number, columns: number }) {
  const modes = { isAlternate: false, isCursorShown: true, wraps: true }
  /** control characters and sequences that are none of a page on the screen */
  const strange: string[] = []
  let grid = filledWith(' ')
  let usual = ''
  let [x, y] = [0, 0]
  let style = ''
  let styles: string[][] = filledWith('')
  let rest = ''
  const segmenter = new Intl.Segmenter()

  return {
    modes,
    strange,
    write,
    /** What is written while the screen is not the alternate one. */
    usual: () => usual,
    lines: (): string[] => grid.map((line) => line.join('').trimEnd()),
    text: () => grid.map((line) => line.join('').trimEnd()).join('\n'),
    styleAt: (row: number, column: number) => styles[row][column],
    resize (nextRows: number, nextColumns: number) {
      ;[rows, columns] = [nextRows, nextColumns]
      erase()
    }
  }

  function filledWith (cell: string) {
    return Array.from({ length: rows }, () => Array(columns).fill(cell))
  }

  function write (text: string) {
    const [whole, cut = ''] = /^(.*?)(\u001b(?:\[[\d;?]*)?)?$/s.exec(rest + text)?.slice(1) ?? ['']
    rest = cut
    for (const [, sequence, control, plain] of whole.matchAll(
      /(\u001b\[[\d;?]*[A-Za-z])|([\u0000-\u001f\u007f-\u009f])|([^\u0000-\u001f\u007f-\u009f]+)/g
    )) {
      if (!modes.isAlternate && sequence === undefined) usual += control ?? plain
      else if (sequence !== undefined) obey(sequence)
      else if (control !== undefined) strange.push(JSON.stringify(control))
      else for (const { segment } of segmenter.segment(plain)) put(segment)
    }
  }

  function put (segment: string) {
    const width = stringWidth(segment)
    if (width === 0 && x > 0) grid[y][x - 1] += segment
    if (width === 0) return
    const at = Math.min(x, columns - width)
    grid[y][at] = segment
    styles[y].fill(style, at, at + width)
    grid[y].fill('', at + 1, at + width)
    x = Math.min(columns, x + width)
  }

  function obey (sequence: string) {
    const [, mark, numbers, command] = /^\u001b\[(\??)([\d;]*)([A-Za-z])$/.exec(sequence) ?? []
    const values = numbers?.split(';').map(Number) ?? []
    if (mark === '?' && (command === 'h' || command === 'l')) setMode(values[0], command === 'h')
    else if (command === 'H') [y, x] = [Math.min(rows, values[0] || 1) - 1, Math.min(columns, values[1] || 1) - 1]
    else if (command === 'J' && values[0] === 2) erase()
    else if (command === 'K' && !values[0]) eraseRest()
    else if (command === 'm') style = numbers === '0' ? '' : String(numbers).replace(/^0;/, '')
    else strange.push(JSON.stringify(sequence))
  }

  function erase () {
    grid = filledWith(' ')
    styles = filledWith('')
  }

  function eraseRest () {
    grid[y].fill(' ', x)
    styles[y].fill('', x)
  }

  function setMode (mode: number, isOn: boolean) {
    if (mode === 1049) modes.isAlternate = isOn
    else if (mode === 25) modes.isCursorShown = isOn
    else if (mode === 7) modes.wraps = isOn
    else strange.push(`mode ${mode}`)
  }
}
