import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventModel } from '../../../server/events/page-event.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { sentenceOf } from '../../../server/events/sentences.ts'
import { fake } from '../../support/fake.ts'
import { anEvent, aRollout, NOW } from '../../support/snapshots.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { History } from '../../../db/history.ts'

const views = createViews()
const aHistory = (items: DeckEvent[] = []) =>
  fake<History>({ page: () => ({ items, next: null }), event: (id) => items.find((item) => item.id === id) ?? null })

test('what an app says is quoted, and what was left out of it is not', () => {
  const type = 'worker.message'
  assert.equal(sentenceOf(anEvent({ type, message: 'cache cleared', detail: { type: 'cache cleared', data: null } })),
    'Worker 7 (slot 1) says "cache cleared"')
  assert.equal(sentenceOf(anEvent({ type, message: '4,990 more messages were left out', detail: { leftOut: 4990 } })),
    'Worker 7 (slot 1): 4,990 more messages were left out')
})

test('every event has a sentence, also one of a type that is not known here', () => {
  const say = (fields: Parameters<typeof anEvent>[0]) => sentenceOf(anEvent(fields))
  assert.equal(say({ signal: 'SIGKILL', uptimeMs: 4200 }), 'Worker 7 (slot 1) was ended by SIGKILL after 4.2 s')
  assert.equal(say({ code: 1, message: 'boom' }), 'Boom')
  assert.equal(say({ type: 'fleet.host-silent', message: 'web-5 is silent', detail: { member: 'web-5' } }),
    'web-5 is silent')
  assert.equal(say({ type: 'rollout.failed', message: 'too slow', detail: aRollout() }),
    'Deploy of r2 failed: too slow')
  assert.equal(say({ type: 'rollout.started', detail: null, rollout: 3 }), 'Rollout 3 started')
  assert.equal(say({ type: 'worker.restarted', detail: { delayMs: 130 } }), 'Slot 1 gets a new worker in 130 ms')
  assert.equal(say({ type: 'future.thing' }), 'Future.thing')
  assert.equal(say({ type: 'constructor' }), 'Constructor')
})

test('an event has one line as its headline and the rest as facts, without what reorders text', () => {
  const message = `worker 7 (slot 1) exited with code 1: Error: user\u202etxt\u0000\n    at ${'x'.repeat(300)}`
  const event = anEvent({ message,
    detail: { stack: 'at \u202e', crashGroup: 4, isDirty: false, waitMs: 1500, per1000RequestsBytes: 2048,
      '\u202ename': '\u202evalue', list: ['\u2066'] } })
  const html = views.render('pages/event', eventModel({ history: aHistory([event]), id: '1', now: NOW }))
  assert.match(html,
    /<h1><bdi>Worker 7 \(slot 1\) exited with code 1: Error: user&lt;U\+202E&gt;txt\u2400 …<\/bdi><\/h1>/)
  const facts = Object.fromEntries(
    Array.from(html.matchAll(/<dt><bdi>(.*?)<\/bdi><\/dt><dd>(.*?)<\/dd>/g),
      ([, name, value]) => [name, value.replace(/<[^>]*>/g, '')])
  )
  assert.deepEqual(facts, { 'Is dirty': 'no', Wait: '1.5 s', 'Per 1000 requests': '2 KB',
    '&lt;U+202E&gt;name': '&lt;U+202E&gt;value', List: '&lt;U+2066&gt;', Type: 'Worker exited' })
  assert.match(html, /<a href="\/history\?type=worker\.exited"/)
  assert.match(html, /aria-label="Message">Worker 7 .*\n {4}at x{300}</)
  for (const character of ['\u0000', '\u202e', '\u2066']) assert.ok(!html.includes(character))
})

test('a sentence does not name the option that decided, which is a fact beside', () => {
  const message = 'worker 7 (slot 1): event loop blocked for 10 s (option watchdog.timeoutMs: 10000)'
  const event = anEvent({ type: 'worker.unresponsive', message })
  const { headline, facts } = eventModel({ history: aHistory([event]), id: '1', now: NOW })
  assert.equal(headline, 'Worker 7 (slot 1): event loop blocked for 10 s')
  assert.deepEqual(facts.filter(({ name }) => name === 'Option'), [{ name: 'Option', value: 'watchdog.timeoutMs: 10 s',
    url: '/settings' }])
})

test('an event says each thing once, in words, and all of it as JSON to be copied', () => {
  const rollout = { id: 4, kind: 'deploy', from: 'r1', to: 'r2', actor: 'ada', state: 'held', done: false,
    pausedIn: null, verdicts: [], startedAt: '2026-01-02T03:03:00.000Z', reason: 'worker 7 failed' }
  const event = anEvent({ type: 'rollout.held', slot: null, worker: null, cause: 'deploy', release: 'r2', rollout: 4,
    actor: 'ada', message: 'worker 7 failed; retry', detail: rollout })
  const { facts, json } = eventModel({ history: aHistory([event]), id: '1', now: NOW })
  assert.deepEqual(facts.map(({ name, value, url }) => [name, value, url]), [['Release', 'r2', '/releases/r2'], ['By',
    'ada', null], ['From', 'r1', null], ['Type', 'Rollout held', '/history?type=rollout.held']])
  assert.deepEqual(JSON.parse(json), event)
  const exit = anEvent({ message: 'worker 7 (slot 1) was ended by SIGTERM', signal: 'SIGTERM', cause: 'crash', pid: 41,
    uptimeMs: 5000, actor: 'system', detail: { hint: 'was ended by SIGTERM', stalled: ['a', 'b'], rows: [{ a: 1 }] } })
  const shown = eventModel({ history: aHistory([exit]), id: '1', now: NOW })
  assert.deepEqual(shown.facts.map(({ name, value }) => `${name}: ${value}`), ['Cause: crash', 'PID: 41',
    'Lived for: 5.0 s', 'Stalled: a, b', 'Type: Worker exited'])
  const html = views.render('pages/event', shown)
  assert.match(html, /<details class="panel event-json"[^]*&quot;rows&quot;[^]*data-copy/)
})

test('an event of slow requests leads to the route, and cuts a hash of a commit', () => {
  const event = anEvent({ type: 'route.slowed', worker: null, slot: null, message: 'GET /a/:b is slow',
    detail: { route: 'GET /a/:b', commit: '0123456789'.repeat(4) } })
  const html = views.render('pages/event', eventModel({ history: aHistory([event]), id: '1', now: NOW }))
  assert.match(html, /href="\/route\?route=GET\+\/a\/:b">See the route</)
  assert.match(html, /<dt><bdi>Commit<\/bdi><\/dt><dd><bdi>0123456789</)
})

test('times of an event are as people read them, and a run of a job is a link', () => {
  const event = anEvent({ type: 'job.late', worker: null, slot: null, message: 'nightly',
    detail: { job: 'nightly', run: 3, dueAt: '2026-01-02T03:03:00.000Z', p99Ms: 1500, requests: 41_000 } })
  const html = views.render('pages/event', eventModel({ history: aHistory([event]), id: '1', now: NOW }))
  assert.match(html, /<dt><bdi>Due at<\/bdi><\/dt><dd><time [^>]*>02 Jan 03:03:00</)
  assert.match(html, /<dt><bdi>P99<\/bdi><\/dt><dd><bdi>1\.5 s<[^]*<dd><bdi>41,000</)
  assert.match(html, /href="\/jobs\/runs\/3">See the run</)
})

test('an event has what happened just before and after, without itself and without who looked', () => {
  const events = [anEvent({ id: 3, at: '2026-01-02T03:04:12.000Z', message: 'worker 7 ended, as too slow' }),
    anEvent({ id: 2, type: 'access.signed-in' }),
    anEvent({ id: 1, at: '2026-01-02T03:04:00.000Z', message: 'too slow' })]
  const history = aHistory(events)
  history.page = ({ since, until } = {}) => ({
    items: events.filter(({ at }) => Date.parse(at) >= Number(since) && Date.parse(at) < Number(until)),
    next: null
  })
  const model = eventModel({ history, id: '1', now: NOW })
  assert.deepEqual(model.events.map(({ id, offset, sentence }) => [id, offset, sentence]), [[3, '12 s after',
    'Worker exited']], 'without the reason, which the page has said')
  assert.match(views.render('pages/event', model), />Just after</)
})

test('what was told in the same millisecond stands before or after by its order', () => {
  const at = '2026-01-02T03:04:00.000Z'
  const events = [3, 2, 1].map((id) => anEvent({ id, at }))
  const history = aHistory(events)
  history.page = ({ since } = {}) => ({ items: Number(since) === Date.parse(at) ? events : [], next: null })
  const { events: around } = eventModel({ history, id: '2', now: NOW })
  assert.deepEqual(around.map(({ id, offset }) => [id, offset]), [[1, 'at the same moment'], [3, 'at the same moment']])
})

test('an event that is not there is told so', () => {
  for (const id of ['2', 'abc', '-1', '1e3', '9'.repeat(30)]) {
    assert.throws(() => eventModel({ history: aHistory([anEvent()]), id, now: NOW }), { code: 'not-found' })
  }
})
