import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timeStrip } from '../../server/dashboard/time-strip.ts'
import { createVitals } from '../../server/vitals/vitals.ts'
import { startAdmin } from '../support/admin.ts'
import { fake } from '../support/fake.ts'
import { anEvent, aRollout, NOW } from '../support/snapshots.ts'
import { report } from '../support/vitals.ts'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'

const HOUR_MS = 3_600_000
const iso = (ms: number) => new Date(ms).toISOString()

/** `events`: newest first, each so many bins of 15 s ago */
function labelsOf (events: [bins: number, event: Partial<DeckEvent>][], rollout: RolloutView | null = null) {
  const items = events.map(([bins, event]) => anEvent({ at: iso(NOW - (bins + 0.5) * 15_000), ...event }))
  const { labels } = timeStrip(
    fake({ path: '/', params: new URLSearchParams(), now: () => NOW, history: { page: () => ({ items, next: null }) },
      deck: { vitals: createVitals({ now: () => NOW }), snapshot: () => ({ rollout, release: { runtime: 'node' } }) } })
  )
  return labels.map(({ label, tone, isWide }) => [label, tone, isWide ? 'wide' : 'always'])
}

test('load and what happened stand above the pages of an app, and a time that is chosen goes along to the others', async (t) => {
  const { deck, clock, visit } = await startAdmin(t)
  // Events have the real time.
  const beganAt = Math.floor(Date.now() / 1000) * 1000 - 4 * 60_000
  clock.advance(beganAt - clock.now())
  for (let n = 0; n < 4 * 60; n++) {
    deck.vitals.accept(1, 1, report({ latenciesMs: [5] }))
    deck.vitals.turn(clock.now() / 1000)
    clock.advance(1000)
  }
  deck.events.publish({ type: 'rollout.succeeded', rollout: 1, actor: 'ada',
    detail: { id: 1, kind: 'deploy', state: 'succeeded', from: 'r6', to: 'r7', actor: 'ada', note: null,
      startedAt: iso(beganAt), finishedAt: iso(beganAt), done: true, reason: null, steps: [],
      progress: { total: 0, replaced: 0 } } })
  deck.events.publish({ type: 'worker.restarted', cause: 'crash', slot: 1 })
  clock.advance(HOUR_MS)

  const now = (await visit('/crashes?state=all')).text
  assert.match(now, /aria-label="\d\d:\d\d:\d\d UTC, 1\/s requests|aria-label="[^"]*requests\/s/)
  assert.match(now, /href="\/crashes\?state=all&amp;since=[^"]*&amp;until=[^"]*" aria-label="[^"]*crash, deploy r7"/)
  assert.match(now, /class="mark tone-idle"/)
  assert.match(now, /<text class="tone-idle[^>]*>crash<\/text>/)
  const [, ofLabel] = /<a href="([^"]+)"[^>]*><text class="tone-idle[^>]*>crash</.exec(now) ?? []
  assert.ok(now.split(`href="${ofLabel}"`).length > 2, 'a label leads where its mark does')
  assert.match(now, />highest: 1 requests\/s; press a time to see it</)
  assert.doesNotMatch(now, /Back to now/)

  const span = `since=${iso(beganAt)}&until=${iso(beganAt + 5 * 60_000)}`
  const then = (await visit(`/crashes?state=all&${span}`)).text
  const query = new RegExp(`\\?${new URLSearchParams(span)}`.replaceAll('.', '\\.').replace('&', '&amp;'))
  for (const page of ['/', '/deploys', '/history', '/logs', '/routes'])
    assert.match(then, new RegExp(`href="${page}${query.source}" data-of-time`), page)
  assert.match(then, /r7<\/a> ran · crash, deploy r7 · <span class="muted">the list goes on up to now/)
  assert.match(then, /href="\/crashes\?state=all">Back to now/)
  const overview = (await visit(`/?${span}`)).text
  assert.match(overview, /Back to now/)
  assert.doesNotMatch(overview, /crash, deploy r7 · <span class="muted">/)

  for (const path of ['/settings', '/docs', '/access']) assert.doesNotMatch((await visit(path)).text, /id="time-strip"/)
  const nonsense = (await visit('/?since=x&until=%3Cb%3E')).text
  assert.match(nonsense, /id="time-strip"/)
  assert.doesNotMatch(nonsense, /Back to now<\/a>|until=<b>/)
})

test('the strip is as long as what was measured, and of marks that are close the worst has its label', async (t) => {
  const { deck, clock, visit } = await startAdmin(t)
  clock.advance(Math.floor(Date.now() / 1000) * 1000 - clock.now())
  const lengthOf = async () => {
    const [, since] = /class="time-ends fine"><time[^>]* datetime="([^"]+)"/.exec((await visit('/deploys')).text) ?? []
    return (clock.now() - Date.parse(String(since))) / 60_000
  }
  assert.equal(await lengthOf(), 15)
  for (let n = 0; n < 60; n++) {
    deck.vitals.accept(1, 1, report({ latenciesMs: [5] }))
    deck.vitals.turn(clock.now() / 1000)
    clock.advance(1000)
  }
  deck.events.publish({ type: 'rollout.succeeded', rollout: 1,
    detail: { id: 1, kind: 'deploy', state: 'succeeded', from: 'r6', to: 'r7', startedAt: iso(clock.now()),
      finishedAt: iso(clock.now()), done: true, steps: [] } })
  assert.match((await visit('/deploys')).text, /<text class="tone-info[^>]*>deploy r7<\/text>/)
  deck.events.publish({ type: 'worker.restarted', cause: 'crash', slot: 1 })
  const { text } = await visit('/deploys')
  assert.match(text, /<text class="tone-idle/)
  assert.doesNotMatch(text, /<text class="tone-info/)
  clock.advance(40 * 60_000)
  assert.equal(await lengthOf(), 60)
  clock.advance(HOUR_MS)
  assert.equal(await lengthOf(), 180)
})

test('a mark names its cause, and only what goes on now is a warning', async (t) => {
  const { deck, clock, visit } = await startAdmin(t)
  clock.advance(Math.floor(Date.now() / 1000) * 1000 + 10_000 - clock.now())
  const seen = async (query = '') =>
    Array.from((await visit(`/deploys${query}`)).text.matchAll(/<text class="tone-(\w+)[^>]*>(.*?)</g),
      ([, tone, name]) => `${tone}: ${name}`)
  deck.events.publish({ type: 'rollout.rolled-back', detail: { kind: 'deploy', from: 'r7', to: 'r8' } })
  assert.deepEqual(await seen(), ['idle: deploy r8 rolled back'])
  for (const cause of ['crash', 'hung', 'crash', 'killed'])
    deck.events.publish({ type: 'worker.restarted', cause, slot: 1 })
  assert.deepEqual(await seen(), ['idle: killed from outside, crash ×2, hang'])
  deck.events.publish({ type: 'route.slowed', message: 'GET / is slow', detail: { route: 'GET /' } })
  assert.deepEqual(await seen(), ['warn: slow now'])
  assert.deepEqual(await seen(`?since=${iso(clock.now() - HOUR_MS)}&until=${iso(clock.now())}`), [
    'idle: killed from outside, crash ×2, hang'
  ])
  deck.events.publish({ type: 'route.recovered', message: 'GET / is as fast as usual again',
    detail: { route: 'GET /' } })
  assert.deepEqual(await seen(), ['idle: killed from outside, crash ×2, hang'])
})

test('a label that a phone has no room for is shown on a wide screen, and neighbours of one kind share one', () => {
  const failed = { type: 'rollout.failed', detail: { kind: 'deploy', to: 'r7' } }
  assert.deepEqual(labelsOf([[1, failed], [5, { type: 'route.recovered' }], [14, { type: 'route.slowed' }]]), [[
    'deploy r7 failed',
    'idle',
    'always'
  ], ['slow spell', 'idle', 'wide']])
  const crash = { type: 'worker.restarted', cause: 'crash' }
  assert.deepEqual(labelsOf([[3, crash], [4, crash], [4, crash], [5, { ...crash, cause: 'hung' }], [40, crash]]), [[
    'crash',
    'idle',
    'always'
  ], ['hang, crash ×3', 'idle', 'always']])
})

test('a deploy that runs has a mark at its start, and a warning once it is held', () => {
  const rollout = (fields: Partial<RolloutView>) => aRollout({ to: 'r7', startedAt: iso(NOW - 60_000), ...fields })
  assert.deepEqual(labelsOf([], rollout({})), [['deploy r7', 'info', 'always']])
  assert.deepEqual(labelsOf([], rollout({ state: 'held' })), [['deploy r7 held', 'warn', 'always']])
  assert.deepEqual(labelsOf([], rollout({ to: null, state: 'preparing' })), [['deploy', 'info', 'always']])
})

test('the strip is loaded anew by itself, for the page that it stands on', async (t) => {
  const { visit, history } = await startAdmin(t)
  const { text } = await visit('/time-strip?path=%2Fdeploys&cursor=7')
  assert.match(text, /^\s*<nav class="time-strip"/)
  assert.match(text, /href="\/deploys\?since=/)
  assert.doesNotMatch(text, /cursor=7&amp;since/)
  history.close()
  assert.equal((await visit('/time-strip?path=%2F')).status, 200)
})
