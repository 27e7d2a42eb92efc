import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { above } from '../support/event-log.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { createReleases } from '../support/releases.ts'

describe('no dropped request', () => {
  test('three rolling deploys and a restart-all under 16 connections that are kept and 16 that are opened for each request: no error, nothing but 2xx', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js')
    const url = await deck.appUrl()
    const loads = [true, false].map((keepAlive) => hammer(t, url, { keepAlive, connections: 16 }))
    for (const kind of ['deploy', 'deploy', 'deploy', 'restart'] as const) {
      const rollout = await deck.rollout(kind)
      assert.equal(rollout.state, 'succeeded', rollout.reason ?? undefined)
      assert.deepEqual(rollout.progress, { total: 2, replaced: 2 })
    }
    for (const load of loads) {
      await load.untilAnswered(500)
      const { total } = await load.checkNoneLost()
      t.diagnostic(`${total} requests`)
    }
  })

  test('every worker SIGKILLed at once, twice, under 100 fresh connections a second: none fails, and the history tells each death', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js')
    const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 100 })
    for (let round = 1; round <= 2; round++) {
      await load.untilAnswered(round * 50)
      const { workers } = await deck.until({ ready: 2 })
      await load.whenIdle(() => {
        for (const { pid } of workers) process.kill(pid, 'SIGKILL')
      })
      for (const { id } of workers)
        await deck.untilEvent('worker.exited', { worker: id })
      await deck.until({ ready: 2 })
    }
    await load.untilAnswered(200)
    const { total, failures, slowestMs } = await load.stop()
    t.diagnostic(`${total} requests, the slowest took ${slowestMs} ms`)
    assert.deepEqual(failures, [])

    const exits = await deck.history('type=worker.exited')
    assert.deepEqual(exits.map(({ signal, cause, code }) => ({ signal, cause, code })),
      Array(4).fill({ signal: 'SIGKILL', cause: 'killed', code: null }))
    const restarts = await deck.history('type=worker.restarted')
    assert.deepEqual(restarts.map(({ slot }) => slot).sort(), [1, 1, 2, 2])
  })

  test('a release that throws at load or never gets ready: the deploy fails with the reason, the old workers serve on, no request fails', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const deck = await startDeckHere(t, releases.entry, { flags: ['--rollout-limits-ready-timeout-ms', '4000'] })
    const { workers } = await deck.until({ ready: 2 })
    const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
    for (const [name, source, reason] of [['throws', 'throw new TypeError(\'no configuration at all\')',
      /worker \d+ \(slot 1\) exited with code 1 before it was ready: TypeError: no configuration at all/], ['waits',
      'setInterval(() => {}, 1000)', /worker \d+ \(slot 1\) was not ready within 4 s/]] as const)
    {
      await releases.add(name, source)
      const rollout = await deck.rollout('deploy')
      assert.equal(rollout.state, 'failed')
      assert.match(String(rollout.reason), reason)
      const after = await deck.until({ ready: 2 })
      assert.deepEqual(after.workers.map(({ id }) => id), workers.map(({ id }) => id))
      assert.equal(after.release.id, 'r1')
    }
    const { total } = await load.checkNoneLost()
    t.diagnostic(`${total} requests`)

    // A crash now must not bring the bad release in by the back door.
    process.kill(workers[0].pid, 'SIGKILL')
    await deck.untilEvent('worker.ready', { worker: above(workers[1].id), slot: 1 })
    const body = await (await fetch(await deck.appUrl())).json() as { release: string }
    assert.equal(body.release, 'r1')
  })
})
