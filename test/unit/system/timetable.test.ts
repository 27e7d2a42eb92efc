import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nextRun } from '../../../server/config/cron.ts'
import { createTimetable, type Times } from '../../../server/system/timetable.ts'
import { fake } from '../../support/fake.ts'
import { rows } from '../../support/rows.ts'

const NIGHTLY = '30 2 * * *'
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** A clock whose one timer fires as time goes on. */
function setUp (at: string, jobs: Record<string, Times>,
  missed?: Parameters<ReturnType<typeof createTimetable>['plan']>[1])
{
  let timer: { run: () => void, at: number } | null = null
  const due: string[] = []
  const setBack: [string[], number][] = []
  const clock = { now: Date.parse(at), backMs: 0 }
  const timers = fake<typeof globalThis>({ setTimeout: (run, ms) => (timer = { run, at: clock.now + ms }),
    clearTimeout () {
      timer = null
    } })
  const timetable = createTimetable({ nextRun: (cron, after, timeZone = 'UTC') => nextRun(cron, after, timeZone),
    onDue: (name, planned) => {
      due.push(`${name} ${planned.toISOString()} at ${new Date(clock.now).toISOString()}`)
    }, onSetBack: (names, ms) => {
      setBack.push([names, ms])
    }, now: () => clock.now, passed: () => clock.now + clock.backMs, timers })
  timetable.plan(jobs, missed)
  return {
    timetable,
    due,
    setBack,

    setClockBack (ms: number) {
      clock.now -= ms
      clock.backMs += ms
      if (timer) timer.at -= ms
    },

    pass (to: string) {
      const isDue = () => timer !== null && timer.at <= Date.parse(to)
      while (isDue()) {
        const { run, at } = timer as { run: () => void, at: number }
        clock.now = Math.max(clock.now, at)
        run()
      }
      clock.now = Date.parse(to)
    },

    /** Nothing runs meanwhile, and timers do not count. */
    sleep (ms: number) {
      clock.now += ms
      if (timer) timer.at += ms
    }
  }
}

describe('a job is due', () => {
  test('at its time, once, and not before', () => {
    const { due, pass, timetable } = setUp('2026-05-01T02:00:00Z', { nightly: { cron: NIGHTLY } })
    pass('2026-05-01T02:29:59Z')
    assert.deepEqual([due, timetable.nextAt('nightly')], [[], '2026-05-01T02:30:00.000Z'])
    pass('2026-05-02T02:29:59Z')
    assert.deepEqual([due, timetable.nextAt('nightly')], [[
      'nightly 2026-05-01T02:30:00.000Z at 2026-05-01T02:30:00.000Z'
    ], '2026-05-02T02:30:00.000Z'])
  })

  test('each at its own time, and one without times never', () => {
    const { due, pass, timetable } = setUp('2026-05-01T02:00:00Z', { a: { cron: '10 * * * *' },
      b: { cron: '*/20 * * * *' }, byHand: {} })
    pass('2026-05-01T02:45:00Z')
    assert.deepEqual(due.map((each) => each.split(' at')[0]), ['a 2026-05-01T02:10:00.000Z',
      'b 2026-05-01T02:20:00.000Z', 'b 2026-05-01T02:40:00.000Z'])
    assert.equal(timetable.nextAt('byHand'), null)
  })
})

/** expression, time zone, from, to, when it is due */
const DUE = { 'in its own time zone': `
0 3 * * *   | Asia/Tokyo       | 05-01T00:00 | 05-02T00:00 | 05-01T18:00`,
  'a time that is left out in spring comes once, right after the gap, and the next day at its time': `
30 2 * * *  | Europe/Berlin    | 03-28T12:00 | 03-30T12:00 | 03-29T01:00 03-30T00:30
30 2 * * *  | America/New_York | 03-07T12:00 | 03-09T12:00 | 03-08T07:00 03-09T06:30`,
  'a time that comes twice in autumn comes once': `
30 2 * * *  | Europe/Berlin    | 10-24T12:00 | 10-26T12:00 | 10-25T00:30 10-26T01:30
15 1 * * *  | America/New_York | 10-31T12:00 | 11-02T12:00 | 11-01T05:15 11-02T06:15`,
  'one that is planned between the two is not due again': `
30 2 * * *  | Europe/Berlin    | 10-25T00:45 | 10-26T00:00 |`, 'steps go on by real time': `
*/30 * * * * | Europe/Berlin   | 03-29T00:00 | 03-29T03:00 | 03-29T00:30 03-29T01:00 03-29T01:30 03-29T02:00 03-29T02:30 03-29T03:00
*/30 * * * * | Europe/Berlin   | 10-25T00:00 | 10-25T03:00 | 10-25T00:30 10-25T01:00 10-25T01:30 10-25T02:00 10-25T02:30 10-25T03:00` }

describe('when clocks change', () => {
  for (const [title, table] of Object.entries(DUE)) {
    test(title, () => {
      for (const [cron, timeZone, from, to, expected] of rows(table)) {
        const { due, pass } = setUp(`2026-${from}Z`, { job: { cron, timeZone } })
        pass(`2026-${to}Z`)
        assert.deepEqual(due.map((each) => each.slice('job 2026-'.length, 'job 2026-05-01T00:00'.length)),
          expected.split(' ').filter(Boolean))
      }
    })
  }
})

describe('what has come meanwhile', () => {
  test('runs once after the machine has slept, within a minute, and is no burst', () => {
    const { due, pass, sleep } = setUp('2026-05-01T00:01:00Z', { poll: { cron: '*/5 * * * *' } })
    sleep(8 * HOUR_MS)
    pass('2026-05-01T08:03:00Z')
    assert.equal(due.length, 1)
    assert.match(due[0], /^poll 2026-05-01T00:05:00.000Z at 2026-05-01T08:0[12]/)
    pass('2026-05-01T08:11:00Z')
    assert.deepEqual(due.slice(1).map((each) => each.split(' ')[1]), ['2026-05-01T08:05:00.000Z',
      '2026-05-01T08:10:00.000Z'])
  })

  test('does not run where nothing has come', () => {
    const { due, pass, sleep } = setUp('2026-05-01T03:00:00Z', { nightly: { cron: NIGHTLY } })
    sleep(8 * HOUR_MS)
    pass('2026-05-01T12:00:00Z')
    assert.deepEqual(due, [])
  })

  test('runs once where the master before had it still to do, with the same times', () => {
    const missed = { nightly: { cron: NIGHTLY, at: '2026-05-01T02:30:00.000Z' },
      other: { cron: '0 1 * * *', at: '2026-05-01T01:00:00.000Z' } }
    const { due, pass } = setUp('2026-05-01T02:30:04Z', { nightly: { cron: NIGHTLY }, other: { cron: '0 5 * * *' } },
      missed)
    pass('2026-05-01T02:40:00Z')
    assert.deepEqual(due, ['nightly 2026-05-01T02:30:00.000Z at 2026-05-01T02:30:04.000Z'])
  })

  test('does not run where the clock is set back: the time that was planned stays', () => {
    const { due, pass, setBack, setClockBack } = setUp('2026-05-01T02:31:00Z', { nightly: { cron: NIGHTLY } })
    setClockBack(10 * MINUTE_MS)
    pass('2026-05-01T02:50:00Z')
    assert.deepEqual([due, setBack], [[], []])
  })

  test('goes on by the new time, within a minute, where the clock was set back by more than lies between two times, and that is told', () => {
    const { due, pass, setBack, setClockBack, timetable } = setUp('2026-05-03T02:31:00Z', {
      poll: { cron: '*/5 * * * *' },
      nightly: { cron: NIGHTLY },
      monthly: { cron: '0 0 1 * *' }
    })
    setClockBack(49 * HOUR_MS)
    pass('2026-05-01T01:32:30Z')
    assert.deepEqual(setBack, [[['poll', 'nightly'], 49 * HOUR_MS]])
    pass('2026-05-01T02:31:00Z')
    assert.deepEqual(due.map((each) => each.slice(0, 16)), [...Array.from({ length: 12 }, () => 'poll 2026-05-01T'),
      'nightly 2026-05-'])
    assert.equal(timetable.nextAt('monthly'), '2026-06-01T00:00:00.000Z', 'it has been on the 1st')
    setClockBack(3000)
    pass('2026-05-01T02:41:00Z')
    assert.equal(due.length, 15)
    assert.equal(setBack.length, 1)
  })
})

describe('what is planned anew', () => {
  test('keeps the place of a job whose times are the same, and forgets one that is gone', () => {
    const { due, pass, sleep, timetable } = setUp('2026-05-01T02:00:00Z', { same: { cron: NIGHTLY },
      gone: { cron: NIGHTLY }, changed: { cron: NIGHTLY } })
    sleep(HOUR_MS)
    timetable.plan({ same: { cron: NIGHTLY }, changed: { cron: '0 5 * * *' } })
    pass('2026-05-01T04:00:00Z')
    assert.deepEqual(due.map((each) => each.split(' ')[0]), ['same'])
    assert.deepEqual(timetable.memory(), { same: { cron: NIGHTLY, at: '2026-05-02T02:30:00.000Z' },
      changed: { cron: '0 5 * * *', at: '2026-05-01T05:00:00.000Z' } })
  })

  test('waits for nothing once it is closed', () => {
    const { due, pass, timetable } = setUp('2026-05-01T02:00:00Z', { nightly: { cron: NIGHTLY } })
    timetable.close()
    pass('2026-05-02T02:00:00Z')
    assert.deepEqual(due, [])
  })
})
