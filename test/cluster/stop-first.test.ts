import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FEW, hammer } from '../support/load.ts'
import { startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

// A client on a busy machine may be late with what it asks over a new connection.
const STOP_FIRST = ['--rollout-order', 'stop-first', '--drain-idle-grace-ms', '1000']

const codes = (exits: DeckEvent[]) => exits.map(({ cause, code, signal }) => `${cause} ${code ?? signal}`).reverse()

describe('rollout.order stop-first', { concurrency: 3 }, () => {
  test('no two workers live side by side: in a restart, a deploy, after a SIGKILL and beside what a dead master left; requests wait', async (t) => {
    const port = await freePort()
    const deck = await startReady(t, 'holds-a-lock.js', { workers: 1, flags: STOP_FIRST, args: [`clusterdeck-${port}`],
      env: { PORT: String(port) } })
    const load = hammer(t, `http://127.0.0.1:${port}/`, FEW)
    for (const kind of ['restart', 'deploy'] as const) assert.equal((await deck.rollout(kind)).state, 'succeeded')
    const { total, failures } = await load.stop()
    assert.deepEqual([failures, total > 10], [[], true], `${total} asked`)
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    process.kill(pid, 'SIGKILL')
    await deck.untilEvent('worker.ready', { worker: 4 })
    await deck.loseMaster()
    await deck.untilStatus(
      ({ readyWorkers, workers }) => readyWorkers === 1 && workers.length === 1 && Number(workers[0].id) > 4,
      'its successor'
    )
    assert.deepEqual(codes(await deck.history('type=worker.exited')), ['restart 0', 'deploy 0', 'killed SIGKILL',
      'master-lost 0'])
  })
})

rareTest('restart.cron restarts all workers at its time, and skips one that meets another rollout', async (t) => {
  const deck = await startDeckHere(t, 'boots-slowly.js', { workers: 1, flags: ['--restart-cron', '* * * * * *'],
    env: { BOOT_MS: '1200' } })
  const { nextRestartAt } = await deck.status()
  assert.ok(Date.parse(String(nextRestartAt)) - Date.now() <= 1000, String(nextRestartAt))
  const started = await deck.untilEvent('rollout.started')
  assert.deepEqual([started.actor, started.cause], ['cron', 'restart'])
  const { message } = await deck.untilEvent('restart.skipped')
  assert.match(String(message), /^the restart by restart\.cron is skipped: rollout \d+ \(restart\) is running$/)
  await deck.untilEvent('rollout.succeeded')
})
