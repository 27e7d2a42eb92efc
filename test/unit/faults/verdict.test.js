import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isClean, judge } from '../../faults/verdict.js'

const KILLED = 77
const KILLED_AT = 1000
const GRACE_MS = 50
const DAMAGE = { lost: new Map([[KILLED, { at: KILLED_AT, graceMs: GRACE_MS }]]) }
const LEDGER = /** @type {any} */ ({
  begun: new Map([['fresh-1', [77]], ['fresh-2', [78]], ['fresh-7', [77, 78]], ['http2-1', [77, 78]]]),
  accepted: new Map([['80:4000', 77], ['80:4001', 78]])
})

/** @param {Partial<import('../../faults/clients.js').Exchange>} failure */
function judged (failure, damage = /** @type {import('../../faults/verdict.js').Damage} */ (DAMAGE)) {
  const exchange = { id: 'fresh-9', startedAt: 900, endedAt: 1100, connection: undefined, failure: 'ECONNRESET', isHung: false, isIdle: false, ...failure }
  return judge({ name: 'fresh', requests: 10, failures: [exchange] }, { ...LEDGER, begun: new Map([...LEDGER.begun].filter(([id]) => id !== 'fresh-7')) }, damage)
}

for (const [title, failure, isExcusable] of /** @type {[string, Partial<import('../../faults/clients.js').Exchange>, boolean][]} */ ([
  ['begun by the process that was killed', { id: 'fresh-1' }, true],
  ['begun by another process', { id: 'fresh-2' }, false],
  ['begun by the process that was killed, but failed before that', { id: 'fresh-1', endedAt: 999 }, false],
  ['begun by the process that was killed, and failed while that still answers what it has', { id: 'fresh-1', endedAt: KILLED_AT + GRACE_MS - 1 }, false],
  ['not sent, as the connection of the process that was killed had ended', { connection: '80:4000', endedAt: KILLED_AT, isIdle: true }, true],
  ['sent over a connection of the process that was killed', { connection: '80:4000' }, true],
  ['sent over a connection of another process', { connection: '80:4001' }, false],
  ['known to nobody, under way in that moment', { connection: '80:4002' }, true],
  ['known to nobody, sent afterwards', { connection: '80:4002', startedAt: 1001 }, false],
  ['without an answer for too long, whoever had it', { id: 'fresh-1', isHung: true }, false],
  ['refused, which no process does', { failure: 'ECONNREFUSED' }, false]
])) {
  test(`a request ${title} is ${isExcusable ? '' : 'not '}excusable`, () => {
    const cell = judged(failure)
    assert.deepEqual([cell.failed, cell.excusable, cell.hung, isClean(cell)], [1, Number(isExcusable), Number(failure.isHung ?? false), isExcusable])
    assert.equal(cell.evidence.length, Number(!isExcusable))
  })
}

test('once a deck was told to stop, a connection may be refused or reset, but not after somebody has accepted it', () => {
  for (const [failure, stoppedAt, isExcusable] of /** @type {[any, number, boolean][]} */ ([
    [{ failure: 'ECONNREFUSED' }, 1500, true],
    [{ failure: 'ECONNREFUSED' }, 2500, false],
    [{ failure: 'ECONNRESET', connection: '80:4002' }, 1500, true],
    [{ failure: 'ECONNRESET', connection: '80:4002' }, 2500, false],
    [{ failure: 'ECONNRESET', connection: '80:4001' }, 1500, false]
  ])) assert.equal(isClean(judged({ ...failure, endedAt: 2000 }, { lost: new Map(), stoppedAt })), isExcusable)
})

test('a request that was begun twice is not clean, even if it was answered', () => {
  const cell = judge({ name: 'fresh', requests: 10, failures: [] }, LEDGER, DAMAGE)
  assert.deepEqual([cell.twice, isClean(cell), cell.evidence], [1, false, ['fresh-7: begun by 77 and 78']])
})

test('a load that has asked for nothing is not clean', () => {
  const cell = judge({ name: 'fresh', requests: 0, failures: [] }, /** @type {any} */ ({ begun: new Map(), accepted: new Map() }), DAMAGE)
  assert.deepEqual([isClean(cell), cell.evidence], [false, ['nothing was asked']])
})
