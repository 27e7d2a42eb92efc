import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import fc from '../../support/fast-check.ts'
import { rareTest } from '../../support/rare.ts'
import { openHistory, type History } from '../../../db/history.ts'
import { openSqlite } from '../../../db/sqlite.ts'
import { createEventStream, type NewEvent, type DeckEvent } from '../../../server/events/stream.ts'
import { fake } from '../../support/fake.ts'
import { errorCode } from '../../../server/errors.ts'
import type { TestContext } from 'node:test'
import type { EventQuery } from '../../../db/event-search.ts'
import type { Count } from '../../../db/event-counts.ts'

const START_MS = Date.parse('2026-01-01T00:00:00.000Z')
const DAY_MS = 24 * 60 * 60 * 1000

function setUp (t: TestContext, options: Partial<Parameters<typeof openHistory>[0]> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'clusterdeck-history-'))
  const file = join(folder, 'history.db')
  const opened = [] as History[]
  t.after(() => {
    opened.forEach((history) => history.close())
    rmSync(folder, { recursive: true })
  })
  const open = () => {
    const history = openHistory({ file, ...options })
    opened.push(history)
    return history
  }
  return { folder, file, open, history: open() }
}

/** `events`: one second apart */
function publish (history: History, events: NewEvent[]) {
  let atMs = START_MS + history.lastEventId() * 1000
  const stream = createEventStream({ lastId: history.lastEventId(), now: () => (atMs += 1000) })
  stream.subscribe((event) => history.record(event))
  return events.map((event) => stream.publish(event))
}

/** Follows the cursors to the end. */
function all (history: History, query: EventQuery) {
  const items = []
  let cursor: string | null = null
  let pages = 0
  do {
    const page = history.page({ ...query, cursor })
    items.push(...page.items)
    cursor = page.next
    assert.ok(++pages < 10_000, 'the cursors come to an end')
  } while (cursor !== null)
  return items
}

const ids = (events: { id: number }[]) => events.map(({ id }) => id)

test('an event comes back as it was published, hostile text included', (t) => {
  const { history } = setUp(t)
  const [event] = publish(history, [{ type: 'worker.exited', cause: 'crash', slot: 2, worker: 7, pid: 4711,
    release: 'r3', rollout: 4, actor: 'system', code: 1, signal: 'SIGSEGV', uptimeMs: 1234,
    message: '<script>alert(1)</script> \u0000 \u001b[31m \' " ; DROP TABLE events; -- 🦆',
    detail: { stack: 'Error: 💥\n  at x', nested: { list: [1, null, true] } } }])
  assert.deepEqual(history.event(event.id), event)
  assert.deepEqual(history.page().items, [event])
  assert.equal(history.event(event.id + 1), null)
})

test('an event is on the disk when record returns: another process sees it', (t) => {
  const { history, file } = setUp(t)
  publish(history, [{ type: 'master.started' }])
  const other = openSqlite(file, { readonly: true })
  assert.equal(other.prepare('SELECT count(*) FROM events').pluck().get(), 1)
  other.close()
})

test('ids, rollouts and sessions are still there after a restart', (t) => {
  const { history, open } = setUp(t)
  const [event] = publish(history, [{ type: 'rollout.started', rollout: 5,
    detail: { id: 5, kind: 'deploy', state: 'rolling', steps: [{ slot: 1 }] } }, { type: 'release.created',
    release: 'r12' }])
  const sessions = [null, ['shop', 'mail']].map((apps, n) => ({ hash: `abc${n}`, createdAt: 1, expiresAt: 2, name: null,
    role: 'admin' as const, token: null, owner: null, apps })
  )
  for (const session of sessions) history.sessions.create(session)
  history.close()
  const again = open()
  assert.equal(again.lastEventId(), 2)
  assert.equal(again.lastRolloutId(), 5)
  assert.equal(again.lastReleaseNumber(), 12)
  assert.deepEqual(again.event(1), event)
  assert.deepEqual(again.rollout(5), { id: 5, kind: 'deploy', state: 'rolling', steps: [{ slot: 1 }] })
  for (const session of sessions) assert.deepEqual(again.sessions.find(session.hash), session)
})

test('recording an event again changes nothing', (t) => {
  const { history } = setUp(t)
  const [event] = publish(history, [{ type: 'worker.ready', message: 'first' }])
  history.record({ ...event, message: 'second' })
  assert.deepEqual(all(history, {}), [event])
})

test('what cannot be stored as it is never fails the write', (t) => {
  const { history } = setUp(t)
  const cycle: { self?: object } = {}
  cycle.self = cycle
  const [long, cyclic, odd] = publish(history, [{ type: 'worker.exited', message: 'x'.repeat(1_000_000),
    detail: { stack: 'y'.repeat(1_000_000) } }, { type: 'worker.exited', detail: cycle }, { type: 'worker.exited',
    slot: undefined, uptimeMs: 12.7, code: NaN, message: { not: 'text' } as unknown as string }])
  const stored = history.event(long.id)
  assert.equal(stored?.message?.length, 2000)
  assert.ok(stored?.message?.endsWith('…'))
  assert.equal(stored?.detail?.stack?.length, 16_000)
  assert.match(String(history.event(cyclic.id)?.detail?.unserializable), /circular/)
  const { slot, uptimeMs, code, message } = history.event(odd.id)!
  assert.deepEqual({ slot, uptimeMs, code, message }, { slot: null, uptimeMs: 13, code: null,
    message: '[object Object]' })
})

test('every combination of filters finds exactly the events that match, newest first, on any page size', (t) => {
  const { history } = setUp(t)
  const events = publish(history,
    Array.from({ length: 3000 },
      (_, n) => ({
        type:
          ['worker.ready', 'worker.exited', 'worker.forked', 'rollout.step',
            'master.started'][n % 97 === 0 ? 4 : n % 53 === 0 ? 3 : n % 3],
        cause: n % 3 === 1 ? ['crash', 'deploy'][n % 2] : null,
        slot: n % 5 === 0 ? null : n % 4 + 1,
        worker: Math.floor(n / 6),
        release: n < 1500 ? 'r1' : 'r2',
        rollout: n % 53 === 0 ? Math.floor(n / 500) + 1 : null,
        message: n % 250 === 3 ? `100% of_it \\ Failed ${n}` : `event ${n}`
      })))
  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
  const time = fc.integer({ min: -10, max: 3010 }).map((n) => START_MS + n * 1000)

  fc.assert(
    fc.property(
      fc.record({
        type: optional(
          fc.constantFrom('worker.exited', 'worker.*', 'master.started', 'nothing.*', ['worker.ready', 'rollout.*'], [
            'worker.ready',
            'no.such'
          ], 'worker.exited:crash', ['worker.exited:crash', 'worker.exited:hung', 'rollout.*'], ['worker.exited:crash',
            'worker.*'])
        ),
        cause: optional(fc.constantFrom('crash', 'deploy', 'hung')),
        slot: optional(fc.integer({ min: 1, max: 5 })),
        worker: optional(fc.integer({ min: 0, max: 500 })),
        release: optional(fc.constantFrom('r1', 'r2', 'r3')),
        rollout: optional(fc.integer({ min: 1, max: 7 })),
        since: optional(time),
        until: optional(time.map((ms) => new Date(ms).toISOString())),
        q: optional(fc.constantFrom('failed', '0% of_', 'of_it \\', '%', 'event 29', 'absent', 'CRASH')),
        limit: fc.constantFrom(1, 7, 100, 1000)
      }, { requiredKeys: ['limit'] }),
      (query) => {
        // One item a page over thousands of matches is only slow.
        fc.pre(query.limit > 1 || query.worker !== undefined || query.rollout !== undefined || query.q === 'failed')
        assert.deepEqual(ids(all(history, query)), ids(events.filter((event) => matches(event, query)).reverse()))
      }
    ),
    { numRuns: 150 }
  )
})

/** The filters, once more, in the plainest way. */
function matches (event: DeckEvent,
  { type, cause, slot, worker, release, rollout, since, until, q }: EventQuery & { since?: number, until?: string })
{
  const equals = Object.entries({ cause, slot, worker, release, rollout }).every(([key, value]) =>
    value === undefined || event[key as 'cause'] === value
  )
  const types = [type ?? []].flat()
  const isType = type === undefined ||
    types.some((one) =>
      one.endsWith('*')
        ? event.type.startsWith(one.slice(0, -1))
        : [event.type, `${event.type}:${event.cause}`].includes(one)
    )
  const atMs = Date.parse(event.at)
  const isInTime = (since === undefined || atMs >= since) && (until === undefined || atMs < Date.parse(until))
  const hasText = q === undefined ||
    [event.message, event.type, event.cause].some((text) => text?.toLowerCase().includes(q.toLowerCase()))
  return equals && isType && isInTime && hasText
}

rareTest(
  'every combination of filters counts exactly the events that match, whatever the clock did and however often the time is spent',
  (t) => {
    let isSpent = false
    let elapsedMs = 0
    const { history } = setUp(t, { clock: () => isSpent ? (elapsedMs += 1000) : 0, now: () => START_MS,
      retention: { maxEvents: 6000 } })
    const events: DeckEvent[] = []
    for (let id = 1; id <= 7500; id++) {
      // Back by an hour in the middle, and once far ahead.
      const atMs = START_MS + id * 1000 - (id > 4000 ? 3_600_000 : 0) + (id === 5000 ? DAY_MS : 0)
      events.push(
        { id, at: new Date(atMs).toISOString(), type: ['worker.ready', 'worker.exited', 'rollout.step'][id % 3],
          cause: id % 6 === 1 ? 'crash' : id % 6 === 4 ? 'deploy' : null, slot: id % 4, release: `r${id >> 11}`,
          rollout: null, message: id % 50 === 0 ? 'needle' : 'hay' } as DeckEvent
      )
    }
    for (const event of [...events, ...events.slice(7000)]) history.record(event)
    sweepAll(history)
    const kept = events.slice(1500)
    assert.deepEqual(ids(all(history, {})), ids(kept).reverse())
    const time = fc.integer({ min: START_MS, max: START_MS + 4000 * 1000 })
    const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 })
    fc.assert(
      fc.property(
        fc.record({
          type: optional(
            fc.constantFrom('worker.exited', 'worker.*', ['worker.exited:crash', 'rollout.step'], 'absent')
          ),
          cause: optional(fc.constantFrom('crash', 'deploy')),
          since: optional(time),
          until: optional(time.map((ms) => new Date(ms).toISOString()))
        }),
        fc.constantFrom({}, {}, {}, { slot: 2 }, { release: 'r2' }, { q: 'needle' }, { q: 'CRASH', slot: 1 }),
        fc.constantFrom(1000, 60_000, 3_600_000, 7 * DAY_MS),
        fc.boolean(),
        (counted, uncounted, stepMs, isSlow) => {
          const query = { ...counted, ...uncounted }
          isSpent = isSlow
          const expected = tally(
            kept.filter((event) => matches(event, query)).map(({ at, type, cause }) => ({
              step: Math.floor(Date.parse(at) / stepMs),
              type,
              cause,
              count: 1
            }))
          )
          assert.deepEqual(tally(countAll(history, { ...query, stepMs })), expected)
        }
      ),
      { numRuns: 80 }
    )
  }
)

function tally (counts: Count[]): Record<string, number> {
  const sums = {} as Record<string, number>
  for (const { step, type, cause, count } of counts)
    sums[`${step} ${type} ${cause}`] = (sums[`${step} ${type} ${cause}`] ?? 0) + count
  return Object.fromEntries(Object.entries(sums).sort(([a], [b]) => a < b ? -1 : 1))
}

function countAll (history: History, query: Parameters<History['count']>[0]) {
  const counts = []
  let cursor: string | null = null
  do {
    const piece = history.count({ ...query, cursor })
    counts.push(...piece.counts)
    cursor = piece.next
  } while (cursor !== null)
  return counts
}

test('events beside a time that is in the middle of many are not counted', (t) => {
  const { history } = setUp(t)
  publish(history, Array.from({ length: 4000 }, () => ({ type: 'worker.ready' })))
  const times = { since: START_MS + 2501 * 1000, until: START_MS + 3501 * 1000 }
  assert.deepEqual(Object.values(tally(countAll(history, { stepMs: 7 * DAY_MS, ...times }))), [1000])
})

test('counting a million events reads a few rows for each thousand', (t) => {
  const { history, file } = setUp(t)
  publish(history, Array.from({ length: 5000 }, () => ({ type: 'worker.ready' })))
  const db = openSqlite(file)
  // Whatever the rows say: where a thousand are in one step, they are not asked.
  db.exec('UPDATE events SET type = \'never.read\' WHERE id BETWEEN 1024 AND 4095')
  db.close()
  assert.deepEqual(Object.values(tally(countAll(history, { stepMs: 365 * DAY_MS, type: 'worker.ready' }))), [5000])
})

test('a time range finds events of a clock that jumped back and forth', (t) => {
  const { history } = setUp(t)
  const jumps = [0, 500, -3600, 10, 86_400, -86_400, 20]
  let id = 0
  for (const jump of jumps) {
    for (let n = 0; n < 1000; n++)
      history.record(
        fake({ id: ++id, type: 'worker.ready', at: new Date(START_MS + (jump + n) * 1000).toISOString(),
          rollout: null })
      )
  }
  const since = START_MS - 3000 * 1000
  const until = START_MS + 100 * 1000
  const expected = all(history, {}).filter(({ at }) => Date.parse(at) >= since && Date.parse(at) < until)
  assert.ok(expected.length > 200)
  assert.deepEqual(ids(all(history, { since, until })), ids(expected))
})

test('one event out of time among its neighbours is found by either end of a range', (t) => {
  const { history } = setUp(t)
  const record = (id: number, atMs: number) =>
    history.record(fake({ id, type: 'worker.ready', at: new Date(atMs).toISOString(), rollout: null }))
  record(1, START_MS)
  record(2, START_MS + DAY_MS)
  record(3, START_MS - DAY_MS)
  record(4, START_MS)
  assert.deepEqual(ids(all(history, { since: START_MS + 1 })), [2])
  assert.deepEqual(ids(all(history, { until: START_MS })), [3])
})

test('a page ends when its time is spent, and its cursor goes on where it stopped', (t) => {
  let nowMs = 0
  // Every look at the clock takes a millisecond.
  const { history } = setUp(t, { clock: () => nowMs++ })
  publish(history,
    Array.from({ length: 2000 }, (_, n) => ({ type: 'worker.ready', message: n === 3 ? 'needle' : 'hay' })))
  const first = history.page({ q: 'needle' })
  assert.deepEqual(first.items, [])
  assert.notEqual(first.next, null)
  assert.deepEqual(ids(all(history, { q: 'needle' })), [4])
  assert.ok(history.page({ limit: 1000 }).items.length < 1000)
  assert.equal(all(history, { limit: 1000 }).length, 2000)
})

test('a short list comes in one page, however slow the machine is', (t) => {
  let nowMs = 0
  const { history } = setUp(t, { clock: () => (nowMs += 1000) })
  publish(history, Array.from({ length: 40 }, () => ({ type: 'worker.exited' })))
  assert.equal(history.page({ type: 'worker.exited' }).items.length, 40)
})

test('a short list of rollouts comes in one page, however slow the machine is, and one of large ones where its time is spent', (t) => {
  let nowMs = 0
  const { history } = setUp(t, { clock: () => (nowMs += 1000) })
  const tell = (id: number, chars: number) =>
    publish(history, [{ type: 'rollout.succeeded', rollout: id,
      detail: { id, kind: 'deploy', state: 'succeeded', note: 'n'.repeat(chars) } }])
  for (let id = 1; id <= 50; id++) tell(id, 1000)
  assert.equal(history.rollouts().items.length, 50)
  for (let id = 51; id <= 60; id++) tell(id, 100_000)
  const first = history.rollouts()
  assert.deepEqual(first.items.map(({ id }) => id), [60, 59])
  assert.deepEqual(history.rollouts({ cursor: first.next }).items.map(({ id }) => id), [58, 57])
})

test('the last page has no cursor, even when it is exactly full', (t) => {
  const { history } = setUp(t)
  publish(history, Array.from({ length: 20 }, () => ({ type: 'worker.ready' })))
  const first = history.page({ limit: 10 })
  const second = history.page({ limit: 10, cursor: first.next })
  assert.deepEqual(ids(second.items), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
  assert.equal(second.next, null)
})

test('new events do not shift the pages that follow', (t) => {
  const { history } = setUp(t)
  publish(history, Array.from({ length: 20 }, () => ({ type: 'worker.ready' })))
  const { next } = history.page({ limit: 10 })
  publish(history, [{ type: 'worker.ready' }, { type: 'worker.exited' }])
  assert.deepEqual(ids(history.page({ limit: 5, cursor: next }).items), [10, 9, 8, 7, 6])
})

for (const [name, query, message] of [['a cursor that is none', { cursor: 'nonsense' },
  /^cursor: expected .* received "nonsense"/], ['a cursor of another list', {
  cursor: Buffer.from('r5').toString('base64url')
}, /^cursor: /], ['a cursor with something added', { cursor: Buffer.from('e5').toString('base64url') + '!' },
  /^cursor: /], ['a limit of 0', { limit: 0 }, /^limit: expected an integer from 1 to 1000, received 0$/], [
  'a limit above 1000',
  { limit: 1001 },
  /^limit: /
], ['a limit that is no integer', { limit: 2.5 }, /^limit: /], ['a time that is none', { since: 'yesterday' },
  /^since: expected an ISO 8601 time, received "yesterday"$/], ['a text that is too long', { q: 'x'.repeat(101) },
  /^q: expected at most 100 characters, received 101$/]] as [string, EventQuery, RegExp][])
{
  test(`${name} is refused with option, expected and received`, (t) => {
    const { history } = setUp(t)
    publish(history, [{ type: 'worker.ready' }])
    assert.throws(() => history.page(query), { name: 'DeckError', code: 'invalid-query', message })
  })
}

test('a rollout is kept as of its last event, and listed newest first', (t) => {
  const { history } = setUp(t)
  for (let id = 1; id <= 12; id++) {
    publish(history, [{ type: 'rollout.started', rollout: id,
      detail: { id, kind: 'restart', state: 'rolling', done: false, steps: [{ slot: 1, state: 'pending' }] } }, {
      type: 'rollout.step',
      rollout: id,
      detail: { id, kind: 'restart', state: 'rolling', done: false, steps: [{ slot: 1, state: 'starting' }] }
    }, { type: 'rollout.succeeded', rollout: id,
      detail: { id, kind: 'restart', state: 'succeeded', done: true, steps: [{ slot: 1, state: 'done' }] } }])
  }
  assert.deepEqual(history.rollout(3), { id: 3, kind: 'restart', state: 'succeeded', done: true,
    steps: [{ slot: 1, state: 'done' }] })
  assert.equal(history.rollout(13), null)
  const first = history.rollouts({ limit: 5 })
  assert.deepEqual(ids(first.items), [12, 11, 10, 9, 8])
  const second = history.rollouts({ limit: 7, cursor: first.next })
  assert.deepEqual(ids(second.items), [7, 6, 5, 4, 3, 2, 1])
  assert.equal(second.next, null)
  assert.throws(() => history.rollouts({ cursor: 'x' }), { code: 'invalid-query' })
})

test('what happened in a rollout is kept once, with the rollout, and with none of its events', (t) => {
  const { history, open } = setUp(t)
  const detail = { id: 1, kind: 'deploy', state: 'succeeded', steps: [{ slot: 1 }],
    timeline: [{ type: 'rollout.started' }], comparisons: [{ at: 'then' }] }
  const [event] = publish(history, [{ type: 'rollout.succeeded', rollout: 1, detail }])
  history.close()
  const again = open()
  assert.deepEqual(again.rollout(1), detail)
  assert.deepEqual(again.event(event.id)?.detail, { id: 1, kind: 'deploy', state: 'succeeded', steps: [{ slot: 1 }] })
})

test('how long rollouts took is told of those that are alike, before one, and have succeeded, and of the last ones that have ended', (t) => {
  const { history } = setUp(t)
  const end = (id: number, kind: string, state: string, ms: number, slots = 2) =>
    publish(history, [{ type: `rollout.${state}`, rollout: id,
      detail: { id, kind, state, startedAt: '2026-01-01T00:00:00.000Z',
        finishedAt: new Date(Date.parse('2026-01-01T00:00:00.000Z') + ms).toISOString(),
        steps: Array.from({ length: slots }, () => ({})) } }])
  end(1, 'deploy', 'succeeded', 1000)
  end(2, 'deploy', 'failed', 9)
  end(3, 'restart', 'succeeded', 9)
  end(4, 'deploy', 'succeeded', 9, 1)
  end(5, 'deploy', 'succeeded', 3000)
  end(6, 'deploy', 'succeeded', 2000)
  assert.deepEqual(history.rolloutDurations({ kind: 'deploy', before: 6, isOfOneSlot: false }), [3000, 1000])
  assert.deepEqual(history.rolloutDurations({ kind: 'deploy', before: 7, isOfOneSlot: true }), [9])
  const last = (slots: number, limit = 3) => ids(history.lastRollouts({ kind: 'deploy', slots, limit }))
  assert.deepEqual([last(2), last(2, 2), last(1), last(3)], [[6, 5, 2], [6, 5], [4], []])
})

test('rollouts whose master ended before they did are found, oldest first, until their end is told', (t) => {
  const { history, open } = setUp(t)
  const tell = (id: number, state: string) =>
    publish(history, [{ type: 'rollout.step', rollout: id, detail: { id, kind: 'deploy', state } }])
  assert.deepEqual(history.unfinishedRollouts(), [])
  for (const [id, state] of [[1, 'succeeded'], [2, 'rolling-back'], [3, 'failed'], [4, 'rolling']] as const)
    tell(id, state)
  assert.deepEqual(history.unfinishedRollouts(), [{ id: 2, kind: 'deploy', state: 'rolling-back' }, { id: 4,
    kind: 'deploy', state: 'rolling' }])
  tell(2, 'failed')
  history.close()
  assert.deepEqual(ids(open().unfinishedRollouts()), [4])
})

test('workers that have begun and not ended are told apart from those that have, from one event on', (t) => {
  const { history } = setUp(t)
  const [{ id: first }] = publish(history,
    ['forked', 'exited', 'forked', 'forked', 'ready', 'exited'].map((what, index) => ({ type: `worker.${what}`,
      worker: [1, 1, 1, 2, 2, 2][index], slot: 1, pid: 5000 + index, release: 'r1' })
    ))
  const open = [{ worker: 1, slot: 1, pid: 5002, release: 'r1' }]
  const told = (since: number) => {
    const { ended, open: lives } = history.workerLives(since)
    return { ended: [...ended].sort(), open: lives.map(({ startedAt, ...life }) => life) }
  }
  assert.deepEqual(told(first), { ended: [1, 2], open })
  assert.deepEqual(told(first + 2), { ended: [2], open })
})

test('the steps of a rollout are stored once, not with each of its steps', (t) => {
  const { history } = setUp(t)
  const detail = { id: 1, state: 'rolling', steps: [{ slot: 1 }], progress: { total: 1, replaced: 0 } }
  const [started, step] = publish(history, [{ type: 'rollout.started', rollout: 1, detail }, { type: 'rollout.step',
    rollout: 1, detail }])
  assert.deepEqual(history.event(started.id)?.detail, detail)
  assert.deepEqual(history.event(step.id)?.detail, { id: 1, state: 'rolling', progress: { total: 1, replaced: 0 } })
  assert.deepEqual(history.rollout(1)?.steps, [{ slot: 1 }])
})

test('sessions are found, prolonged and revoked by their hash', (t) => {
  const { history: { sessions } } = setUp(t)
  sessions.create({ hash: 'a', createdAt: 1, expiresAt: 10, name: null, role: 'admin', token: null, owner: null })
  sessions.create({ hash: 'b', createdAt: 1, expiresAt: 10, name: null, role: 'admin', token: null, owner: null })
  sessions.touch('a', 20)
  assert.equal(sessions.find('a')?.expiresAt, 20)
  assert.equal(sessions.revoke('a'), true)
  assert.equal(sessions.revoke('a'), false)
  assert.equal(sessions.find('a'), null)
  assert.equal(sessions.revokeAll(), 1)
  assert.equal(sessions.find('b'), null)
})

function sweepAll (history: History, sliceRows = 500) {
  let deleted = 0
  for (let slices = 1; slices < 10_000; slices++) {
    const result = history.sweep({ sliceRows })
    assert.ok(result.deleted <= sliceRows)
    deleted += result.deleted
    if (!result.more) return { deleted, slices }
  }
  throw new Error('the sweep does not end')
}

test('sweeping forgets what is older than the retention and never uses an id again', (t) => {
  let nowMs = START_MS
  const { history, open } = setUp(t, { now: () => nowMs, retention: { maxAgeMs: 30 * DAY_MS } })
  publish(history, Array.from({ length: 300 }, () => ({ type: 'worker.ready' })))
  publish(history, [{ type: 'release.created', release: 'r4' }, { type: 'rollout.started', rollout: 9,
    detail: { id: 9 } }])
  history.sessions.create({ hash: 'old', createdAt: 0, expiresAt: START_MS + 1, name: null, role: 'admin', token: null,
    owner: null })
  history.sessions.create({ hash: 'new', createdAt: 0, expiresAt: START_MS + 90 * DAY_MS, name: null, role: 'admin',
    token: null, owner: null })
  assert.equal(sweepAll(history).deleted, 0)
  // Events are a second apart, the first one at START_MS + 1000: the oldest 100 are past their time.
  nowMs = START_MS + 30 * DAY_MS + 101_000
  assert.ok(sweepAll(history, 30).slices > 3)
  assert.equal(ids(all(history, {})).at(-1), 101)
  assert.equal(history.sessions.find('old'), null)
  assert.notEqual(history.sessions.find('new'), null)
  nowMs += DAY_MS
  sweepAll(history)
  assert.deepEqual(all(history, {}), [])
  assert.equal(history.rollout(9), null)
  history.close()
  const again = open()
  assert.deepEqual([again.lastEventId(), again.lastRolloutId(), again.lastReleaseNumber()], [302, 9, 4])
})

test('sweeping keeps the newest events up to the count', (t) => {
  const { history } = setUp(t, { now: () => START_MS, retention: { maxEvents: 250 } })
  publish(history, Array.from({ length: 3000 }, () => ({ type: 'worker.ready' })))
  assert.equal(sweepAll(history).deleted, 2750)
  const left = ids(all(history, {}))
  assert.deepEqual([left.length, left[0], left.at(-1)], [250, 3000, 2751])
  assert.deepEqual(ids(all(history, { since: START_MS + 2990 * 1000, until: START_MS + 2992 * 1000 })), [2991, 2990])
})

test('what an app makes as often as it likes is forgotten among itself, whatever else there is, and counts stay right', (t) => {
  const { history, file, open } = setUp(t, { now: () => START_MS, retention: { maxEvents: 1500 } })
  publish(history, [{ type: 'master.started' }, ...Array.from({ length: 1199 }, () => ({ type: 'worker.ready' }))])
  publish(history,
    Array.from({ length: 6000 },
      (_, index) => ({ type: index % 2 ? 'worker.message' : 'worker.listening', cause: index % 3 ? 'chatter' : null,
        message: 'I am here' })))
  publish(history, [{ type: 'worker.exited', cause: 'crash' }])
  assert.equal(sweepAll(history).deleted, 5700)
  const left = all(history, {})
  assert.deepEqual(tally(left.map(({ type }) => ({ step: 0, type, cause: null, count: 1 }))),
    tally([{ step: 0, type: 'master.started', cause: null, count: 1 }, { step: 0, type: 'worker.ready', cause: null,
      count: 1199 }, { step: 0, type: 'worker.message', cause: null, count: 150 }, { step: 0, type: 'worker.listening',
      cause: null, count: 150 }, { step: 0, type: 'worker.exited', cause: null, count: 1 }]))
  assert.deepEqual(left.map(({ id }) => id).slice(0, 301), Array.from({ length: 301 }, (_, index) => 7201 - index),
    'the newest of them')
  assert.deepEqual(tally(countAll(history, { stepMs: 365 * DAY_MS })),
    tally(
      left.map(({ at, type, cause }) => ({ step: Math.floor(Date.parse(at) / (365 * DAY_MS)), type, cause, count: 1 }))
    ))

  // Others go by their own number, and what is older than these goes with them.
  publish(history, Array.from({ length: 1500 }, () => ({ type: 'worker.ready' })))
  sweepAll(history)
  assert.deepEqual(ids(all(history, {})), Array.from({ length: 1500 }, (_, index) => 8701 - index))
  history.close()
  const db = openSqlite(file)
  assert.deepEqual(db.prepare('SELECT type, count FROM event_totals WHERE count <> 0').all(), [{ type: 'worker.ready',
    count: 1500 }])
  assert.equal(db.prepare('SELECT sum(count) FROM span_counts').pluck().get(), 1500)
  db.close()
  assert.equal(sweepAll(open()).deleted, 0)
})

test('a cursor behind which nothing is kept any more is refused, instead of looking like the end', (t) => {
  let nowMs = START_MS
  const { history } = setUp(t, { clock: () => 0, now: () => nowMs, retention: { maxAgeMs: 30 * DAY_MS } })
  const told = Array.from({ length: 20 },
    (_, index) => ({ type: 'rollout.succeeded', rollout: index + 1, detail: { id: index + 1, state: 'succeeded' } }))
  publish(history, told)
  const lists = [history.page, history.rollouts].map((page) => ({ page, cursor: page({ limit: 10 }).next }))
  for (const { page, cursor } of lists) assert.equal(page({ limit: 10, cursor }).items.length, 10)
  nowMs = START_MS + 30 * DAY_MS + 15_000
  sweepAll(history)
  for (const { page, cursor } of lists) {
    assert.ok(page({ limit: 100 }).items.length > 0, 'the newest are kept')
    assert.throws(() => page({ limit: 10, cursor }), { code: 'cursor-expired', status: 410 })
  }
})

test('a slice ends when its time is spent', (t) => {
  let nowMs = 0
  const { history } = setUp(t, { clock: () => (nowMs += 3), now: () => START_MS, retention: { maxEvents: 10 } })
  publish(history, Array.from({ length: 600 }, () => ({ type: 'worker.ready' })))
  const { deleted, more } = history.sweep()
  assert.ok(more && deleted < 500, `${deleted} deleted`)
})

test('no page of one filter is sorted or found by reading the whole table', (t) => {
  const { history, file } = setUp(t)
  publish(history, [{ type: 'worker.ready' }])
  const prepared = [] as string[]
  const prototype = Object.getPrototypeOf(openSqlite(':memory:'))
  const { prepare } = prototype
  t.mock.method(prototype, 'prepare', function (this: unknown, sql: string) {
    prepared.push(sql)
    return prepare.call(this, sql)
  })
  for (const query of [{}, { type: 'worker.ready' }, { type: ['a', 'b'] }, { cause: 'c' }, { slot: 1 }, { worker: 1 }, {
    release: 'r1'
  }, { rollout: 1 }, { type: 'worker.ready', cause: 'c', since: 0, q: 'x' }]) {
    history.page(query)
  }
  const db = openSqlite(file)
  assert.ok(prepared.length >= 10)
  for (const sql of [...prepared]) {
    const named = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]))
    const plan = (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(named) as { detail: string }[]).map(({ detail }) =>
      detail
    ).join('; ')
    assert.doesNotMatch(plan, /TEMP B-TREE|SCAN/, sql)
  }
  db.close()
})

test('a database of a newer version is left alone with a clear error', (t) => {
  const { history, file, open } = setUp(t)
  history.close()
  const db = openSqlite(file)
  db.pragma('user_version = 99')
  db.close()
  assert.throws(open, { code: 'data-dir-unusable',
    message: /expected schema version \d+ or older, received 99, from a newer clusterdeck$/ })
})

test('a file that is no database is moved aside and a new history begins', (t) => {
  const { history, file, folder, open } = setUp(t, { now: () => START_MS })
  assert.equal(history.movedAside, null)
  history.close()
  writeFileSync(file, 'this is no database, and long enough to be looked at '.repeat(100))
  const fresh = open()
  assert.equal(fresh.movedAside, `${file}.damaged-2026-01-01T00-00-00-000Z`)
  assert.ok(readdirSync(folder).includes('history.db.damaged-2026-01-01T00-00-00-000Z'))
  publish(fresh, [{ type: 'master.started' }])
  assert.equal(fresh.lastEventId(), 1)
})

test('a history that was cut short in the middle of a write opens with what had been written before', (t) => {
  const { history, file, folder } = setUp(t)
  publish(history, Array.from({ length: 600 }, (_, n) => ({ type: 'worker.exited', message: `${n} `.repeat(50) })))
  const walBytes = statSync(`${file}-wal`).size
  assert.ok(statSync(file).size > 0 && walBytes > 100_000, 'some of it is in either file')

  let before = 0
  for (const cut of [0, 1, 33, 4152, 100_000, Math.floor(walBytes / 2), walBytes - 4096, walBytes - 1, walBytes]) {
    const copy = join(folder, `cut-${cut}.db`)
    copyFileSync(file, copy)
    copyFileSync(`${file}-wal`, `${copy}-wal`)
    truncateSync(`${copy}-wal`, cut)
    const torn = openHistory({ file: copy })
    const last = torn.lastEventId()
    assert.ok(torn.movedAside === null && last >= before, `cut after ${cut} bytes`)
    assert.deepEqual(ids(all(torn, { limit: 1000 })), Array.from({ length: last }, (_, n) => last - n))
    publish(torn, [{ type: 'master.started' }])
    assert.equal(torn.lastEventId(), last + 1)
    torn.close()
    const db = openSqlite(copy)
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok')
    db.close()
    before = last
  }
  assert.equal(before, 600, 'nothing is lost where nothing was cut')
})

test('while somebody else has locked the file, the copy in memory has all of it, the write-ahead log included', (t) => {
  const { history, file } = setUp(t)
  publish(history, Array.from({ length: 600 }, () => ({ type: 'worker.exited', message: 'x'.repeat(50) })))
  assert.ok(statSync(`${file}-wal`).size > 0)
  const other = openSqlite(file)
  other.exec('BEGIN EXCLUSIVE')
  history.retreat('locked')
  const expected = Array.from({ length: 600 }, (_, n) => 600 - n)
  assert.deepEqual(ids(all(history, { limit: 1000 })), expected)
  other.exec('ROLLBACK')
  other.close()
  history.reopen()
  assert.deepEqual(ids(all(history, { limit: 1000 })), expected)
})

test('reopening over a damaged file goes on with the same ids', (t) => {
  const { history, file } = setUp(t)
  publish(history, [{ type: 'release.created', release: 'r7' }, { type: 'rollout.started', rollout: 3,
    detail: { id: 3 } }])
  history.close()
  writeFileSync(file, 'not a database '.repeat(1000))
  history.reopen()
  assert.match(String(history.movedAside), /damaged/)
  assert.deepEqual([history.lastEventId(), history.lastRolloutId(), history.lastReleaseNumber()], [2, 3, 7])
  publish(history, [{ type: 'worker.ready' }])
  assert.deepEqual(ids(all(history, {})), [3])
})

test('a folder that is not there is one clear error', () => {
  assert.throws(() => openHistory({ file: '/nowhere/at/all/history.db' }), { code: 'data-dir-unusable',
    message: /^\/nowhere\/at\/all\/history\.db: expected a database/ })
})

test('a database that cannot be read says so as history-unavailable', (t) => {
  const { history } = setUp(t)
  history.close()
  for (const read of [() => history.page(), () => history.event(1), () => history.rollout(1), () => history.rollouts(),
    () => history.unfinishedRollouts()])
  {
    assert.throws(read, { code: 'history-unavailable' })
  }
})

test('what cannot be written is told as SQLite has it, for those who look at its code and try again', (t) => {
  const { history } = setUp(t)
  history.close()
  for (const write of [() => history.crashes.setState(1, fake({ state: 'resolved' })),
    () => history.vitals.write(fake([{ stepS: 10, at: 1, seconds: 10, body: Buffer.from([1, 0]) }])),
    () => history.outbox.write(fake({}))])
  {
    assert.throws(write, (error) => errorCode(error) !== 'history-unavailable')
  }
})
