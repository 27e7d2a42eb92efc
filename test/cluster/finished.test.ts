import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import type { DeckClient } from '../support/deck-client.ts'

function job (policy: string, how: string[] = []) {
  const file = path.join(tempFolder(), 'begun')
  return { flags: ['--restart-policy', policy], args: [file, ...how],
    begun: () => readFileSync(file, 'utf8').trim().split('\n').sort() }
}

const untilFinished = (deck: DeckClient, slots: number) =>
  deck.untilStatus(
    ({ workers, rollout }) =>
      !rollout && workers.length === slots && workers.every(({ state }) => state === 'finished'),
    `${slots} finished slots`
  )

const isReady = async (deck: DeckClient) => (await fetch(`${deck.adminUrl}/readyz`)).status

describe('programs that come to their end', { concurrency: 3 }, () => {
  test('with on-failure a job that exits 0 is done: once in each slot, no crash, the master stays, and a restart does it again', async (t) => {
    const { begun, ...options } = job('on-failure')
    const deck = await startDeckHere(t, 'does-a-job.js', options)
    const { readyWorkers, finishedWorkers, health, workers } = await untilFinished(deck, 2)
    assert.deepEqual([readyWorkers, finishedWorkers, health.tone, health.text], [0, 2, 'ok',
      'All 2 workers have finished'])
    assert.deepEqual([workers[0].finished?.code, workers[0].finished?.succeeded, workers[0].restarts], [0, true, 0])
    assert.equal(await isReady(deck), 200)
    assert.match(deck.output.stdout, /slot\.finished Slot 1 is finished: worker \d exited with code 0/)
    const { state } = await deck.rollout('restart')
    await untilFinished(deck, 2)
    assert.deepEqual([state, begun()], ['succeeded', ['1', '1', '2', '2']])
    assert.deepEqual((await deck.history('type=worker.exited')).map(({ cause }) => cause), Array(4).fill('finished'))
    assert.deepEqual((await deck.api('/crashes')).body.items, [])
  })

  test('with never one that throws is not started again, but its crash is on record, and nobody calls it ready', async (t) => {
    const { begun, ...options } = job('never', ['throws'])
    const deck = await startDeckHere(t, 'does-a-job.js', { ...options, workers: 1 })
    const { workers: [row], finishedWorkers, health } = await untilFinished(deck, 1)
    assert.deepEqual([row.finished?.succeeded, finishedWorkers, health.tone], [false, 0, 'bad'])
    assert.match(health.text, /slot 1 ended with an error$/)
    assert.equal(await isReady(deck), 503)
    await deck.untilEvent('worker.exited')
    assert.match(JSON.stringify((await deck.api('/crashes')).body.items), /the job has failed/)
    assert.deepEqual(begun(), ['1'])
  })

  rareTest('so is one that says how it ends', async (t) => {
    const { begun, ...options } = job('on-failure', ['0'])
    await untilFinished(await startDeckHere(t, 'does-a-job.js', { ...options, workers: 1 }), 1)
    assert.deepEqual(begun(), ['1'])
  })

  rareTest('one that waits for a message goes on, as below any parent', async (t) => {
    const file = path.join(tempFolder(), 'waits.cjs')
    writeFileSync(file, 'process.once(\'message\', () => {})\n')
    const deck = await startReadyHere(t, file, { workers: 1,
      flags: ['--restart-policy', 'on-failure', '--ready-signal', 'online'] })
    await deck.post('/messages', { type: 'go' })
    await untilFinished(deck, 1)
  })
})
