import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import WebSocket from 'ws'
import { identifyProcess, isAlive, signalProcess } from '../../server/system/process-identity.ts'
import { holdsFileOf, type OrphanOrder } from '../../workers/protocol.ts'
import { startDeck, startReady } from '../support/deck.ts'
import { openFreshConnections } from '../support/load.ts'
import { present } from '../support/present.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { statusOf } from '../support/process-figures.ts'
import { until } from '../support/until.ts'
import type { OrphanIdentity } from '../../server/cluster/orphan-handle.ts'

const ALONE = ['--no-keeper']

/** What a worker does whose master has died. */
describe('orphan', { concurrency: 2 }, () => {
  rareTest(
    'one that a living master has claimed goes on, one whose claim is a dead one\'s or another process\'s does not',
    async (t) => {
      const { orphans, lose } = await startToLose(t, 'answers-with-pid.js', { workers: 3,
        flags: [...ALONE, '--orphan-ms', '3000'] })
      const deadMaster = await lose()
      const [claimed, abandoned, mistaken] = orphans
      tell(claimed, { claimedBy: process.pid, drain: null })
      tell(abandoned, { claimedBy: deadMaster, drain: null })
      tell(mistaken, { pid: claimed.pid, claimedBy: process.pid, drain: null })
      await until(() => !isAlive(abandoned) && !isAlive(mistaken), 'those to end that nobody has claimed')
      assert.equal(isAlive(claimed), true)

      tell(claimed, { claimedBy: process.pid,
        drain: { idleGraceMs: 0, deadlineMs: 1000, stalledMs: 0, longLivedMs: 0, spreadMs: 0, isLast: false } })
      await until(() => !isAlive(claimed), 'the end of the last one')
    }
  )

  rareTest('one that was draining ends when its time is up, though no master comes to end it', async (t) => {
    const { deck, orphans: [orphan], lose } = await startToLose(t, 'answers-with-pid.js', { workers: 1,
      flags: [...ALONE, '--drain-deadline-ms', '1000'] })
    const hanging = await fetch(`${await deck.appUrl()}/?ms=60000&begin`)
    await deck.post('/rollouts', { kind: 'restart' })
    await deck.untilEvent('worker.draining', { worker: 1 })
    const [, { pid: next }] = await deck.history('type=worker.ready').then((events) => events.reverse())
    const successor = identifyProcess(present(next))
    await lose()
    t.after(() => signalProcess(successor, 'SIGKILL'))
    await until(() => !isAlive(orphan), 'its end')
    await assert.rejects(hanging.text())
    assert.equal(isAlive(successor), true, 'it is waiting for the next master')
  })

  for (const app of ['boots-slowly.js', 'never-listens.js']) {
    test(`a worker that is starting ends with its master: ${app}`, { skip: app === 'never-listens.js' && rareOnly },
      async (t) => {
        const deck = await startDeck(t, app, { workers: 1, flags: ALONE, env: { BOOT_MS: '10000' } })
        const { pid } = await deck.untilEvent('worker.online')
        const worker = identifyProcess(present(pid))
        deck.signal('SIGKILL')
        await deck.exited
        await until(() => !isAlive(worker), 'its end')
      })
  }

  rareTest('one that drains keeps its WebSockets, writes down what it holds, and closes them once it is told to',
    async (t) => {
      const { deck, orphans: [orphan], lose } = await startToLose(t, 'websocket-echo.js', { workers: 1, flags: ALONE })
      const client = new WebSocket((await deck.appUrl()).replace('http', 'ws'))
      await once(client, 'open')
      await lose()
      const limits = { idleGraceMs: 0, deadlineMs: 200, stalledMs: 0, longLivedMs: 60_000, spreadMs: 0, isLast: false }
      tell(orphan, { claimedBy: process.pid, drain: limits })
      const holds = () => JSON.parse(readFileSync(holdsFileOf(orphan.orderFile), 'utf8'))
      await until(() => existsSync(holdsFileOf(orphan.orderFile)), 'what it holds')
      assert.deepEqual(holds(), { pid: orphan.pid, requests: 0, transfers: 0, webSockets: 1, eventStreams: 0,
        connections: 0, sessions: 0 })
      const before = statSync(holdsFileOf(orphan.orderFile)).mtimeMs
      await until(() => statSync(holdsFileOf(orphan.orderFile)).mtimeMs > before,
        'a sign of life, long after the deadline')
      client.send('still here')
      assert.equal(String((await once(client, 'message'))[0]), `${orphan.pid} still here`)
      tell(orphan, { claimedBy: process.pid, drain: { ...limits, longLivedMs: 0 } })
      assert.equal((await once(client, 'close'))[0], 1012)
      await until(() => !isAlive(orphan), 'its end')
    })

  rareTest('one whose app leaves its cluster, by whatever call, is replaced first, drains and counts as no crash',
    async (t) => {
      const deck = await startReady(t, 'disconnects-itself.js', { workers: 1 })
      const fresh = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
      for (const [index, way] of ['disconnect', 'leave', 'kill', 'documented'].entries()) {
        await fetch(`${await deck.appUrl()}/${way}`)
        const exit = await deck.untilEvent('worker.exited', { worker: index + 1 })
        assert.deepEqual([exit.code, exit.signal, exit.cause], [0, null, 'app-request'], way)
        assert.match(String(exit.message), new RegExp(`the app of worker ${index + 1} asked to be replaced`))
        const ready = await deck.untilEvent('worker.ready', { worker: index + 2 })
        assert.ok(ready.id < exit.id, 'new before old')
      }
      await fresh.checkNoneLost()
      for (let worker = 5; worker < 9; worker++) {
        const { at } = await deck.untilEvent('worker.ready', { worker })
        await until(() => Date.now() - Date.parse(at) > 1000, 'a second of its life')
        await fetch(`${await deck.appUrl()}/exit`)
        const exit = await deck.untilEvent('worker.exited', { worker })
        assert.deepEqual([exit.code, exit.signal, exit.cause], [0, null, 'app-request'])
      }
      const { status, events } = { status: await deck.until({ ready: 1 }), events: await deck.history('limit=1000') }
      assert.equal(status.workers[0].crashLooping, false)
      assert.deepEqual(events.filter(({ type, detail }) => type === 'worker.restarted' && Number(detail?.delayMs) > 0),
        [])
      assert.deepEqual((await deck.api('/crashes')).body.items, [])
    })

  test('its app does not notice: what it sends is lost without an error, and it hears no disconnect', async (t) => {
    const { deck, orphans: [orphan], lose } = await startToLose(t, 'reports-to-its-parent.js', { workers: 1,
      flags: ALONE })
    const url = await deck.appUrl()
    const masterPid = await lose()
    t.after(() => signalProcess(orphan, 'SIGKILL'))
    const ask = async () => (await fetch(url)).json()
    const expected = { pid: orphan.pid, heard: [], isConnected: true }
    assert.deepEqual(await ask(), expected)
    await until(() => statusOf(orphan.pid, 'PPid') !== masterPid, 'another parent')
    assert.deepEqual(await Promise.all([1, 2, 3].map(ask)), [expected, expected, expected])
  })

  rareTest('output that nobody reads any more does not end it', async (t) => {
    const { deck, orphans: [orphan], lose } = await startToLose(t, 'writes-with-every-request.js', { workers: 1,
      flags: ALONE })
    const url = await deck.appUrl()
    const masterPid = await lose()
    t.after(() => signalProcess(orphan, 'SIGKILL'))
    await until(() => statusOf(orphan.pid, 'PPid') !== masterPid, 'another parent')
    await fetch(`${url}/quiet`)
    deck.child.stdout.destroy()
    for (let n = 0; n < 3; n++) assert.equal(await (await fetch(`${url}/loud`)).text(), String(orphan.pid))
  })
})

/** @returns what the first workers are known by, and a function that kills their master and returns its pid */
async function startToLose (t: TestContext, app: string,
  options: NonNullable<Parameters<typeof startDeck>[2]> & { workers: number })
{
  const deck = await startDeck(t, app, options)
  await deck.until({ ready: options.workers })
  const { workers }: { workers: { identity: OrphanIdentity }[] } = JSON.parse(
    readFileSync(path.join(deck.folder, 'memory.json'), 'utf8')
  )
  const orphans = workers.map(({ identity }) => identity)
  const lose = async () => {
    deck.signal('SIGKILL')
    await deck.exited
    return deck.masterPid
  }
  return { deck, orphans, lose }
}

function tell ({ pid, orderFile }: OrphanIdentity, order: Partial<OrphanOrder>) {
  writeFileSync(orderFile, JSON.stringify({ pid, ...order }))
}
