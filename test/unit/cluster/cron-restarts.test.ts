import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCronRestarts } from '../../../server/cluster/cron-restarts.ts'
import { nextRun } from '../../../server/config/cron.ts'
import { sentenceOf } from '../../../server/events/sentences.ts'
import { fake } from '../../support/fake.ts'
import { keptEvents } from '../../support/event-log.ts'

const FOUR = new Date(2026, 4, 1, 4, 0, 0).getTime()
const DAY_MS = 24 * 60 * 60 * 1000

/** A clock whose one timer is fired by hand. */
function setUp ({ at, expression = '0 4 * * *', restart }: { at: number, expression?: string, restart?: () => void }) {
  let timer: { run: () => void, ms: number } | null = null
  const { events, publish } = keptEvents()
  const clock = { at, expression, restarts: 0, events, get ms () {
    return timer?.ms ?? null
  } }
  const timers = fake<Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>>({
    setTimeout: (run, ms) => (timer = { run, ms }),
    clearTimeout () {
      timer = null
    }
  })
  const cron = createCronRestarts({ expression: () => clock.expression, nextRun, restart: restart ?? (() => {
    clock.restarts++
  }), events: { publish }, now: () => clock.at, timers })
  return Object.assign(clock, {
    cron,
    /** Time goes on until the timer fires. `more`: ms that it is late. */
    pass (more: number = 0) {
      const { run, ms } = timer as { run: () => void, ms: number }
      clock.at += ms + more
      run()
    }
  })
}

test('restarts at its time, once, and plans the next one', () => {
  const clock = setUp({ at: FOUR - 5000 })
  assert.equal(clock.cron.nextAt(), new Date(FOUR).toISOString())
  clock.pass()
  assert.deepEqual([clock.restarts, clock.cron.nextAt()], [1, new Date(FOUR + DAY_MS).toISOString()])
})

test('looks at the clock every minute, as that may be set, and the machine may sleep', () => {
  const clock = setUp({ at: FOUR - 10 * 60_000 })
  assert.equal(clock.ms, 60_000)
  clock.pass()
  assert.equal(clock.restarts, 0)
  clock.pass(9 * 60_000)
  assert.equal(clock.restarts, 1)
})

test('goes on where the clock was set back by days, and says so', () => {
  const clock = setUp({ at: FOUR - 5000 })
  clock.at -= 3 * DAY_MS
  clock.pass()
  assert.match(sentenceOf(clock.events[0]),
    /^The clock was set back by 2 d 23 h; planned anew: the restart by restart.cron$/)
  assert.equal(clock.cron.nextAt(), new Date(FOUR - 2 * DAY_MS).toISOString())
})

test('a timer that fires a moment early waits for the rest', () => {
  const clock = setUp({ at: FOUR - 5000 })
  clock.pass(-2)
  assert.deepEqual([clock.restarts, clock.ms], [0, 2])
  clock.pass()
  assert.equal(clock.restarts, 1)
})

test('one that is refused is skipped, with the reason, and the next one is planned', () => {
  const clock = setUp({ at: FOUR - 5000, restart () {
    throw new Error('rollout 3 (deploy) is running')
  } })
  clock.pass()
  assert.deepEqual(clock.events, [{ type: 'restart.skipped', actor: 'cron',
    message: 'the restart by restart.cron is skipped: rollout 3 (deploy) is running' }])
  assert.equal(clock.cron.nextAt(), new Date(FOUR + DAY_MS).toISOString())
})

test('without an expression nothing waits; another one counts at once; closed, nothing is left', () => {
  const clock = setUp({ at: FOUR, expression: '' })
  assert.deepEqual([clock.ms, clock.cron.nextAt()], [null, null])
  clock.expression = '30 4 * * *'
  clock.cron.plan()
  assert.equal(clock.cron.nextAt(), new Date(FOUR + 30 * 60_000).toISOString())
  clock.cron.close()
  assert.equal(clock.ms, null)
})
