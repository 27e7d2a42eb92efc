import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { createSources } from '../support/sources.ts'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { DeckClient } from '../support/deck-client.ts'

/** `slot`: kills its worker, and waits for what has come of it */
async function killWorker (deck: DeckClient, slot: number, isOutcome: (event: DeckEvent) => boolean) {
  const { workers, lastEventId } = await deck.status()
  process.kill(present(workers.find((row) => row.slot === slot)?.pid), 'SIGKILL')
  return await deck.untilEvent((event) => event.id > lastEventId && event.slot === slot && isOutcome(event),
    `what comes of slot ${slot}`)
}

/** `file`: that was written once, after the deploy */
function changeOf (file: string) {
  const { mtimeMs, ctimeMs } = statSync(file)
  return { kind: 'code', count: 1, files: [file], since: new Date(Math.min(mtimeMs, ctimeMs)).toISOString(), by: null }
}

const isReady = ({ type }: DeckEvent) => type === 'worker.ready'
const isHeld = ({ type }: DeckEvent) => type === 'slot.held'

describe('drift of a release that runs in its own folder', { concurrency: true }, () => {
  test('a worker that is replaced after an edit in place is marked, in status, history and by event; a deploy makes it good', async (t) => {
    const { app, write } = createSources()
    const deck = await startReadyHere(t, app, { flags: ['--drain-idle-grace-ms', '100'] })
    const file = write('nested', 2)
    const { worker } = await killWorker(deck, 1, isReady)
    const status = await deck.status()
    assert.deepEqual(status.workers.map((row) => [row.slot, row.drifted, row.driftedSince !== null, row.release]), [[1,
      true, true, 'r1'], [2, false, false, 'r1']])
    const [event, ...others] = await deck.history('type=worker.drifted')
    assert.deepEqual([event.worker, event.slot, event.release, event.detail, others], [worker, 1, 'r1', changeOf(file),
      []])
    assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout, /r1 \+ changes/)

    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const after = await deck.status()
    assert.deepEqual(after.workers.map((row) => [row.drifted, row.release]), [[false, 'r2'], [false, 'r2']])
    await killWorker(deck, 2, isReady)
    assert.equal((await deck.history('type=worker.drifted')).length, 1)
  })

  rareTest('with hold the slot waits, until the files are back or something is deployed', async (t) => {
    const { app, write } = createSources()
    const deck = await startReadyHere(t, app, {
      flags: ['--releases-on-drift', 'hold', '--drain-idle-grace-ms', '100']
    })
    const file = write('required', 2)
    const held = await killWorker(deck, 1, isHeld)
    assert.deepEqual([held.release, held.detail], ['r1', changeOf(file)])
    const { workers: [row], readyWorkers } = await deck.status()
    assert.deepEqual([row.state, row.drifted, row.pid, readyWorkers], ['held', true, null, 1])
    const { status, body } = await deck.post('/rollouts', { kind: 'restart' })
    assert.deepEqual([status, body.code], [409, 'drifted'])
    assert.match(String(body.detail), /files of r1 changed/)

    write('required', 1)
    await deck.untilEvent('slot.resumed')
    await deck.until({ ready: 2 })

    writeFileSync(file, 'exports.required = 3')
    await killWorker(deck, 2, isHeld)
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    await deck.until({ ready: 2 })
    const answers = await Promise.all(Array.from({ length: 8 }, async () => JSON.parse(await deck.ask()).required))
    assert.deepEqual(answers, Array(8).fill(3))
    assert.equal((await deck.history('type=worker.drifted')).length, 0)
  })
})
