import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import fc from 'fast-check'
import { clipText, createScreen, type Row } from '../../../server/cli/screen.ts'
import { createEmulator } from '../../support/emulator.ts'
import '../../support/fast-check.ts'
import { fake } from '../../support/fake.ts'

function openScreen (hasColours = true) {
  const emulator = createEmulator({ rows: 6, columns: 20 })
  const sent = { text: '', resizes: 0 }
  const stdout = fake<NodeJS.WriteStream>(
    Object.assign(new EventEmitter(), { rows: 6, columns: 20, write (text: string) {
      sent.text = text
      emulator.write(text)
    } })
  )
  const screen = createScreen(stdout, { hasColours, onResize: () => sent.resizes++ })
  screen.open()
  return { emulator, screen, stdout, sent, draw }

  /** @returns what was written */
  function draw (rows: (string | Row)[]): string {
    sent.text = ''
    screen.draw(rows.map((row) => typeof row === 'string' ? { text: row } : row))
    return sent.text
  }
}

test('a text is clipped between the cells that a terminal gives it, without what moves the cursor', () => {
  assert.deepEqual([clipText('abcdef', 4), clipText('abcd', 4), clipText('漢字漢字', 4), clipText('漢字', 4),
    clipText('abc', 0), clipText('e\u0301xy', 2)], ['abc…', 'abcd', '漢…', '漢字', '', 'e\u0301…'])
  assert.equal(clipText('a\u001b[2J\u009b31m\tb\u202ec', 20), 'a  b c')
})

test('only lines that have changed are written', () => {
  const { draw, emulator } = openScreen()
  draw(['shop   12.5%   64 MB', 'mail    0.3%   50 MB'])
  assert.deepEqual(emulator.lines(), ['shop   12.5%   64 MB', 'mail    0.3%   50 MB', '', '', '', ''])
  assert.equal(draw(['shop   12.5%   64 MB', 'mail    0.3%   50 MB']), '')
  assert.equal(draw(['shop   12.6%', 'mail    0.3%   50 MB']), '\u001b[1;1H\u001b[Kshop   12.6%')
  draw(['shop   12.6%'])
  assert.deepEqual(emulator.lines().slice(0, 2), ['shop   12.6%', ''])
})

test('whatever is drawn after whatever else, the terminal shows the last of it', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', ' ', '漢', 'é', 'e\u0301', '👩‍👩‍👧', '\u001b[31m', '\n', '\t', '\u009b', '\u202e'),
    maxLength: 24
  })
  const style = fc.constantFrom(...([undefined, 'bold', 'red', 'inverse'] as const))
  const rows = fc.array(fc.record({ text, style }), { minLength: 6, maxLength: 6 })
  fc.assert(fc.property(rows, rows, (first, second) => {
    const [both, alone] = [openScreen(), openScreen()]
    both.draw(first)
    both.draw(second)
    alone.draw(second)
    assert.deepEqual(both.emulator.lines(), alone.emulator.lines())
    for (let y = 0; y < 6; y++)
      for (let x = 0; x < 20; x++)
        assert.equal(both.emulator.styleAt(y, x), alone.emulator.styleAt(y, x), `style of ${y}, ${x}`)
    assert.deepEqual(both.emulator.strange, [])
  }))
})

test('after a change of size all is drawn anew', () => {
  const { draw, emulator, stdout, sent } = openScreen()
  draw(['one', 'two'])
  Object.assign(stdout, { rows: 2, columns: 2 })
  emulator.resize(2, 2)
  stdout.emit('resize')
  assert.equal(sent.resizes, 1)
  draw(['one', 'two'])
  assert.deepEqual(emulator.lines(), ['o…', 't…'])
})

test('no colour where nobody wants it', () => {
  const rows: Row[] = [{ text: 'bad', style: 'red' }, { text: 'good', style: 'bold' }]
  const plain = openScreen(false)
  plain.draw(rows)
  assert.deepEqual([plain.emulator.styleAt(0, 0), plain.emulator.styleAt(1, 0)], ['', '1'])
  const coloured = openScreen()
  coloured.draw(rows)
  assert.equal(coloured.emulator.styleAt(0, 0), '31')
})

test('it leaves the terminal as it was', () => {
  const { emulator, screen, draw, stdout } = openScreen()
  assert.deepEqual(emulator.modes, { isAlternate: true, isCursorShown: false, wraps: false })
  draw(['one'])
  screen.close()
  assert.deepEqual(emulator.modes, { isAlternate: false, isCursorShown: true, wraps: true })
  assert.equal(stdout.listenerCount('resize'), 0)
})
