import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createDrainLimits } from '../../../workers/drain-limits.ts'
import { CLOSE_MS } from '../../../workers/endings.ts'
import { createLongLived } from '../../../workers/long-lived.ts'
import { until } from '../../support/until.ts'
import type { DrainLimits } from '../../../workers/protocol.ts'
import type { AnySocket } from '../../../workers/node-internals.d.ts'

const LIMITS = Object.freeze({ idleGraceMs: 2000, deadlineMs: 30_000, stalledMs: 10_000, longLivedMs: 0,
  spreadMs: 30_000, isLast: false })

/** A worker that drains and has nothing to answer. */
function begin (limits: Partial<DrainLimits>) {
  let at = 0
  const seen: unknown[] = []
  const longLived = { ...createLongLived(), end: (how: object) => {
    seen.push({ at, ...how })
  } }
  const nothing = { waiting: [], transfers: [] }
  const work = { longLived, look: () => nothing, cutIdle () {}, cutRequests () {}, cutConnections () {} }
  const drainLimits = createDrainLimits({ limits: { ...LIMITS, ...limits }, work,
    onEnd: () => seen.push({ at, sessions: 'end' }), onHolds () {}, onOverdue () {}, now: () => at })
  return (...moments: number[]) => {
    for (at of moments) drainLimits.look(0)
    return seen
  }
}

describe('what is long-lived ends in a drain', () => {
  test('in the second half of the deadline where it may not stay, as an answer that comes as a stream of events may end by itself in the first. Sessions end at once', () => {
    assert.deepEqual(begin({})(0, 100, 14_900, 15_000, 29_000), [{ at: 0, sessions: 'end' }, { at: 15_000,
      spreadMs: 15_000 - CLOSE_MS, isLast: false }])
  })

  test('within the time over which the option spreads it, where that is shorter', () => {
    assert.deepEqual(begin({ spreadMs: 500 })(0, 15_000).at(-1), { at: 15_000, spreadMs: 500, isLast: false })
  })

  test('once its time is over where it may stay, and so do sessions', () => {
    assert.deepEqual(begin({ longLivedMs: 60_000 })(0, 15_000, 59_900, 60_000, 60_100), [{ at: 60_000,
      sessions: 'end' }, { at: 60_000, spreadMs: 30_000, isLast: false }])
  })

  test('at once where nobody serves after the worker', () => {
    assert.deepEqual(begin({ isLast: true, spreadMs: 0 })(0, 100), [{ at: 0, sessions: 'end' }, { at: 0, spreadMs: 0,
      isLast: true }])
  })
})

test('a stream that begins while others are being ended has the rest of their time', async () => {
  const longLived = createLongLived()
  const ended: [name: string, code: number, ms: number][] = []
  const add = (name: string) =>
    longLived.add({ name } as object as AnySocket, 'eventStreams', (code) =>
      ended.push([name, code, performance.now() - beganAt]))
  add('first')
  const beganAt = performance.now()
  longLived.end({ spreadMs: 200, isLast: false })
  add('late')
  await until(() => ended.length === 2, 'the end of both')
  const [, code, ms] = ended.find(([name]) => name === 'late') ?? []
  assert.equal(code, 1012)
  assert.ok(Number(ms) > 190, `after ${ms} ms`)
  await until(() => performance.now() - beganAt >= 200, 'the end of their time')
  add('after them')
  assert.deepEqual([ended.at(-1)?.[0], longLived.closed.eventStreams], ['after them', 3])
})
