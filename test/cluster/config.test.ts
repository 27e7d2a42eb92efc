import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { type Deck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { serveHttp } from '../support/http-server.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import type { DeckClient } from '../support/deck-client.ts'

// The connections of fetch() stay open, and no drain need wait for them.
const PATIENT = ['--drain-deadline-ms', '600000', '--drain-idle-grace-ms', '100']

type Asked = Pick<Deck, 'api'>

async function change ({ api }: Asked, wanted: Record<string, unknown>, tag?: string) {
  const { headers } = await api('/config')
  return await api('/config', { method: 'PATCH', body: JSON.stringify(wanted),
    headers: { 'if-match': tag ?? String(headers.get('etag')) } })
}

async function setting ({ api }: Asked, name: string) {
  const { body } = await api('/config')
  return present(body.items.find((item) => item.name === name))
}

/** A worker that would drain for ten minutes is let go at once. */
async function restartsDespiteSlowRequest (deck: DeckClient) {
  const { workers: [{ id }] } = await deck.status()
  const slow = fetch(`${await deck.appUrl()}/?ms=600000&begin`).then((response) => response.text()).catch(() => 'cut')
  await fetch(`${await deck.appUrl()}`)
  const rollout = await deck.rollout('restart')
  assert.equal(rollout.state, 'succeeded')
  await deck.untilEvent('worker.exited', { worker: id })
  assert.equal(await slow, 'cut')
}

describe('a change of options while the cluster runs', () => {
  test('counts from then on, for the workers that run already', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js', { workers: 1, flags: PATIENT })
    const { status, headers, body } = await change(deck, { 'drain.deadlineMs': 100 })
    assert.equal(status, 200)
    assert.equal(headers.get('etag'), (await deck.api('/config')).headers.get('etag'))
    const [shown] = body.items.filter(({ source }) => source === 'operator')
    assert.deepEqual([shown.name, shown.value, shown.default], ['drain.deadlineMs', 100, 30_000])
    await restartsDespiteSlowRequest(deck)
    assert.equal((await change(deck, { 'drain.deadlineMs': 100 }, '*')).status, 200)
    const [event, ...others] = await deck.history('type=config.changed')
    assert.deepEqual(others, [], 'what changes nothing is no change')
    assert.deepEqual([event.actor, event.message, event.detail], ['the owner\'s token',
      'drain.deadlineMs from 600000 to 100', { changes: [{ name: 'drain.deadlineMs', from: 600_000, to: 100 }] }])
  })

  rareTest(
    'makes the watchdog watch, the logs shorter and the alerts others, at once and without a word of their secrets',
    async (t) => {
      const { server: heard, url } = await serveHttp(t, (_request, response) => {
        response.end()
      })
      const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1,
        flags: ['--watchdog-timeout-ms', '0', '--watchdog-stack', 'off'] })
      const { workers: [{ id, pid }] } = await deck.until({ ready: 1 })
      const secret = 'a secret of its own'
      const told = once(heard, 'request')
      const { status, body } = await change(deck, { 'watchdog.timeoutMs': 2000, 'logs.maxBytes': 65_536,
        alerts: [{ kind: 'webhook', url, secret, events: ['worker.unresponsive'] }] })
      assert.equal(status, 200)
      process.kill(pid, 'SIGSTOP')
      const exit = await deck.untilEvent('worker.exited', { worker: id })
      assert.equal(exit.cause, 'hung')
      await told
      const [event] = await deck.history('type=config.changed')
      assert.deepEqual(event.detail?.changes?.at(-1), { name: 'logs.maxBytes', from: 10_485_760, to: 65_536 })
      assert.deepEqual(event.detail?.changes?.find(({ name }) => name === 'alerts'), { name: 'alerts', from: null,
        to: null })
      assert.ok(!JSON.stringify([body, event]).includes(secret))
      const wrong = await change(deck, { alerts: [{ kind: 'webhook', url, secret: 'too short' }] })
      assert.deepEqual([wrong.status, wrong.body.code], [422, 'invalid-config'])
      assert.match(String(wrong.body.detail), /^alerts: expected a list of .*; wrong is alerts\[0\]\.secret$/)
    }
  )

  rareTest(
    'reaches into the workers that run: how many requests they may begin, and how long a crash lets the others finish',
    async (t) => {
      const deck = await startDeckHere(t, 'dies-on-request.cjs', { workers: 1,
        flags: ['--drain-idle-grace-ms', '100', '--crash-grace-ms', '0', '--restart-min-delay-ms', '1'] })
      const { workers: [{ id }] } = await deck.until({ ready: 1 })
      const url = await deck.appUrl()
      for (let asked = 0; asked < 3; asked++) await (await fetch(url)).text()
      assert.equal((await change(deck, { 'recycle.maxRequests': 3 })).status, 200)
      const due = await deck.untilEvent('worker.exited', { worker: id })
      assert.equal(due.cause, 'max-requests')

      assert.equal((await change(deck, { 'recycle.maxRequests': 0, 'crash.graceMs': 5000 })).status, 200)
      const slow = fetch(`${url}/slow?ms=500`).then((response) => response.text())
      await (await fetch(url)).text()
      fetch(`${url}/throw-in-timer`).catch(() => {})
      assert.equal(await slow, 'slow')
    }
  )

  rareTest('outlives the death of a master, an upgrade and a stop', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags: PATIENT })
    assert.equal((await change(deck, { 'drain.deadlineMs': 100 })).status, 200)
    const tag = (await deck.api('/config')).headers.get('etag')
    await deck.loseMaster()
    await deck.until({ ready: 1 })
    assert.equal((await deck.api('/config')).headers.get('etag'), tag)
    await restartsDespiteSlowRequest(deck)

    await deck.post('/upgrade', {})
    await deck.meetNext()
    await deck.untilStatus(({ readyWorkers, upgrade }) => readyWorkers === 1 && upgrade === null, 'the next master')
    const { value, source } = await setting(deck, 'drain.deadlineMs')
    assert.deepEqual([value, source], [100, 'operator'])
    await deck.until({ ready: 1 })
    await restartsDespiteSlowRequest(deck)

    await deck.stop()
    const again = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, flags: PATIENT, dataDir: deck.folder })
    const kept = await setting(again, 'drain.deadlineMs')
    assert.deepEqual([kept.value, kept.source], [100, 'operator'])
  })
})
