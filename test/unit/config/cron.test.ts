import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isCron, nextRun, timeZoneOf } from '../../../server/config/cron.ts'

test('an expression has five fields, or six with seconds first, and comes to pass', () => {
  for (const text of ['0 4 * * *', '*/10 * * * * *', ' 30 2 * * MON-FRI ']) assert.equal(isCron(text), true, text)
  for (const text of ['', 'daily', '@daily', '0 4 * *', '61 4 * * *', '0 4 30 2 *', '0 0 4 * * * 2099'])
    assert.equal(isCron(text), false, text)
})

test('the next time is one of this machine\'s clock, after the moment that is given', () => {
  const at = new Date(2026, 4, 1, 4, 0, 0)
  assert.deepEqual(nextRun('0 4 * * *', new Date(at.getTime() - 1)), at)
  assert.deepEqual(nextRun('0 4 * * *', at), new Date(2026, 4, 2, 4, 0, 0))
  assert.equal(nextRun('0 4 30 2 *', at), null)
  assert.equal(nextRun('nonsense', at), null)
})

test('an app from a shell in another time zone has the times of that one', () => {
  const after = new Date('2026-05-01T00:00:00Z')
  assert.equal(nextRun('0 4 * * *', after, timeZoneOf({ TZ: 'Asia/Tokyo' }))?.toISOString(), '2026-05-01T19:00:00.000Z')
  assert.equal(nextRun('0 4 * * *', after, timeZoneOf({ TZ: 'America/New_York' }))?.toISOString(),
    '2026-05-01T08:00:00.000Z')
  for (const TZ of [undefined, '', process.env.TZ, 'Nowhere/Land', '<+03>-3'])
    assert.equal(timeZoneOf({ TZ }), undefined, TZ)
})
