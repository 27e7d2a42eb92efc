import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isClean, judge, type Damage } from '../../faults/verdict.ts'
import type { Exchange } from '../../faults/clients.ts'

const KILLED = 77
const KILLED_AT = 1000
const GRACE_MS = 50
const DAMAGE = { lost: new Map([[KILLED, { at: KILLED_AT, graceMs: GRACE_MS }]]) }
const OTHER = 78
const LEDGER = { begun: new Map([['fresh-7', [77, 78]], ['http2-1', [77, 78]]]) }
const NOTHING = { begun: new Map() }

function judged (failure: Partial<Exchange>, damage = (DAMAGE as Damage)) {
  const exchange = { id: 'fresh-9', startedAt: 900, endedAt: 1100, connection: undefined, isFirst: false,
    failure: 'ECONNRESET', owner: undefined, isHung: false, isIdle: false, isToldToLeave: false, ...failure }
  return judge({ name: 'fresh', requests: 10, failures: [exchange] }, NOTHING, damage)
}

for (const [title, failure, isExcusable] of [['that the killed process had', { owner: KILLED }, true], [
  'that another process had',
  { owner: OTHER },
  false
], ['that the killed process had, but that failed before', { owner: KILLED, endedAt: KILLED_AT - 1 }, false], [
  'that failed while the killed process still answers what it has',
  { owner: KILLED, endedAt: KILLED_AT + GRACE_MS - 1 },
  false
], ['that was not sent, as the connection of the killed process had ended', { owner: KILLED, endedAt: KILLED_AT,
  isIdle: true }, true], [
  'that the killed process ended in the way of a long-lived connection, while it answered others',
  { owner: KILLED, endedAt: KILLED_AT, isToldToLeave: true },
  true
], ['that another process ended in the way of a long-lived connection', { owner: OTHER, isToldToLeave: true }, false], [
  'that nobody knows, under way in that moment',
  {},
  true
], ['that nobody knows, sent afterwards', { startedAt: KILLED_AT + 1 }, false], [
  'without an answer for too long, whoever had it',
  { owner: KILLED, isHung: true },
  false
], ['that was refused, which no process does', { failure: 'ECONNREFUSED' }, false]] as [string, Partial<Exchange>,
  boolean][])
{
  test(`a request ${title} is ${isExcusable ? '' : 'not '}excusable`, () => {
    const cell = judged(failure)
    assert.deepEqual([cell.failed, cell.excusable, cell.hung, isClean(cell)], [1, Number(isExcusable),
      Number(failure.isHung ?? false), isExcusable])
    assert.equal(cell.evidence.length, Number(!isExcusable))
  })
}

test('once a deck was told to stop, a connection may be refused or reset, or a long-lived one ended in its own way, but a request that somebody has accepted is answered', () => {
  for (const [failure, stoppedAt, isExcusable] of [[{ failure: 'ECONNREFUSED' }, 1500, true], [{
    failure: 'ECONNREFUSED'
  }, 2500, false], [{ failure: 'ECONNRESET' }, 1500, true], [{ failure: 'ECONNRESET' }, 2500, false], [{
    failure: 'ECONNRESET',
    owner: OTHER
  }, 1500, false], [{ failure: 'closed with 1001', owner: OTHER, isToldToLeave: true }, 1500, true], [{
    failure: 'closed with 1001',
    owner: OTHER,
    isToldToLeave: true
  }, 2500, false], [{ failure: 'closed between two messages', owner: OTHER, isIdle: true }, 1500, true]] as [object,
    number, boolean][])
    assert.equal(isClean(judged({ ...failure, endedAt: 2000 }, { lost: new Map(), stoppedAt })), isExcusable)
})

test('a request that was begun twice is not clean, even if it was answered', () => {
  const cell = judge({ name: 'fresh', requests: 10, failures: [] }, LEDGER, DAMAGE)
  assert.deepEqual([cell.twice, isClean(cell), cell.evidence], [1, false, ['fresh-7: begun by 77 and 78']])
})

test('a load that has asked for nothing is not clean', () => {
  const cell = judge({ name: 'fresh', requests: 0, failures: [] }, NOTHING, DAMAGE)
  assert.deepEqual([isClean(cell), cell.evidence], [false, ['nothing was asked']])
})
