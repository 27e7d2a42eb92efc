import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { get } from '../support/asking.ts'
import { FEW, hammer } from '../support/load.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/** Ports that an app opens when its worker is ready already. */
async function run (t: TestContext, { workers = 2, lateMs }: { workers?: number, lateMs?: string } = {}) {
  const [port, second] = [await freePort(), await freePort()]
  const deck = await startReadyHere(t, 'opens-ports-late.js', { workers,
    env: { PORT: String(port), SECOND_PORT: String(second), RANGE: String(port + 1), LATE_MS: lateMs } })
  const url = `http://127.0.0.1:${port}`
  return { deck, url, second: `http://127.0.0.1:${second}`,
    ask: async (path: string) => JSON.parse(await get(`${url}${path}`)) }
}

/** @returns who answers there */
async function callBack (port: number): Promise<string> {
  const [text] = await once(net.connect(port, '127.0.0.1'), 'data')
  return String(text)
}

describe('ports that are opened late', { concurrency: 2 }, () => {
  test('one of the app\'s choice is shared under load, and a restart waits for it: no connection is refused', async (t) => {
    const { deck, url, second } = await run(t, { lateMs: '1500' })
    const main = hammer(t, url, FEW)
    const isSecond = ({ type, message }: DeckEvent) => type === 'worker.listening' && message === second
    for (const slot of [1, 2])
      await deck.untilEvent('worker.listening', { slot, message: second })
    const late = hammer(t, second, FEW)
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.match(await get(second), /^\d+$/)
    for (const load of [main, late]) await load.checkNoneLost()
    const events = (await deck.history('limit=100')).reverse()
    for (const slot of [1, 2]) {
      const told = events.filter((event) =>
        event.slot === slot && (isSecond(event) || event.type === 'worker.draining')
      ).map(({ type }) => type)
      assert.deepEqual(told, ['worker.listening', 'worker.listening', 'worker.draining'],
        'its old worker serves until the next one has it')
    }
    assert.deepEqual((await deck.status()).app.addresses, [url, second])
  })

  test('those for clients are each worker\'s own: whoever is told of one reaches the worker that has opened it, and the history tells of none', async (t) => {
    const { deck, url, ask } = await run(t)
    const pids = new Set()
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (const path of ['/transfer', '/tcp', '/transfer', '/tcp', '/transfer']) {
        const { pid, port } = await ask(path)
        pids.add(pid)
        assert.equal(await callBack(port), String(pid), path)
      }
    }))
    assert.equal(pids.size, 2)
    assert.deepEqual((await deck.status()).app.addresses, [url])
    assert.deepEqual((await deck.history('type=worker.listening')).map(({ message }) => message), [url, url])
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
  })

  test('a request that a draining worker still answers may open some, and its client is let in', async (t) => {
    const { deck, url, ask } = await run(t, { workers: 1 })
    const { pid } = await ask('/')
    const answers = ['/udp', '/tcp', '/transfer'].map(async (path) =>
      await (await fetch(`${url}${path}?draining`)).json() as { pid: number, port: number }
    )
    await until(async () => (await deck.api('/workers/1/requests')).body.total === 3, 'the requests')
    const restart = deck.rollout('restart')
    const [udp, ...others] = await Promise.all(answers)
    for (const answer of [udp, ...others]) assert.deepEqual([answer.pid, answer.port > 0], [pid, true])
    for (const { port } of others) assert.equal(await callBack(port), String(pid))
    assert.equal((await restart).state, 'succeeded')
    assert.notEqual((await ask('/')).pid, pid)
  })

  rareTest('thousands that are closed again cost no budget', async (t) => {
    const { deck, ask } = await run(t, { workers: 1 })
    assert.equal((await ask('/many?count=3000')).port, 3000)
    assert.equal((await ask('/second')).port > 0, true)
    assert.equal((await deck.history('type=unexpected')).length, 0)
  })
})
