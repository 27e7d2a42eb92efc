import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CLI, startReady } from '../support/deck.ts'
import { lacksPython, startInTerminal } from '../support/pseudo-terminal.ts'
import { rareTest } from '../support/rare.ts'

type Terminal = ReturnType<typeof startInTerminal>

const TOP = [process.execPath, CLI, 'top']
const USUAL = { isAlternate: false, isCursorShown: true, wraps: true }

async function endsWell (terminal: Terminal, code: number) {
  assert.deepEqual(await terminal.ended(), { code, isRestored: true })
  assert.deepEqual(terminal.emulator.modes, USUAL)
  assert.deepEqual(terminal.emulator.strange, [])
}

describe('clusterdeck top in a terminal', { skip: lacksPython && 'makes terminals with python3' }, () => {
  test('shows the workers and the output of an app, and goes on over the death of its master', async (t) => {
    const deck = await startReady(t, 'talks-and-dies.js', { workers: 2 })
    const terminal = startInTerminal(t, [...TOP, '--data-dir', deck.folder])
    await terminal.shows(/^> \S+ .* 2\/2 .* All 2 workers/m)
    await terminal.shows(new RegExp(`^ +1 .* ${(await deck.status()).workers[0].pid} .* ready$`, 'm'))
    const say = async (text: string) =>
      await (await fetch(`${await deck.appUrl()}/say?text=${encodeURIComponent(text)}`)).text()
    await say('hello \u001b[2Jthere')
    await terminal.shows(/^\d stdout \| hello there$/m)
    await deck.loseMaster()
    await say('still here')
    await terminal.shows('still here')
    terminal.type('q')
    await endsWell(terminal, 0)
  })

  rareTest('follows the size of the terminal', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1 })
    const terminal = startInTerminal(t, [...TOP, '--data-dir', deck.folder], { rows: 50, columns: 200 })
    await terminal.shows(/^ {2}APP .* RESTARTS {2}HEALTH$/m)
    terminal.resize(12, 40)
    await terminal.shows(/^ {2}APP .* CPU {2}HEALTH$/m)
    assert.equal(terminal.emulator.lines().at(-1)?.startsWith('q quit'), true)
    terminal.type('q')
    await endsWell(terminal, 0)
  })

  rareTest('leaves the terminal as it was, however it ends', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1 })
    const ends: [string, (terminal: Terminal) => void, number][] = [['ctrl-c', ({ type }) => type('\u0003'), 0], [
      'SIGINT',
      ({ signal }) => signal('SIGINT'),
      130
    ], ['SIGTERM', ({ signal }) => signal('SIGTERM'), 143], ['SIGQUIT', ({ signal }) => signal('SIGQUIT'), 131], [
      'SIGHUP',
      ({ signal }) => signal('SIGHUP'),
      129
    ]]
    for (const [, end, code] of ends) {
      const terminal = startInTerminal(t, [...TOP, '--data-dir', deck.folder])
      await terminal.shows(/^> \S+ +1\/1/m)
      assert.deepEqual(terminal.emulator.modes, { isAlternate: true, isCursorShown: false, wraps: false })
      end(terminal)
      await endsWell(terminal, code)
    }
    const closed = startInTerminal(t, [...TOP, '--data-dir', deck.folder])
    await closed.shows(/^> \S+ +1\/1/m)
    closed.hangUp()
    assert.equal((await closed.ended()).code, -1, 'as SIGHUP ends a program')
  })
})
