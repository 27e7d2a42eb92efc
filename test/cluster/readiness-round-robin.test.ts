import assert from 'node:assert/strict'
import { test } from 'node:test'
import { get, keepAsking } from '../support/asking.ts'
import { rareTest } from '../support/rare.ts'
import { supervised } from '../support/supervised.ts'

const FLAGS = Object.freeze({ dispatch: 'round-robin', readyPath: '/health', readyIntervalMs: 20 })

test('round-robin: the master hands nobody to a worker that is not ready, and no request fails or waits for it', async (t) => {
  const { deck, release, url, until } = await supervised(t, 'tells-who-asked.js', { flags: FLAGS,
    args: ['--unhealthy', '5'] })
  await until('worker.ready')
  const load = keepAsking(t, `${url()}/`)
  deck.dispatch({ type: 'rollout', kind: 'deploy', release, actor: 'test' })
  await until('rollout.succeeded')
  const { asked, failed } = await load.end()
  assert.deepEqual([failed, asked > 10], [[], true], `${asked} asked`)
  const { connectionsBefore, seen } = JSON.parse(await get(`${url()}/seen`))
  assert.equal(connectionsBefore, 0)
  assert.deepEqual(seen[0], { listening: true, port: true }, 'it believed that it listens')
})

rareTest('round-robin: while nobody is ready connections wait, and are answered then', async (t) => {
  const { url, until } = await supervised(t, 'tells-who-asked.js', { flags: FLAGS, args: ['--unhealthy', '4'] })
  await until('worker.listening')
  const answers = Promise.all([1, 2, 3].map(() => get(`${url()}/`)))
  const { pid } = await until('worker.ready')
  assert.deepEqual(await answers, [pid, pid, pid].map(String))
  assert.equal(JSON.parse(await get(`${url()}/seen`)).connectionsBefore, 0)
})

rareTest('round-robin: connections that were offered to a worker that dies before it is ready go to the others',
  async (t) => {
    const { deck, url, until } = await supervised(t, 'tells-who-asked.js', {
      flags: { ...FLAGS, readyTimeoutMs: 30_000 },
      args: ['--unhealthy', '1']
    })
    await until('worker.ready')
    const load = keepAsking(t, `${url()}/`)
    deck.dispatch({ type: 'scale', workers: 2, actor: 'test' })
    const { worker } = await until('worker.listening', 2)
    deck.dispatch({ type: 'kill-worker', worker, actor: 'test' })
    await until('worker.exited')
    await until('worker.ready', 2)
    assert.deepEqual((await load.end()).failed, [])
  })
