import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tellSlowSpells } from '../../../server/app/slow-spells.ts'
import { keptEvents } from '../../support/event-log.ts'

const START_MS = Date.parse('2026-01-31T12:00:00Z')

test('slow requests are told in a sentence: of one route, of many with the slowest, and of the app without routes', () => {
  const { events, publish } = keptEvents()
  const { onSlow, onSlowEnd } = tellSlowSpells({ publish })
  const spell = { route: 'GET /report', sinceMs: START_MS, requests: 22, p99Ms: 2301.4, usualP99Ms: 9.26, limitMs: 60,
    others: [] }
  onSlow(spell)
  onSlow({ ...spell, others: ['GET /', 'POST /orders'] })
  onSlow({ ...spell, route: null })
  onSlowEnd({ spell, untilMs: START_MS + 90_000, isUsualNow: false })
  onSlowEnd({ spell: { ...spell, others: ['GET /'] }, untilMs: START_MS + 3_600_000, isUsualNow: true })
  assert.deepEqual(events.map(({ type, message }) => `${type}: ${message}`), [
    'route.slowed: GET /report is slow: the p99 is 2301 ms, usually 9.3 ms',
    'route.slowed: 3 routes are slow, most of all GET /report: its p99 is 2301 ms, usually 9.3 ms',
    'route.slowed: Requests are slow: the p99 is 2301 ms, usually 9.3 ms',
    'route.recovered: GET /report is as fast as usual again',
    'route.recovered: 2 routes are slow for an hour: this is taken for usual now'
  ])
  assert.deepEqual([events[0].detail.since, events[3].detail.until, events[3].detail.lastedMs], [
    '2026-01-31T12:00:00.000Z',
    '2026-01-31T12:01:30.000Z',
    90_000
  ])
})
