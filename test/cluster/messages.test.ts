import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { above } from '../support/event-log.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { supervised } from '../support/supervised.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/** @returns how many messages they tell of */
function heardOf (events: DeckEvent[]): number {
  return events.reduce((sum, { detail }) => sum + Number(detail?.leftOut ?? 1), 0)
}

describe('messages', { concurrency: true }, () => {
  test('of an operator reach every ready worker as its primary\'s do, and the history tells who has sent them', async (t) => {
    const deck = await startDeckHere(t, 'repeats-what-it-hears.js', { workers: 2 })
    const { workers } = await deck.until({ ready: 2 })
    const ids = workers.map(({ id }) => id)
    const data = { keys: ['a', null], deep: { é: 1.5 } }
    const { status, body } = await deck.post('/messages', { type: 'reload', data })
    assert.deepEqual([status, body], [202, { workers: ids }])
    for (const { id, slot, pid, release } of workers) {
      for (const via of ['process', 'worker']) {
        const event = await deck.untilEvent('worker.message', { worker: id, message: `${via} heard` })
        assert.deepEqual([event.slot, event.pid, event.release, event.detail], [slot, pid, release, {
          type: `${via} heard`,
          data: { type: 'reload', from: 'admin', data }
        }])
      }
    }
    const [sent] = await deck.history('type=message.sent')
    assert.deepEqual([sent.actor, sent.message, sent.detail], ['the owner\'s token',
      'message "reload" sent to 2 workers', { type: 'reload', workers: ids }])
  })

  rareTest(
    'of the app in a flood: some are told, the others counted, and those of another shape are nobody\'s business',
    async (t) => {
      const count = 100_000
      const deck = await startReadyHere(t, 'repeats-what-it-hears.js', { workers: 1 })
      const { workers: [{ id, pid }] } = await deck.status()
      assert.equal(await (await fetch(`${await deck.appUrl()}/${count}`)).text(), String(pid))
      /** newest first */
      let told = await deck.history('type=worker.message&limit=1000')
      // A machine that is busy may pause within the flood, which then counts as two.
      while (heardOf(told) < count) {
        const { id: last = 0 } = told[0] ?? {}
        await deck.untilEvent('worker.message', { id: above(last) })
        told = await deck.history('type=worker.message&limit=1000')
      }
      assert.equal(heardOf(told), count)
      assert.deepEqual(told.at(-1)?.detail, { type: 'tick', data: 1 })
      assert.ok(told.length >= 11 && told.length < 500, `${told.length} events`)
      assert.deepEqual(await deck.history('type=unexpected'), [])
      assert.deepEqual((await deck.post('/messages', { type: 'still there' })).body, { workers: [id] })
      await deck.untilEvent(({ message }) => message === 'process heard', 'an answer')
    }
  )

  test('to a worker that does not read them wait in bounds; then it is refused, and gets those that were not', {
    skip: (process.platform === 'win32' && 'stops a process') || rareOnly
  }, async (t) => {
    const { deck, until, events } = await supervised(t, 'repeats-what-it-hears.js')
    await until('worker.ready')
    const [{ id, pid }] = deck.snapshot().workers
    process.kill(Number(pid), 'SIGSTOP')
    const send = (n: number) =>
      deck.send({ type: `message ${n}`, data: 'x'.repeat(60_000), worker: Number(id), actor: 'test' })
    let sent = 0
    assert.throws(() => {
      for (; sent < 1000; sent++) send(sent)
    }, { code: 'not-possible', message: `worker ${id} does not read its messages` })
    assert.ok(sent >= 100 && sent < 150, `${sent} were taken`)
    assert.deepEqual(deck.send({ type: 'to whom it may concern', actor: 'test' }), { workers: [] })
    assert.equal(events.filter(({ type }) => type === 'message.sent').length, sent + 1)
    process.kill(Number(pid), 'SIGCONT')
    // Each is heard twice: by the process and by its worker.
    for (let heard = 0, count = 1; heard < 2 * sent; count++)
      heard += (await until('worker.message', count)).detail.leftOut ?? 1
  })
})
