import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROLLOUT_STATES, toFleetRollout, TURN_STATES, versionOf } from '../../../server/fleet/page-rollout-parts.ts'
import { nextState, STATES, type FleetRollout } from '../../../server/fleet/document.ts'
import { finishTurn, holdRollout, noteCrash, steerRollout, takeTurn } from '../../../server/fleet/rollout.ts'
import { afterTurnsOf, aMember, aRollout, failedTurnOf, inTurnOf } from '../../support/fake-fleet.ts'

const AT = '2026-01-01T12:30:00.000Z'
const BY = { at: AT, actor: 'ada' }

/** @returns where each host is, and what its row has passed */
const rows = (rollout: FleetRollout) =>
  Object.fromEntries(
    toFleetRollout(rollout).rows.map(({ member, cells }) => [member, cells.map(({ column, label, isNow }) =>
      isNow ? `${column}: ${label}` : column
    ).join(', ')])
  )

test('offers what the rollout takes in each state, and nothing else', () => {
  for (const state of Object.keys(STATES) as (keyof typeof STATES)[]) {
    const taken = (['pause', 'resume', 'abort'] as const).filter((order) => nextState(state, order))
    assert.deepEqual(ROLLOUT_STATES[state].orders.toSorted(), taken.toSorted(), state)
    assert.equal(ROLLOUT_STATES[state].isOver, Object.keys(STATES[state].moves).length === 0, state)
  }
  assert.deepEqual(Object.keys(TURN_STATES), ['pending', 'running', 'succeeded', 'failed', 'reverting', 'reverted',
    'skipped'])
})

test('a host goes through the matrix from the left to the right, forward and back', () => {
  const started = aRollout(['a', 'b', 'c', 'd'], { batches: [['a'], ['b', 'c'], ['d']] })
  assert.deepEqual(rows(started), { a: 'waiting: next', b: 'waiting: waiting', c: 'waiting: waiting',
    d: 'waiting: waiting' })
  const half = inTurnOf(afterTurnsOf(started, 'a'), 'b')
  assert.deepEqual(rows(half), { a: 'waiting, running, done: done', b: 'waiting, running: running', c: 'waiting: next',
    d: 'waiting: waiting' })
  const failed = failedTurnOf(half, 'c', 'it does not start')
  assert.deepEqual(rows(failed), { a: 'waiting, running, done: done', b: 'waiting, running: running',
    c: 'waiting, running, done: failed', d: 'waiting: waiting' })
  const back = steerRollout(finishTurn(failed, 'b', { at: AT, state: 'reverted' }), 'abort', BY)
  assert.equal(rows(back).b, 'waiting, running, back: rolled back')
  const backed = finishTurn(takeTurn(back, 'a', { at: AT, boot: 'boot' }), 'a', { at: AT, state: 'reverted' })
  assert.deepEqual(rows(backed), { a: 'waiting, running, done, rolling-back, back: rolled back',
    b: 'waiting, running, back: rolled back', c: 'waiting, running, done: failed', d: 'waiting: not reached' })
  assert.deepEqual(toFleetRollout(half).columns.map(({ label }) => label), ['Waiting', 'Running', 'Done'])
  assert.deepEqual(toFleetRollout(backed).columns.map(({ label }) => label), ['Waiting', 'Running', 'Done',
    'Rolling back', 'Rolled back'])
})

test('says how far it is, and how long each host took by its own clock', () => {
  const own = { id: 9, kind: 'deploy', state: 'rolling', replaced: 1, total: 2 }
  const rollout = inTurnOf(afterTurnsOf(aRollout(['a', 'b', 'c']), 'a'), 'b')
  const view = toFleetRollout(rollout, { members: [aMember({ member: 'b', rollout: own })] })
  assert.deepEqual(view.progress, { total: 3, done: 1, failed: 0, word: 'done' })
  assert.equal(view.rows[0].cells.at(-1)?.tookMs, 4200)
  // Another rollout of its own is not its turn.
  assert.equal(view.rows[1].own, null)
  const inTurn = toFleetRollout(rollout, { members: [aMember({ member: 'b', rollout: own, turnOf: rollout.uid })] })
  assert.equal(inTurn.rows[1].own, own)
})

test('of hundreds of hosts those are shown that matter now, in their order', () => {
  const names = Array.from({ length: 300 }, (_, index) => `host-${String(index).padStart(3, '0')}`)
  const rollout = inTurnOf(afterTurnsOf(aRollout(names), ...names.slice(0, 150)), names[150])
  const { rows, hidden } = toFleetRollout(rollout, { mostRows: 12 })
  assert.deepEqual([rows.length, hidden], [12, 288])
  assert.deepEqual(rows.map(({ member }) => member), names.slice(147, 159))
  const over = toFleetRollout(afterTurnsOf(rollout, ...names.slice(151)), { mostRows: 12 })
  assert.equal(over.rows.length, 12)
})

test('each change of the document is another version', () => {
  const started = aRollout(['a', 'b'])
  const documents = [null, started, inTurnOf(started, 'a'), afterTurnsOf(started, 'a'),
    steerRollout(started, 'pause', BY)]
  assert.equal(new Set(documents.map(versionOf)).size, documents.length)
})

test('each new crash is shown once, with its hosts and a way to it, and what holds the rollout is not said twice', () => {
  const crash = { group: 4, fingerprint: 'v1:lamp', text: 'RangeError: no price for "lamp"' }
  const begun = afterTurnsOf(aRollout(['a', 'b', 'c']), 'a', 'b')
  const held = noteCrash(begun, 'a', { at: AT, crash })
  const both = noteCrash(steerRollout(held, 'resume', BY), 'b', { at: AT, crash: { ...crash, group: 9 } })
  const viewOf = (rollout: FleetRollout, url: string | null) =>
    toFleetRollout(rollout, { members: [aMember({ member: 'a', url })] })
  const { reason, faults, controls } = viewOf(held, 'https://a.example.com/')
  assert.deepEqual([reason, faults], [null, [{ release: 'r4', text: crash.text, hosts: 'a',
    url: 'https://a.example.com/crashes/4' }]])
  assert.deepEqual(controls.map(({ order }) => order), ['abort', 'resume'])
  const resumed = viewOf(both, null)
  assert.deepEqual([resumed.stateView.label, resumed.faults.map(({ hosts, url }) => [hosts, url])], ['running', [[
    'a and b',
    '/crashes?member=a'
  ]]])
  assert.deepEqual([viewOf(held, null).plan.onFailure, resumed.plan.onFailure], [
    'a failure or a new crash holds the rollout',
    `resumed by ${BY.actor} after a new crash`
  ])
  assert.deepEqual(resumed.rows.map(({ hasCrashed }) => hasCrashed), [true, true, false])
  const late = holdRollout(both, { at: AT, reason: 'c is late' })
  assert.deepEqual([viewOf(late, null).reason, viewOf(late, null).faults.length], ['c is late', 1])
})
