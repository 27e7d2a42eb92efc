import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorCode } from '../../../server/errors.ts'
import { startRollout, finishTurn, giveUp, holdRollout, steerRollout, takeTurn } from '../../../server/fleet/rollout.ts'

const by = { at: '2026-01-01T00:00:00.000Z', actor: 'ada' }
const { at } = by

function open (batches: string[][], wanted: Partial<Parameters<typeof startRollout>[1]> = {}) {
  return startRollout(null, { ...by, id: 1, uid: 'one', app: 'shop', kind: 'deploy', source: {}, batches, pauseMs: 0,
    deadlineMs: 60_000, onFailure: 'hold', absent: [], note: null, ...wanted })
}

function turn (rollout: ReturnType<typeof open>, member: string, state: 'succeeded' | 'failed' | 'reverted') {
  return finishTurn(takeTurn(rollout, member, { at, boot: 'boot' }), member, { at, state })
}

function told ({ state, turns, reason }: ReturnType<typeof open>): string {
  return `${state}: ${Object.values(turns).map((each) => each.state).join(', ')}${reason ? `; ${reason}` : ''}`
}

test('an operator may do what fits the state; all else is refused, as is the next rollout before one is over', () => {
  const running = open([['a'], ['b']])
  const back = steerRollout(turn(running, 'a', 'succeeded'), 'abort', by)
  for (const [rollout, orders, next] of [[running, 'paused state rolled-back', 'running'], [
    turn(running, 'a', 'succeeded'),
    'paused state rolling-back',
    'running'
  ], [steerRollout(running, 'pause', by), 'state running rolled-back', 'running'], [turn(running, 'a', 'failed'),
    'state running rolled-back', 'free'], [back, 'state state state', 'running'], [turn(back, 'a', 'reverted'),
    'ended ended ended', 'free']] as const)
  {
    const told = (order: 'pause' | 'resume' | 'abort') => {
      try {
        return steerRollout(rollout, order, by).state
      } catch (error) {
        return errorCode(error)?.replace('rollout-', '')
      }
    }
    assert.equal((['pause', 'resume', 'abort'] as const).map(told).join(' '), orders, rollout.state)
    const begin = () => startRollout(rollout, { ...running, at, actor: 'bob' })
    if (next === 'free') begin()
    else assert.throws(begin, { code: 'rollout-running', message: /^Rollout 1 of the fleet \(deploy by ada\) is / })
  }
})

test('whoever is given up as the last one ends the rollout', () => {
  const held = holdRollout(takeTurn(turn(open([['a'], ['b']]), 'a', 'succeeded'), 'b', { at, boot: 'boot' }), { at,
    reason: 'b is late', member: 'b' })
  assert.equal(told(giveUp(steerRollout(held, 'resume', by), ['b'], by)), 'failed: succeeded, failed; 1 of 2 failed: b')
})

test('thousands that are given up are told in no time, the last of them in the timeline', () => {
  const names = Array.from({ length: 2000 }, (_, n) => `m${n}`)
  const all = takeTurn(open([names]), 'm0', { at, boot: 'boot' })
  const held = holdRollout({ ...all, turns: Object.fromEntries(names.map((name) => [name, all.turns.m0])) }, { at,
    reason: 'm0 is late', member: 'm0' })
  const begun = process.cpuUsage()
  const given = giveUp(steerRollout(held, 'resume', by), names, by)
  assert.ok(process.cpuUsage(begun).user < 500_000, 'half a second of CPU time')
  assert.ok(
    Object.values(given.turns).every(({ state, reason }) =>
      state === 'failed' && reason === 'given up by ada: it did not answer'
    )
  )
  assert.deepEqual(given.timeline.slice(-2).map(({ type, member }) => [type, member]), [['turn-failed', 'm1999'], [
    'failed',
    null
  ]])
})

test('a rollout that was taken back in part, and then went on, has not succeeded', () => {
  const back = takeTurn(
    steerRollout(turn(turn(open([['a'], ['b'], ['c']]), 'a', 'succeeded'), 'b', 'succeeded'), 'abort', by),
    'b',
    { at, boot: 'boot' }
  )
  const held = holdRollout(finishTurn(back, 'b', { at, state: 'reverted' }), { at, reason: 'a has not begun its turn',
    member: 'a' })
  assert.equal(told(turn(steerRollout(held, 'resume', by), 'c', 'succeeded')),
    'failed: succeeded, reverted, succeeded; 1 of 3 rolled back: b')
})

test('late is whoever was given up, not who was in its turn while another one failed', () => {
  const both = takeTurn(takeTurn(open([['a', 'b']]), 'a', { at, boot: 'boot' }), 'b', { at, boot: 'boot' })
  const failed = finishTurn(both, 'a', { at, state: 'failed', reason: 'a worker crashed' })
  assert.equal(finishTurn(failed, 'b', { at, state: 'succeeded' }).turns.b.isLate, false)
  const again = finishTurn(failed, 'b', { at, state: 'failed', reason: 'a worker crashed' })
  assert.equal(told(again), 'held: failed, failed; a: a worker crashed', 'the reason is that of the first')
  const late = holdRollout(both, { at, reason: 'b is late', member: 'b' })
  assert.equal(finishTurn(late, 'b', { at, state: 'succeeded' }).turns.b.isLate, true)
})
