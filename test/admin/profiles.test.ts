import assert from 'node:assert/strict'
import { test } from 'node:test'
import { START_MS, startAdmin } from '../support/admin.ts'
import type { NewEvent } from '../../server/events/stream.ts'

test('the page of profiles says what ran, what a release has changed, and where it is switched on', async (t) => {
  const { visit, deck, api } = await startAdmin(t)
  const read = async (path: string) => (await visit(path)).text
  assert.match(await read('/profiles'),
    /Continuous profiling is off.*action="\/actions\/changeConfig".*name="value" value="on".*>Switch it on</s)

  const slice = <T extends object>(each: T) => ({ slot: 1, name: '', ms: 1000, ...each })
  deck.profiling.items.push(slice({ at: START_MS - 30_000, worker: 2, release: 'r2', busy: '<b>taxOf' }),
    slice({ at: START_MS - 60_000, worker: 1, release: 'r1', busy: 'priceOf' }))
  const all = await read('/profiles')
  assert.match(all, /2 profiles of 5 s, of 2 workers/)
  assert.match(all,
    /<bdi class="mono">priceOf<\/bdi>[^]*?data-label="In itself">50\.0%[^]*?data-label="With its calls">50\.0%/)
  assert.ok(!all.includes('<b>taxOf'))
  assert.match(all, /href="\/api\/v1\/profiles\/file\?" download/)
  const changed = await read('/profiles?release=r2&beforeRelease=r1')
  assert.match(changed,
    /What has changed since r1.*priceOf<\/bdi>.*?"Before, 1 profile">20\.0%.*?"After, 1 profile">0\.0%/s)
  deck.profiling.isOn = () => false
  assert.match(await read('/profiles'),
    /is off now\.<[^]*is kept for an hour\.[^]*>Switch it on<[^]*2 profiles of 5 s[^]*priceOf/)
  assert.match(await read('/profiles?worker=9'), /No profile of this choice is kept.*href="\/profiles">Show all/s)
  assert.match(await read('/profiles?worker=x'), /worker: expected/)

  const { body } = await api('get', '/api/v1/profiles/functions?worker=1').expect(200)
  assert.deepEqual([body.slices, body.busyMs, body.functions[0].function, body.functions[0].place], [1, 1000, 'priceOf',
    'priceOf.js:1'])
})

test('a time that is chosen shows the profile of then, or says that none is kept', async (t) => {
  const { visit, deck } = await startAdmin(t)
  const slice = { worker: 1, slot: 1, release: 'r1', name: '', ms: 1000 }
  deck.profiling.items.push({ ...slice, at: START_MS - 60_000, busy: 'late' }, { ...slice, at: START_MS - 20 * 60_000,
    busy: 'early' })
  const read = async (minutes: number, more: string = '') => {
    const [since, until] = [minutes, minutes - 5].map((ago) => new Date(START_MS - ago * 60_000).toISOString())
    return (await visit(`/profiles?${new URLSearchParams({ since, until })}${more}`)).text
  }
  const then = await read(22)
  assert.match(then, /<svg class="flame"[^]*<text[^>]*>early</)
  assert.doesNotMatch(then, />late</)
  // The strip above says that the page shows that time, and the filters keep it.
  assert.match(then, /class="time-chosen"/)
  assert.doesNotMatch(then, /this page shows now/)
  assert.match(then, /<option value="[^"]+" selected>Chosen time<[^]*<input type="hidden" name="until"/)
  assert.match(await read(50), /No profile of this choice is kept[^]*at present those since <time[^>]*23:40:00/)

  // Whoever takes another time in the filter leaves the one that was chosen.
  const { headers } = await visit('/profiles?since=5m&until=2025-12-31T23:00:00Z&worker=', { 'hx-request': 'true' })
  assert.equal(headers['hx-push-url'], '/profiles?since=5m')
})

test('a press on a function shows it alone, below its callers, and one that is gone shows all', async (t) => {
  const { visit, deck } = await startAdmin(t)
  deck.profiling.items.push({ at: START_MS - 60_000, worker: 1, slot: 1, release: 'r1', name: '', ms: 1000,
    busy: '<b>priceOf' })
  const { text } = await visit('/profiles?release=r1')
  const [, url] =
    /<a href="([^"]*frame=[^"]*)" aria-label="&lt;b&gt;priceOf [^"]*: 100% of the time, 100% in itself">/.exec(text) ??
      []
  assert.ok(url)
  assert.doesNotMatch(text, /Show all<|<b>priceOf/)
  const alone = (await visit(url.replaceAll('&amp;', '&').replace('#functions', ''))).text
  assert.match(alone, /href="\/profiles\?release=r1#functions">Show all</)
  assert.match(alone, /&lt;b&gt;priceOf<\/text>/)
  assert.doesNotMatch((await visit('/profiles?frame=gone')).text, /Show all</)
})

test('an event of a worker leads to what it ran before, where that was profiled', async (t) => {
  const { visit, deck } = await startAdmin(t)
  const publish = (worker: number) =>
    deck.events.publish({ type: 'worker.exited', cause: 'hung', worker, slot: 1, release: 'r1', message: 'hung' })
  const [first, second] = [publish(1), publish(2)]
  deck.profiling.items.push({ at: Date.parse(first.at) - 20_000, worker: 1, slot: 1, release: 'r1', name: '',
    busy: 'priceOf', ms: 4000 })
  const page = async (id: number) => (await visit(`/history/${id}`)).text
  assert.match(await page(first.id), /href="\/profiles\?since=[^"]*worker=1">What ran before/)
  assert.doesNotMatch(await page(second.id), /What ran before/)
})

test('the event of slow requests shows what ran meanwhile against before, or that the workers waited', async (t) => {
  const { visit, deck } = await startAdmin(t)
  const since = START_MS - 10 * 60_000
  const publish = (told: Partial<NewEvent>) =>
    deck.events.publish({ type: 'route.slowed', message: 'GET /report is slow', ...told,
      detail: { route: 'GET /report', since: new Date(since).toISOString(), ...told.detail } })
  const event = publish({})
  const slice = <T extends object>(each: T) => ({ slot: 1, worker: 1, release: 'r1', name: '', ms: 1000, ...each })
  deck.profiling.items.push(slice({ at: since + 20_000, busy: '<b>taxOf', ms: 4500 }),
    slice({ at: since + 10_000, busy: 'priceOf' }), slice({ at: since - 60_000, busy: 'priceOf' }))
  const page = async (id: number) => (await visit(`/history/${id}`)).text
  const text = await page(event.id)
  assert.match(text,
    /What ran meanwhile<\/h2>.*busy for \d.*before 20\.0%.*&lt;b&gt;taxOf<\/bdi>.*?data-label="Before">0\.0%.*priceOf/s)
  assert.ok(!text.includes('<b>taxOf'))
  deck.profiling.items.splice(0, 1)
  // It runs no more than before.
  assert.match(await page(event.id), /The workers mostly waited: they were busy for 20\.0% of the time/)
  deck.profiling.items.length = 0
  assert.doesNotMatch(await page(event.id), /What ran/)
})
