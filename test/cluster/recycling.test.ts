import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { startReadyHere } from '../support/deck-here.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { present } from '../support/present.ts'
import { rareOnly } from '../support/rare.ts'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { DeckClient } from '../support/deck-client.ts'

/** From now on. */
async function untilRecycled (deck: DeckClient, cause: string, count: number) {
  const { lastEventId } = await deck.status()
  const seen = new Set()
  while (seen.size < count) {
    const { worker } = await deck.untilEvent(
      ({ id, type, cause: its, worker }) =>
        type === 'worker.exited' && its === cause && id > lastEventId && !seen.has(worker),
      `the end of a worker by ${cause}`
    )
    seen.add(worker)
  }
}

type Holder = { file: string, count: number, bytes: number, bytesPer1000Requests: number }

/** `events`: oldest first: no slot's worker is recycled before the last one's is gone */
function assertOneAtATime (events: DeckEvent[]) {
  let open: number | null = null
  for (const { type, worker } of events) {
    if (type === 'worker.recycling') {
      assert.equal(open, null, 'two at once')
      open = worker
    }
    if (type === 'worker.exited' && worker === open) open = null
  }
}

describe('recycling', { concurrency: true }, () => {
  for (const { cause, limit } of [{ cause: 'max-requests', limit: { 'recycle.maxRequests': 100 } }, { cause: 'max-age',
    limit: { 'recycle.maxAgeMs': 1500 } }])
  {
    test(`workers that go by ${cause} drop no request, new before old, one at a time`, {
      skip: cause === 'max-age' && rareOnly
    }, async (t) => {
      const deck = await startReadyHere(t, 'answers-with-pid.js', { flags: ['--drain-idle-grace-ms', '20000'] })
      const url = await deck.appUrl()
      const keptAlive = hammer(t, url, { connections: 8 })
      const fresh = openFreshConnections(t, url, { perSecond: 50 })
      await Promise.all([keptAlive.untilAnswered(8), fresh.untilAnswered(8)])
      // Limits as low as these slow recycling down after a few, so they begin with the load.
      const { headers } = await deck.api('/config')
      const change = deck.api('/config', { method: 'PATCH', body: JSON.stringify(limit),
        headers: { 'if-match': String(headers.get('etag')) } })
      const [changed] = await Promise.all([change, untilRecycled(deck, cause, 3)])
      assert.equal(changed.status, 200)
      const [kept, opened] = await Promise.all([keptAlive.stop(), fresh.stop()])
      assert.deepEqual([kept.failures, opened.failures], [[], []])

      const events = (await deck.history('limit=1000')).reverse()
      assertOneAtATime(events)
      const exits = events.filter(({ type }) => type === 'worker.exited')
      assert.ok(exits.every((exit) => exit.cause === cause && exit.actor === 'system' && exit.release === 'r1'))
      for (const { id, slot, worker } of exits) {
        assert.ok(
          events.some((event) =>
            event.type === 'worker.ready' && event.slot === slot && Number(event.worker) > Number(worker) &&
            event.id < id
          ),
          'new before old'
        )
      }
    })
  }

  test('of a worker that is recycled for its memory the history says what held it, and no request fails', async (t) => {
    const deck = await startReadyHere(t, 'keeps-sessions.cjs', { workers: 1,
      flags: ['--recycle-max-rss-bytes', String(130 * 1024 * 1024), '--drain-idle-grace-ms', '200',
        '--drain-deadline-ms', '5000', '--stop-term-grace-ms', '1000'] })
    const load = hammer(t, await deck.appUrl(), { connections: 8, breathMs: 5 })
    await deck.untilEvent('worker.exited', { cause: 'memory-limit', worker: 1 })
    await load.checkNoneLost()
    const { worker, release, message, detail } = await deck.untilEvent('memory.examined')
    assert.match(String(message),
      /^worker 1 held \d+ MB in its heap when it was recycled, \d+ MB of it in [\d,]+ objects at keeps-sessions\.cjs: .*sessions/)
    assert.deepEqual([worker, release, detail?.sinceRelease], [1, 'r1', 'r1'])
    const [{ count, bytes, bytesPer1000Requests, file }] = present(detail?.holders) as unknown as Holder[]
    assert.deepEqual([path.basename(file), count >= Number(detail?.requests) / 2], ['keeps-sessions.cjs', true])
    // Each request leaves a row of 1,500 numbers.
    assert.ok(bytesPer1000Requests > 10e6 && bytesPer1000Requests < 60e6 && bytes > 20e6, JSON.stringify(detail))
    assert.deepEqual(existsSync(path.join(deck.folder, 'heaps')), false)
  })
})
