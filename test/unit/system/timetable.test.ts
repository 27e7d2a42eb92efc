import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nextRun } from '../../../server/config/cron.ts'
import { createTimetable, type Times } from '../../../server/system/timetable.ts'
import { fake } from '../../support/fake.ts'
import { rows } from '../../support/rows.ts'
import { playScenes } from '../../support/scenes.ts'

const NIGHTLY = '30 2 * * *'
const HOUR_MS = 60 * 60_000
/** by name */
const JOBS: Record<string, Times> = { nightly: { cron: NIGHTLY }, poll: { cron: '*/5 * * * *' },
  often: { cron: '*/20 * * * *' }, hourly: { cron: '10 * * * *' }, monthly: { cron: '0 0 1 * *' }, byHand: {} }

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
      const late = clock.now - planned.getTime() < 1000 ? '' : ` at ${minuteOf(clock.now)}`
      due.push(`${name} ${minuteOf(planned)}${late}`)
    }, onSetBack: (names, ms) => {
      setBack.push([names, ms])
    }, now: () => clock.now, passed: () => clock.now + clock.backMs, timers })
  timetable.plan(jobs, missed)
  return {
    timetable,
    due,
    setBack,
    now: () => clock.now,

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

/** @returns without the year, by UTC */
function minuteOf (time: Date | string | number) {
  return new Date(time).toISOString().slice('2026-'.length, '2026-05-01T00:00'.length)
}

type Stage = { clock: ReturnType<typeof setUp>, seen: number }

/** what has been due since the last look, and when that was noticed where it was late */
playScenes(`
a job is due at its time, once, and not before
  at 05-01T02:00 nightly; until 05-01T02:29:59  →
                            → next nightly 05-01T02:30
  until 05-02T02:29:59      → nightly 05-01T02:30
                            → next nightly 05-02T02:30
jobs are due each at its own time, and one without times never
  at 05-01T02:00 hourly,often,byHand; until 05-01T02:45  → hourly 05-01T02:10, often 05-01T02:20, often 05-01T02:40
                            → next byHand never
what has come while the machine slept runs once, within a minute, and is no burst
  at 05-01T00:01 poll; sleep 8 h; until 05-01T08:03  → poll 05-01T00:05 at 05-01T08:02
  until 05-01T08:11         → poll 05-01T08:05, poll 05-01T08:10
where nothing has come while the machine slept nothing runs
  at 05-01T03:00 nightly; sleep 8 h; until 05-01T12:00  →
where the clock is set back the time that was planned stays
  at 05-01T02:31 nightly; back 600 s; until 05-01T02:50  →
                            → set back nobody
where the clock was set back by more than lies between two times it goes on by the new time, within a minute, and that is told
  at 05-03T03:11 poll,nightly,monthly; back 176400 s; until 05-01T02:12:30  →
                            → set back poll nightly 176400000
  until 05-01T02:31         → poll 05-01T02:15, poll 05-01T02:20, poll 05-01T02:25, poll 05-01T02:30, nightly 05-01T02:30
                            → next monthly 06-01T00:00
  back 3 s; until 05-01T02:41  → poll 05-01T02:35, poll 05-01T02:40
                            → set back poll nightly 176400000
one that is closed waits for nothing
  at 05-01T02:00 nightly; close; until 05-02T02:00  →`, {
  open: (): Stage => ({ clock: setUp('2026-01-01T00:00Z', {}), seen: 0 }),
  acts: { 'at TIME NAMES' (stage, time, names) {
    stage.clock = setUp(`2026-${time}Z`, Object.fromEntries(names.split(',').map((name) => [name, JOBS[name]])))
  }, 'until TIME': ({ clock }, time) => clock.pass(`2026-${time}Z`),
    'sleep HOURS h': ({ clock }, hours) => clock.sleep(Number(hours) * HOUR_MS),
    'back SECONDS s': ({ clock }, seconds) => clock.setClockBack(Number(seconds) * 1000),
    close: ({ clock }) => clock.timetable.close() },
  see (stage, expected) {
    const { clock: { due, setBack, timetable } } = stage
    const [what, name] = expected.split(' ')
    if (what === 'set') return `set back ${setBack.flat(2).join(' ') || 'nobody'}`
    const next = timetable.nextAt(name)
    if (what === 'next') return `next ${name} ${next === null ? 'never' : minuteOf(next)}`
    const news = due.slice(stage.seen)
    stage.seen = due.length
    return news.join(', ')
  }
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
        assert.deepEqual(due.map((each) => each.split(' ')[1]), expected.split(' ').filter(Boolean))
      }
    })
  }
})

test('what has come meanwhile runs once where the master before had it still to do, with the same times', () => {
  const missed = { nightly: { cron: NIGHTLY, at: '2026-05-01T02:30:00.000Z' },
    other: { cron: '0 1 * * *', at: '2026-05-01T01:00:00.000Z' } }
  const { due, pass } = setUp('2026-05-01T02:31:04Z', { nightly: { cron: NIGHTLY }, other: { cron: '0 5 * * *' } },
    missed)
  pass('2026-05-01T02:40:00Z')
  assert.deepEqual(due, ['nightly 05-01T02:30 at 05-01T02:31'])
})

test('what is planned anew keeps the place of a job whose times are the same, and forgets one that is gone', () => {
  const { due, pass, sleep, timetable } = setUp('2026-05-01T02:00:00Z', { same: { cron: NIGHTLY },
    gone: { cron: NIGHTLY }, changed: { cron: NIGHTLY } })
  sleep(HOUR_MS)
  timetable.plan({ same: { cron: NIGHTLY }, changed: { cron: '0 5 * * *' } })
  pass('2026-05-01T04:00:00Z')
  assert.deepEqual(due.map((each) => each.split(' ')[0]), ['same'])
  assert.deepEqual(timetable.memory(), { same: { cron: NIGHTLY, at: '2026-05-02T02:30:00.000Z' },
    changed: { cron: '0 5 * * *', at: '2026-05-01T05:00:00.000Z' } })
})
