import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { startDeckHere } from '../support/deck-here.js'
import { startDeck } from '../support/deck.js'

/** Of test/fixtures/harms-its-master.js, in this order. */
const HARMS = [
  'acknowledgement', 'refusal', 'twice-the-same-query', 'query-of-a-wrong-port', 'answer-to-nothing', 'empty-envelope',
  'garbage', 'half-garbage', 'other-half', 'long-line', 'ten-thousand', 'socket', 'server'
]

describe('an app cannot harm its master', { concurrency: true }, () => {
  test('whatever it sends: nonsense is dropped, told once and counted, and the worker is heard as before', async (t) => {
    const deck = await startDeckHere(t, 'harms-its-master.js', { workers: 1 })
    const { workers: [{ id, pid }] } = await deck.until({ ready: 1 })
    const url = await deck.appUrl()
    const startedAt = performance.now()
    for (const harm of HARMS) assert.equal(await (await fetch(`${url}/${harm}`)).text(), String(pid), harm)

    // It is heard still, by the one worker that there is.
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const told = (await deck.history('type=unexpected&limit=1000')).map(({ message }) => message)
    assert.equal(told.length, 2, told.join('\n'))
    assert.match(told[1], new RegExp(`^worker ${id} has sent what was dropped: `))
    // A busy machine hears them over some windows, each of which admits as many.
    const windows = 1 + Math.ceil((performance.now() - startedAt) / 10_000)
    assert.ok(Number(/has sent (\d+) messages that were dropped/.exec(told[0])?.[1]) > 10_000 - 2000 * windows, told[0])
  })

  test('with round-robin, where Node\'s own primary hears it', async (t) => {
    const deck = await startDeck(t, 'harms-its-master.js', { workers: 1, flags: ['--dispatch', 'round-robin'] })
    await deck.until({ ready: 1 })
    const { masterPid } = deck
    const url = await deck.appUrl()
    for (const harm of HARMS) assert.equal((await fetch(`${url}/${harm}`)).status, 200, harm)
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.deepEqual([deck.masterPid, (await fetch(url)).status], [masterPid, 200])
  })

  test('that takes away timers and listeners is ready, rolled and told to stop like any other', async (t) => {
    const deck = await startDeckHere(t, 'replaces-what-it-finds.js', { workers: 1 })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    assert.equal(await (await fetch(await deck.appUrl())).text(), String(pid))
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.deepEqual((await deck.history('type=worker.exited')).map(({ cause, code }) => [cause, code]), [['restart', 0]])
  })

  test('sockets that it sends do not pile up', { skip: process.platform !== 'linux' && 'reads /proc' }, async (t) => {
    const deck = await startDeck(t, 'harms-its-master.js', { workers: 1 })
    await deck.until({ ready: 1 })
    const url = await deck.appUrl()
    const count = () => readdirSync(`/proc/${deck.masterPid}/fd`).length
    await fetch(`${url}/socket`)
    const before = count()
    for (let n = 0; n < 20; n++) await fetch(`${url}/socket`)
    assert.ok(count() <= before + 2, `${before} descriptors, then ${count()}`)
  })
})
