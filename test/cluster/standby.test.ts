import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { attempt } from '../../server/errors.ts'
import { above } from '../support/event-log.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startDeck } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { openFreshConnections } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { withoutNativeCalls } from '../support/service-manager.ts'
import { until } from '../support/until.ts'
import type { DeckClient } from '../support/deck-client.ts'

const STANDBY = ['--standby', '1']
const APP = 'sees-its-slot-late.js'
const port = String(await freePort())

describe('a worker on standby', () => {
  test('takes over the slot of a worker that is killed, knows its slot from where it listens, and is followed by the next one; no request fails', async (t) => {
    const deck = await startDeckHere(t, APP, { workers: 3, flags: STANDBY })
    const { standby: { workers: [first] }, workers } = await standing(deck)
    const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 100 })
    await load.untilAnswered(20)
    await load.whenIdle(() => process.kill(present(workers[1].pid), 'SIGKILL'))

    const promoted = await deck.untilEvent('worker.promoted')
    assert.deepEqual([promoted.worker, promoted.slot, promoted.message], [first.id, 2,
      `standby worker ${first.id} took over slot 2`])
    const { standby: { workers: [second] }, workers: rows } = await standing(deck)
    assert.ok(second.id > first.id)
    assert.ok(
      rows.some(({ id, slot, pid, logSlot }) => id === first.id && slot === 2 && pid === first.pid && logSlot === 0)
    )
    await load.untilAnswered(100)
    await load.checkNoneLost()

    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(deck)))
    const own = answers.find(({ pid }) => pid === first.pid)
    assert.deepEqual([own?.before, own?.atListen, own?.now], [[null, null], ['2', '1'], ['2', '1']])
    assert.match(readFileSync(path.join(deck.folder, 'logs/slot-0.stdout.log'), 'utf8'),
      new RegExp(`^loaded by ${first.pid}$`, 'm'))
    const { body } = await deck.api('/logs?slot=0')
    assert.deepEqual(body.items.map(({ slot, text }) => [slot, text]),
      [first, second].map(({ pid }) => [0, `loaded by ${pid}`]))
    const forked = (await deck.history(`type=worker.forked&worker=${first.id}`))[0]
    assert.equal(forked.slot, null)
    const { stdout } = await runCliHere(['status', '--data-dir', deck.folder])
    assert.match(stdout, new RegExp(`^standby  1 of 1 ready: worker ${second.id} \\(pid ${second.pid}`, 'm'))
  })

  for (const [way, flags, app = APP, env = {}, isRare = false] of [['a worker that says "ready"', ['--ready-signal',
    'message'], APP, {}, true], ['one that counts as ready once it runs', ['--ready-signal', 'online'], APP, {}, true],
    ['one that is asked and warmed up first', ['--ready-path', '/', '--ready-warmup', '/', '--ready-warmup-rounds',
      '3'], APP, {}, true], ['one that has clients of its own', ['--dispatch', 'sticky']], ['one on a Unix socket', [],
    'unix-socket.js', { SOCKET_PATH: path.join(tempFolder(), 'app.sock') }, true], ['one that looks for a free port',
    [], 'looks-for-a-free-port.js', { PORT: port }, true]] as [string, string[], string?, Record<string, string>?,
      boolean?][])
  {
    test(`works for ${way}`, {
      skip: (isRare && rareOnly) ||
        (flags.includes('sticky') &&
          ((process.platform !== 'linux' && 'the kernel has no such groups') || withoutNativeCalls))
    }, async (t) => {
      const deck = await startDeckHere(t, app, { workers: 1, flags: [...STANDBY, ...flags], env })
      const { standby: { workers: [first] }, workers: [{ pid }] } = await standing(deck)
      process.kill(present(pid), 'SIGKILL')
      const { worker } = await deck.untilEvent(
        ({ type, slot, worker: id }) => type === 'worker.ready' && slot === 1 && Number(id) >= first.id,
        'the next worker'
      )
      assert.equal(worker, first.id)
      if (app === APP) assert.equal((await ask(deck)).pid, first.pid)
    })
  }

  rareTest('ends with its master, and the next one has its own', async (t) => {
    const deck = await startDeck(t, APP, { workers: 1, flags: STANDBY, env: { ALONE: 'on' } })
    const { standby: { workers: [first] } } = await standing(deck)
    await deck.loseMaster()
    const { standby: { workers: [second] } } = await standing(deck)
    assert.notEqual(second.pid, first.pid)
    await until(() => !isAlive(present(first.pid)), 'the end of the one whose master has died')
    const { message } = await deck.untilEvent('worker.exited', { worker: first.id })
    assert.match(String(message), /^standby worker \d+ /)

    assert.equal((await deck.post('/upgrade', {})).status, 202)
    await deck.meetNext()
    const { standby: { workers: [third] } } = await standing(deck)
    assert.equal(isAlive(present(second.pid)), false)
    await deck.stop()
    assert.equal(isAlive(present(third.pid)), false)
  })
})

describe('an app whose workers cannot stand by', () => {
  rareTest('as they die meanwhile: they wait longer each time, and a deploy succeeds', async (t) => {
    const deck = await startReadyHere(t, 'throws-on-standby.js', { workers: 1,
      flags: [...STANDBY, '--restart-min-delay-ms', '100', '--restart-max-delay-ms', '60000'] })
    let last = 0
    for (let count = 1; count <= 3; count++) {
      const { id, worker, cause, message } = await deck.untilEvent('worker.exited', { id: above(last) })
      last = id
      assert.deepEqual([cause, message], ['boot-failure',
        `standby worker ${worker} exited with code 1 before it was ready: Error: no slot`])
    }
    const [third, second] = (await deck.history('type=worker.forked')).map(({ at }) => Date.parse(at))
    assert.ok(third - second >= 80, 'with the usual backoff')
    const { state, crashes } = await deck.rollout('deploy')
    assert.deepEqual([state, crashes], ['succeeded', 0])
    assert.equal((await deck.status()).readyWorkers, 1)
  })

  for (const [how, app, flags, reason] of [['as it does not listen', 'never-listens.js', ['--ready-signal', 'online',
    '--ready-timeout-ms', '500'],
    /did not listen within 500 ms \(option ready.timeoutMs\), and standby workers need an app that does: none is kept/],
    ['as it asks for its slot while it loads', 'asks-for-its-slot.js', [],
      /has read NODE_APP_INSTANCE while it loaded \(.*asks-for-its-slot\.js:5:\d+\), and a standby worker has no slot yet: none is kept/]] as [
      string,
      string,
      string[],
      RegExp
    ][])
  {
    rareTest(`${how} has none, and that is told once`, async (t) => {
      const deck = await startDeckHere(t, app, { workers: 1, flags: [...STANDBY, ...flags] })
      const { message, worker } = await deck.untilEvent('standby.useless')
      assert.match(String(message), reason)
      await deck.untilEvent('worker.exited', { worker })
      const { standby, workers: [{ pid }] } = await deck.status()
      assert.deepEqual([standby.workers, standby.wanted, standby.ready], [[], 1, 0])
      assert.match(String(standby.problem), /^standby worker \d+ /)
      process.kill(present(pid), 'SIGKILL')
      await deck.untilEvent('worker.ready', { worker: above(Number(worker)) })
      assert.equal((await deck.history('type=standby.useless')).length, 1)
    })
  }
})

async function standing (deck: Pick<DeckClient, 'untilStatus'>) {
  return await deck.untilStatus(
    ({ readyWorkers, desiredWorkers, standby }) =>
      readyWorkers === desiredWorkers && standby.ready === standby.wanted && standby.wanted > 0 &&
      standby.workers.length === standby.wanted,
    'workers, and one on standby'
  )
}

type Answer = { pid: number, before: string[], atListen: string[], now: string[] }

async function ask (deck: Pick<DeckClient, 'ask'>): Promise<Answer> {
  return JSON.parse(await deck.ask())
}

function isAlive (pid: number) {
  // ESRCH
  return attempt(() => process.kill(pid, 0), false)
}
