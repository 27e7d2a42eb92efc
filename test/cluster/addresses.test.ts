import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test } from 'node:test'
import { askPath, get } from '../support/asking.ts'
import { startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { above } from '../support/event-log.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const urlOf = (port: number) => `http://127.0.0.1:${port}`

describe('where an app listens', { concurrency: 2 }, () => {
  rareTest(
    'an app that moves when its port is busy cannot leave it: a restart fails and names both addresses, after a death it is made free for the next worker, and the next master expects its workers there',
    async (t) => {
      const port = await freePort()
      const deck = await startReady(t, 'moves-when-its-port-is-busy.js', { workers: 1, env: { PORT: String(port) } })
      const { workers: [{ pid }] } = await deck.status()
      const { state, reason } = await deck.rollout('restart')
      assert.equal(state, 'failed')
      assert.match(String(reason),
        new RegExp(
          `^worker 2 \\(slot 1\\) listens on http://127\\.0\\.0\\.1:\\d+, but the worker before it on http://127\\.0\\.0\\.1:${port} \\(option ready\\.addresses: same\\)$`
        ))
      assert.equal(await get(urlOf(port)), String(pid))
      // The one that has moved is on its way out.
      assert.deepEqual((await deck.until({ ready: 1 })).app.addresses, [urlOf(port)])

      process.kill(Number(pid), 'SIGKILL')
      const hasMoved = { message: /listens on .* but the worker before it on/ }
      await deck.untilEvent('worker.draining', { worker: 3, ...hasMoved })
      const { workers: [next], lastEventId } = await deck.until({ ready: 1 })
      assert.equal(await get(urlOf(port)), String(next.pid))

      await deck.loseMaster()
      await deck.untilEvent('worker.draining', { id: above(lastEventId), ...hasMoved })
      assert.equal(await get(urlOf(port)), String(next.pid), 'the worker of the dead master goes on')
    }
  )

  rareTest('with ready.addresses "any" it may move, and connections to the old address are refused, not left waiting',
    async (t) => {
      const port = await freePort()
      const deck = await startReadyHere(t, 'moves-when-its-port-is-busy.js', { workers: 1, env: { PORT: String(port) },
        flags: ['--ready-addresses', 'any'] })
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      const { app: { addresses: [address] } } = await deck.until({ ready: 1 })
      assert.match(await get(address), /^\d+$/)
      await until(async () => await get(urlOf(port)).catch(({ code }) => code) === 'ECONNREFUSED',
        'the old address to be closed')
    })

  test('an app that looks for a free port finds the one it wants: at the start, in a restart, after a death', async (t) => {
    const port = await freePort()
    const deck = await startDeckHere(t, 'looks-for-a-free-port.js', { env: { PORT: String(port) } })
    const { workers } = await deck.until({ ready: 2 })
    const here = [`http://localhost:${port}`]
    assert.deepEqual((await deck.status()).app.addresses, here)
    const listening = await deck.history('type=worker.listening')
    assert.deepEqual(listening.map(({ message }) => message), [...here, ...here],
      'what it only looked at is none of its addresses')
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.deepEqual((await deck.status()).app.addresses, here)
    const [one] = (await deck.until({ ready: 2 })).workers
    assert.ok(!workers.some(({ pid }) => pid === one.pid))
    process.kill(one.pid, 'SIGKILL')
    await deck.untilEvent('worker.ready', { slot: one.slot, worker: above(one.id) })
    assert.deepEqual((await deck.status()).app.addresses, here)
    assert.match(await deck.ask(), /^\d+$/)
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
  })

  rareTest('whoever looks for a free port is not ready by that', async (t) => {
    const deck = await startDeckHere(t, 'looks-for-a-free-port.js', { workers: 1,
      env: { PORT: String(await freePort()), LATER: '100000' }, flags: ['--ready-timeout-ms', '4000'] })
    const { type } = await deck.untilEvent(['worker.draining', 'worker.ready'], { worker: 1 })
    // Its timer is all that it does: see test/cluster/no-server.test.ts.
    assert.equal(type, 'worker.ready')
    assert.deepEqual((await deck.status()).app.addresses, [])
    assert.deepEqual(await deck.history('type=worker.listening'), [])
  })

  rareTest('a worker that listens twice is ready once it has both, and so is its successor', async (t) => {
    const deck = await startReadyHere(t, 'listens-twice.js', { workers: 1,
      env: { PORT: String(await freePort()), SECOND_PORT: String(await freePort()) } })
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const events = (await deck.history('limit=100&type=worker.listening,worker.ready')).reverse()
    assert.deepEqual(events.map(({ type, worker }) => `${type} ${worker}`), ['worker.listening 1', 'worker.listening 1',
      'worker.ready 1', 'worker.listening 2', 'worker.listening 2', 'worker.ready 2'])
  })

  rareTest('a Unix socket in the abstract namespace is shared, and rolled, as any other', async (t) => {
    const name = `clusterdeck-test-${process.pid}-${path.basename(tempFolder())}`
    const deck = await startReadyHere(t, 'abstract-socket.js', { env: { SOCKET_NAME: name } })
    assert.deepEqual((await deck.status()).app.addresses, [`unix:@${name}`])
    const before = await askPath(`\0${name}`)
    assert.match(before, /^\d+$/)
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const after = await askPath(`\0${name}`)
    assert.match(after, /^\d+$/)
    assert.notEqual(after, before)
  })
})
