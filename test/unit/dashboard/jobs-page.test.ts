import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobsModel } from '../../../server/jobs/page.ts'

const NOW = Date.parse('2026-12-01T07:30:00.000Z')
type Jobs = Parameters<typeof jobsModel>[0]['deck']['jobs']

const JOB: ReturnType<Jobs['list']>[number] = { name: 'nightly', cron: '0 3 * * *', timeZone: 'UTC', overlap: 'skip',
  timeoutMs: 60_000, nextAt: '2026-12-02T03:00:00.000Z', paused: null, isWaiting: false, running: null,
  isFailing: false, last: null as unknown as ReturnType<Jobs['list']>[number]['last'] }

test('what runs next is a time that is to come, else words', () => {
  for (const [about, next] of [[{}, null], [{ nextAt: '2026-12-01T07:29:59.000Z' }, 'due now'], [{
    nextAt: '2026-12-01T07:27:00.000Z'
  }, 'late: it was due 3 min ago'], [{ isWaiting: true, running: 7 }, 'once run 7 has ended'], [{ isWaiting: true },
    'once the new master has taken over'], [{ cron: null, nextAt: null }, 'when somebody starts it'], [{ nextAt: null },
    'once its secrets are known']] as [Partial<typeof JOB>, string | null][])
  {
    const jobs = { list: () => [{ ...JOB, ...about }], runs: () => ({ items: [], next: null }) }
    assert.equal(jobsModel({ deck: { jobs }, now: () => NOW }).jobs[0].next, next)
  }
})
