import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cellsOf, clipText, fitText } from '../../../server/cli/cells.ts'
import { createScreen, type Region, type Row } from '../../../server/cli/screen.ts'
import { createEmulator } from '../../support/emulator.ts'
import '../../support/fast-check.ts'
import { fake } from '../../support/fake.ts'

function openScreen (
  { rows = 6, columns = 20, env = { LANG: 'C.UTF-8' } }: { rows?: number, columns?: number,
    env?: Record<string, string> } = {}
) {
  const emulator = createEmulator({ rows, columns })
  const sent = { text: '' }
  const stdout = fake<NodeJS.WriteStream>({ rows, columns, write (text: string) {
    sent.text = text
    emulator.write(text)
  } })
  const screen = createScreen({ stdout, env })
  screen.open()
  return { emulator, screen, stdout, draw }

  /** @returns what was written */
  function draw (rows: (string | Row)[], region?: Region): string {
    sent.text = ''
    screen.draw(rows.map((row) => typeof row === 'string' ? [{ text: row }] : row), region)
    return sent.text
  }
}

test('a text takes the cells that a terminal gives it, and is clipped between them', () => {
  assert.deepEqual(cellsOf('a漢b'), ['a', '漢', '', 'b'])
  assert.deepEqual(cellsOf('e\u0301x'), ['e\u0301', 'x'])
  assert.deepEqual([clipText('abcdef', 4), clipText('abcd', 4), clipText('漢字漢字', 4), clipText('abc', 0)], ['abc…',
    'abcd', '漢…', ''])
  assert.deepEqual([fitText('漢字漢字', 4), fitText('ab', 4), fitText('ab', 4, { isRight: true })], ['漢… ', 'ab  ',
    '  ab'])
  assert.equal(clipText('a\u001b[2J\u009b31m\tb\u202ec', 20), 'a  b c')
})

test('only what has changed is written', () => {
  const { draw, emulator } = openScreen()
  draw(['shop   12.5%   64 MB', 'mail    0.3%   50 MB'])
  assert.deepEqual(emulator.lines(), ['shop   12.5%   64 MB', 'mail    0.3%   50 MB', '', '', '', ''])
  assert.equal(draw(['shop   12.5%   64 MB', 'mail    0.3%   50 MB']), '')
  assert.equal(draw(['shop   12.6%   64 MB', 'mail    0.3%   50 MB']), '\u001b[1;11H6')
  assert.equal(draw(['shop   12.6%', 'mail    0.3%   50 MB']), '\u001b[1;16H\u001b[K')
  assert.deepEqual(emulator.lines().slice(0, 2), ['shop   12.6%', 'mail    0.3%   50 MB'])
})

test('new lines of output move the others up without their being written again', () => {
  const { draw, emulator } = openScreen()
  const region = { top: 1, bottom: 4 }
  draw(['head', 'one', 'two', 'three', 'four', 'foot'], region)
  assert.equal(draw(['head', 'two', 'three', 'four', 'five', 'foot'], region),
    '\u001b[2;5r\u001b[5;1H\n\u001b[r\u001b[5;1Hfive')
  draw(['head', 'four', 'five', 'six', 'seven', 'foot'], region)
  assert.deepEqual(emulator.lines(), ['head', 'four', 'five', 'six', 'seven', 'foot'])
})

test('whatever is drawn after whatever else, the terminal shows the last of it', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', ' ', '漢', 'é', 'e\u0301', '👩‍👩‍👧', '\u001b[31m', '\n', '\t', '\u009b', '\u202e'),
    maxLength: 24
  })
  const style = fc.constantFrom(...(['', 'bold', 'red', 'inverse'] as const))
  const rows = fc.array(fc.array(fc.record({ text, style }), { maxLength: 3 }), { minLength: 6, maxLength: 6 })
  fc.assert(fc.property(rows, rows, (first, second) => {
    const [both, alone] = [openScreen(), openScreen()]
    const region = { top: 1, bottom: 4 }
    both.draw(first, region)
    both.draw([first[0], ...first.slice(2, 5), second[3], first[5]], region)
    both.draw(second, region)
    alone.draw(second)
    assert.deepEqual(both.emulator.lines(), alone.emulator.lines())
    for (let y = 0; y < 6; y++)
      for (let x = 0; x < 20; x++)
        assert.equal(both.emulator.styleAt(y, x), alone.emulator.styleAt(y, x), `style of ${y}, ${x}`)
    assert.deepEqual(both.emulator.strange, [])
  }))
})

test('after a change of size all is drawn anew', () => {
  const { draw, emulator, screen, stdout } = openScreen()
  draw(['one', 'two'])
  Object.assign(stdout, { rows: 2, columns: 2 })
  emulator.resize(2, 2)
  screen.forget()
  draw(['one', 'two'])
  assert.deepEqual(emulator.lines(), ['on', 'tw'])
})

test('no colour where nobody wants it, and ASCII alone where the terminal knows no other', () => {
  const rows: Row[] = [[{ text: 'bad', style: 'red' }, { text: ' good', style: 'bold' }], [{ text: '漢é…–' }]]
  const plain = openScreen({ env: { NO_COLOR: '1', LANG: 'en_US.UTF-8' } })
  plain.draw(rows)
  assert.deepEqual([plain.emulator.styleAt(0, 0), plain.emulator.styleAt(0, 4)], ['', '1'])
  assert.equal(plain.emulator.lines()[1], '漢é…–')
  const ascii = openScreen({ env: { LC_ALL: 'C' } })
  ascii.draw(rows)
  assert.equal(ascii.emulator.lines()[1], '???.-')
  assert.equal(ascii.emulator.styleAt(0, 0), '31')
})

test('it leaves the terminal as it was', () => {
  const { emulator, screen, draw } = openScreen()
  assert.deepEqual(emulator.modes, { isAlternate: true, isCursorShown: false, wraps: false, marksPaste: true })
  draw(['one'])
  screen.close()
  assert.deepEqual(emulator.modes, { isAlternate: false, isCursorShown: true, wraps: true, marksPaste: false })
})
