import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startDeckHere } from '../support/deck-here.js'
import { hammer, openFreshConnections } from '../support/load.js'
import { createReleases } from '../support/releases.js'

describe('no dropped request', () => {
  for (const keepAlive of [true, false]) {
    const how = keepAlive ? 'keep-alive' : 'one connection a request'
    test(`three rolling deploys and a restart-all under 32 connections, ${how}: no error, nothing but 2xx`, async (t) => {
      const deck = await startDeckHere(t, 'answers-with-pid.js')
      await deck.until({ ready: 2 })
      const load = hammer(t, await deck.appUrl(), { keepAlive })
      for (const kind of /** @type {const} */ (['deploy', 'deploy', 'deploy', 'restart'])) {
        const rollout = await deck.rollout(kind)
        assert.equal(rollout.state, 'succeeded', rollout.reason)
        assert.deepEqual(rollout.progress, { total: 2, replaced: 2 })
      }
      await load.untilAnswered(1000)
      const { total, failures } = await load.stop()
      t.diagnostic(`${total} requests`)
      assert.deepEqual(failures, [])
    })
  }

  test('every worker SIGKILLed at once, twice, under 200 fresh connections a second: none fails, and the history tells each death', async (t) => {
    const deck = await startDeckHere(t, 'answers-with-pid.js')
    await deck.until({ ready: 2 })
    const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 200 })
    for (let round = 1; round <= 2; round++) {
      await load.untilAnswered(round * 200)
      const { workers } = await deck.until({ ready: 2 })
      await load.whenIdle(() => {
        for (const { pid } of workers) process.kill(pid, 'SIGKILL')
      })
      for (const { id } of workers) await deck.untilEvent((event) => event.type === 'worker.exited' && event.worker === id, `the exit of worker ${id}`)
      await deck.until({ ready: 2 })
    }
    await load.untilAnswered(600)
    const { total, failures, slowestMs } = await load.stop()
    t.diagnostic(`${total} requests, the slowest took ${slowestMs} ms`)
    assert.deepEqual(failures, [])

    const exits = await deck.history('type=worker.exited')
    assert.deepEqual(exits.map(({ signal, cause, code }) => ({ signal, cause, code })), Array(4).fill({ signal: 'SIGKILL', cause: 'killed', code: null }))
    const restarts = await deck.history('type=worker.restarted')
    assert.deepEqual(restarts.map(({ slot }) => slot).sort(), [1, 1, 2, 2])
  })

  for (const [name, source, reason, flags] of /** @type {const} */ ([
    ['throws at load', "throw new TypeError('no configuration at all')", /worker \d+ \(slot 1\) exited with code 1 before it was ready: TypeError: no configuration at all/, []],
    ['never gets ready', 'setInterval(() => {}, 1000)', /worker \d+ \(slot 1\) was not ready within 1500 ms/, ['--rollout-limits-ready-timeout-ms', '1500']]
  ])) {
    test(`a release that ${name}: the deploy fails with the reason, the old workers serve on, no request fails`, async (t) => {
      const releases = await createReleases('answers-with-pid.js')
      const deck = await startDeckHere(t, releases.entry, { flags: [...flags] })
      const { workers } = await deck.until({ ready: 2 })
      const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 200 })
      await releases.add('bad', source)
      await load.untilAnswered(100)
      const rollout = await deck.rollout('deploy')
      await load.untilAnswered(200)
      const { total, failures } = await load.stop()
      t.diagnostic(`${total} requests`)

      assert.equal(rollout.state, 'failed')
      assert.match(rollout.reason, reason)
      assert.deepEqual(failures, [])
      const after = await deck.until({ ready: 2 })
      assert.deepEqual(after.workers.map((/** @type {any} */ { id }) => id), workers.map((/** @type {any} */ { id }) => id))
      assert.equal(after.release.id, 'r1')

      // A crash now must not bring the bad release in by the back door.
      process.kill(after.workers[0].pid, 'SIGKILL')
      await deck.untilEvent((event) => event.type === 'worker.ready' && event.worker > after.workers[1].id && event.slot === 1, 'a replacement')
      const body = /** @type {any} */ (await (await fetch(await deck.appUrl())).json())
      assert.equal(body.release, 'r1')
    })
  }
})
