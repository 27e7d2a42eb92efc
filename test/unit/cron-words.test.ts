import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isCron, nextRun } from '../../server/config/cron.ts'
import { cronWords } from '../../server/words/cron.ts'

const SAID = [['0 3 * * *', 'every day at 03:00'], ['0 0 3 * * *', 'every day at 03:00'], ['30 8,20 * * *',
  'every day at 08:30 and 20:30'], ['* * * * *', 'every minute'], ['*/5 * * * *', 'every 5 minutes'], ['0 * * * *',
  'every hour'], ['15 */6 * * *', 'every 6 hours at minute 15'], ['*/10 * * * 1-5',
  'every 10 minutes, Monday to Friday'], ['30 8 * * 1-5', 'Monday to Friday at 08:30'], ['0 4 * * sun',
  'every Sunday at 04:00'], ['0 4 * * 7', 'every Sunday at 04:00'], ['0 4 * * MON,4',
  'every Monday and Thursday at 04:00'], ['0 0 1 * *', 'on day 1 of each month at 00:00']] as const

test('a cron expression is said in words', () => {
  for (const [expression, words] of SAID) assert.equal(cronWords(expression), words, expression)
})

test('what has no short words is left as it is', () => {
  for (const expression of ['*/7 * * * *', '0 3 1 * 1', '5 3 1 6 *', '*/5 8-18 * * *', '*/30 * * * * *', '0 0 L * *',
    '0 3 * * 1#2', '0 3 ? * 1', '1,2,3,4,5 3 * * *', '0 3 * * mond', '', 'x'])
  {
    assert.equal(cronWords(expression), null, expression)
  }
})

test('the times that are said are those that come', () => {
  for (const [expression, words] of SAID) {
    assert.ok(isCron(expression))
    const next = nextRun(expression, new Date('2026-03-03T05:00:00Z'), 'UTC')?.toISOString() ?? ''
    const times = Array.from(words.matchAll(/\d\d:\d\d/g), ([time]) => time)
    if (times.length > 0) assert.ok(times.includes(next.slice(11, 16)), `${expression} comes at ${next}`)
  }
})
