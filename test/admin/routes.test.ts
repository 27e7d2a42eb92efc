import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { bucketOf } from '../../workers/histogram.ts'
import { startAdmin, TOKEN } from '../support/admin.ts'
import { aCrash } from '../support/crash-record.ts'
import { report } from '../support/vitals.ts'
import type { NewEvent } from '../../server/events/stream.ts'

const MINUTE_MS = 60_000
const HOSTILE = 'GET /<script>alert(1)</script>'

/** An app whose r2 has a slow and a failing route. */
async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  const say = (release: string, ...routes: [route: string, ms: number, errors?: number][]) =>
    admin.deck.vitals.accept(1, 1,
      report({ routes: routes.map(([route, ms, errors = 0]) => ({ route, errors, latency: [bucketOf(ms), 50] })) }),
      release)
  say('r1', ['GET /users/:id', 5], ['GET /orders', 10])
  admin.clock.advance(10 * MINUTE_MS)
  const [r1] = admin.deck.releases.items
  admin.deck.releases.items.push({ ...r1, id: 'r2',
    servedAt: new Date(admin.clock.now() - 5 * MINUTE_MS).toISOString() })
  say('r2', ['GET /users/:id', 500], ['GET /orders', 10, 25], [HOSTILE, 1])
  return admin
}

test('lists the routes of all releases, of one, beside another and of the last minutes, those with the most time first', async (t) => {
  const admin = await setUp(t)
  const list = async (query: string) => (await admin.api('get', `/api/v1/routes${query}`).expect(200)).body
  const slow = { route: 'GET /users/:id', requests: 50, errors: 0, totalMs: 24366.99, p50Ms: 487.34, p99Ms: 487.34 }
  const fast = { requests: 50, errors: 0, totalMs: 243.67, p50Ms: 4.87, p99Ms: 4.87 }
  const all = await list('')
  assert.deepEqual([all.since, all.release, all.items.map(({ route, requests, errors }) => [route, requests, errors])],
    [null, null, [['GET /users/:id', 100, 0], ['GET /orders', 100, 25], [HOSTILE, 50, 0]]])
  assert.deepEqual((await list('?release=r2&compare=r1')).items[0], { ...slow, before: fast, slowest: [] })
  assert.deepEqual((await list('?release=r1')).items.map(({ route }) => route), ['GET /orders', 'GET /users/:id'])
  assert.deepEqual((await list('?since=5m')).items[0], { ...slow, before: null, slowest: [] })
  assert.deepEqual((await list('?since=15m')).items.map(({ requests }) => requests), [100, 100, 50])
  const { body } = await admin.api('get', '/api/v1/routes?since=2h').expect(400)
  assert.match(body.detail,
    /since: expected a time of the last hour, from 2025-12-31T23:10:00.000Z on, received 2025-12-31T22:10:00.000Z/)
})

test('forgets the minutes of more than an hour ago, and keeps what each release has answered in all', async (t) => {
  const admin = await setUp(t)
  admin.clock.advance(59 * MINUTE_MS)
  admin.deck.vitals.accept(1, 1, report({ routes: [{ route: 'GET /new', errors: 0, latency: [bucketOf(5), 1] }] }),
    'r3')
  const routesOf = async (query: string) =>
    (await admin.api('get', `/api/v1/routes${query}`).expect(200)).body.items.map(({ route }) => route).sort()
  assert.deepEqual(await routesOf('?since=1h'), [HOSTILE, 'GET /new', 'GET /orders', 'GET /users/:id'].sort())
  admin.clock.advance(5 * MINUTE_MS)
  assert.deepEqual(await routesOf('?since=1h'), ['GET /new'])
  assert.deepEqual(await routesOf('?release=r1'), ['GET /orders', 'GET /users/:id'])
})

test('a route has a page: its last hour, and each release that has answered it', async (t) => {
  const { visit } = await setUp(t)
  const list = (await visit('/routes?since=all')).text
  assert.match(list, /class="row-link" href="\/route\?route=GET\+\/orders"><bdi>GET \/orders/)
  assert.match(list, /class="num is-failing" data-label="Error rate" title="25 answers/)
  assert.match(list, /<path d="M[^"]+"/)
  const { text } = await visit('/route?route=GET+%2Forders')
  assert.match(text, /<dt>Requests<\/dt><dd class="figure">100<[^]*at most 50 a minute/)
  assert.match(text, /<dt>Error rate<\/dt><dd class="figure is-failing">25\.0%<[^]*25 answers with 5xx/)
  assert.match(text, /No slow spell, no worker that hung/)
  assert.doesNotMatch(text, /Profile of/)
  assert.match(text, /href="\/releases\/r1">r1<\/a>[^]*0\.0%/)
  assert.match(text, /href="\/logs\?q=\/orders"/)
  assert.ok(!(await visit(`/route?route=${encodeURIComponent(HOSTILE)}`)).text.includes('<script>alert'))
  assert.equal((await visit('/route?route=GET+%2Fnothing')).status, 404)
})

test('what a release answers worse stands where it is compared', async (t) => {
  const { visit } = await setUp(t)
  const { text } = await visit('/compare?from=r1&to=r2')
  assert.match(text,
    /Routes that r2 answers worse[^]*GET \/users\/:id[^]*Slower[^]*4\.87 ms → 487 ms[^]*GET \/orders[^]*More errors[^]*0\.0% → 50\.0%/)
})

test('of a release that ran only briefly nothing is called worse, and whoever compares it is told so', async (t) => {
  const { deck, clock, visit, api } = await setUp(t)
  const [, r2] = deck.releases.items
  deck.vitals.accept(1, 1, report({ latenciesMs: Array(40).fill(500) }), 'r2')
  deck.vitals.turn(clock.now() / 1000 - 10)
  r2.servedAt = new Date(clock.now() - 21_000).toISOString()
  const { body } = await api('get', '/api/v1/releases/r2/compare?from=r1').expect(200)
  assert.deepEqual(body.figures.unsure, [{ release: 'r2', ranMs: 21_000, requests: 40 }])
  for (const path of ['/compare?from=r1&to=r2', '/routes?release=r2&compare=r1']) {
    const { text } = await visit(path)
    assert.match(text, /oo little to call either of them worse: r2 ran only 21 s/, path)
    assert.deepEqual(text.match(/.{0,80}(?:">Slower|">More errors|is-worse)/g), null, path)
  }
})

test('a time that is chosen counts for the routes too, by the minute', async (t) => {
  const { clock, api } = await setUp(t)
  const iso = (ms: number) => new Date(ms).toISOString()
  const span = `since=${iso(clock.now() - 12 * MINUTE_MS)}&until=${iso(clock.now() - 5 * MINUTE_MS)}`
  const { body } = await api('get', `/api/v1/routes?${span}`)
  assert.deepEqual(body.items.map(({ route, requests }) => [route, requests]), [['GET /orders', 50], ['GET /users/:id',
    50]])
})

test('the sparklines are of the time and the release that are filtered by, and are titled so', async (t) => {
  const { clock, visit } = await setUp(t)
  const iso = (ms: number) => new Date(ms).toISOString()
  const span = (from: number, to: number) =>
    new URLSearchParams({ since: iso(clock.now() - from * MINUTE_MS), until: iso(clock.now() - to * MINUTE_MS) })
  const headOf = async (query: string) =>
    /scope="col">([^<]*)<\/th>/.exec((await visit(`/routes?${query}`)).text.split('>Route</th>')[1])?.[1]
  const titles = ['', 'since=5m', 'since=60m', 'since=all', String(span(12, 5))].map(headOf)
  assert.deepEqual(await Promise.all(titles), ['Last 15 minutes', 'Last 5 minutes', 'Last hour', 'Last hour',
    'Chosen time'])
  const pathOf = async (query: string) =>
    /GET \/orders<[^]*?<path d="([^"]*)"/.exec((await visit(`/routes?${query}`)).text)?.[1]
  assert.notEqual(await pathOf('since=60m'), await pathOf('since=60m&release=r2'))

  const forgotten = (await visit(`/routes?${span(90, 80)}`)).text
  assert.match(forgotten, /No request is known of this time/)
  const then = (await visit(`/routes?${span(12, 5)}`)).text
  assert.match(then, /selected>Chosen time<[^]*<input type="hidden" name="until"/)
  // The page of the route is of that time as well.
  const [, url] = /class="row-link" href="(\/route[^"]*orders[^"]*)"/.exec(then) ?? []
  const route = (await visit(url.replaceAll('&amp;', '&'))).text
  assert.match(route, /aria-label="In the chosen time">[^]*<dt>Requests<\/dt><dd class="figure">50</)
  assert.match((await visit(`/route?route=GET+/orders&${span(90, 80)}`)).text,
    /Nothing is known of it in the chosen time/)
})

test('the page of a route tells of its slow requests: in flight, in slow spells and of workers that hung in one', async (t) => {
  const { deck, clock, history, visit } = await setUp(t)
  const detail = { route: 'GET /orders', since: '2026-01-01T00:02:00.000Z', p99Ms: 900, usualP99Ms: 10,
    others: ['GET /users/:id'] }
  const spell = deck.events.publish(
    { at: '2026-01-01T00:03:00.000Z', type: 'route.slowed', message: '2 routes are slow, most of all GET /orders',
      detail } as NewEvent
  )
  const hung = aCrash({ at: '2026-01-01T00:06:00.000Z', cause: 'hung', kind: 'hung', worker: 6,
    requests: [{ method: 'GET', path: '/users/7', ageMs: 9000, isHanging: true }, { method: 'GET', path: '/orders',
      ageMs: 8000 }] })
  const { crash, group } = history.crashes.record('v1:hung', hung, { culprit: null })
  deck.events.publish(
    { at: hung.at, type: 'worker.exited', cause: 'hung', worker: 6, slot: 1, message: 'worker 6 hung',
      detail: { crash, crashGroup: group } } as NewEvent
  )
  deck.requests.push({ method: 'GET', path: '/users/8', ageMs: 4000 }, { method: 'GET', path: '/users/9', ageMs: 3 }, {
    method: 'POST',
    path: '/users/8',
    ageMs: 4000
  })

  const read = async (query: string) => (await visit(`/route?route=${query}`)).text
  const users = await read('GET+/users/:id')
  assert.match(users, /href="\/workers\/1"><bdi>GET \/users\/8<\/bdi> is in flight for 4\.0 s in worker 1</)
  assert.doesNotMatch(users, /users\/9|POST/)
  assert.match(users, /<bdi>Worker 6 hung<[^]*href="\/crashes\/1[^"]*">see crash</)
  assert.match(users, new RegExp(`href="/history/${spell.id}"><bdi>2 routes are slow`))
  const orders = await read('GET+/orders')
  assert.match(orders, /<bdi>2 routes are slow/)
  assert.doesNotMatch(orders, /Worker 6 hung|in flight for 4|Profile of/)

  deck.profiling.items.push({ at: clock.now() - MINUTE_MS, worker: 1, slot: 1, release: 'r1', name: '', busy: 'x',
    ms: 1000 })
  assert.match(await read('GET+/orders'), /href="\/profiles">[^]*Profile of the last hour/)
  const then = new URLSearchParams({ since: '2026-01-01T00:05:00Z', until: '2026-01-01T00:07:00Z' })
  const later = await read(`GET+/users/:id&${then}`)
  assert.match(later, /Worker 6 hung/)
  assert.doesNotMatch(later, /routes are slow|in flight for 4|Profile of/)
})

test('of the slowest requests of each minute the ten slowest are told, with where and when', async (t) => {
  const admin = await startAdmin(t)
  const { deck, clock, api, visit } = admin
  const start = clock.now()
  const iso = (ms: number) => new Date(start + ms).toISOString()
  const say = (worker: number, release: string, ms: number, more: object = {}) =>
    deck.vitals.accept(worker, 1,
      report({
        routes: [{ route: 'GET /orders/:id', errors: 0, latency: [bucketOf(ms), 1],
          slowest: { method: 'GET', path: `/orders/${ms}`, status: 200, ms, at: clock.now(), ...more } }]
      }), release)
  for (let minute = 1; minute <= 12; minute++) {
    say(1, 'r1', 100 * minute)
    say(2, 'r1', 90 * minute)
    clock.advance(MINUTE_MS)
  }
  say(3, 'r2', 5000, { path: '/orders/<script>alert(1)', status: 503, kept: 'x'.repeat(1e6) })
  say(3, 'r2', 50)
  say(1, 'r1', 60)

  const list = async (query: string = '') =>
    (await api('get', `/api/v1/routes${query}`).expect(200)).body.items.map(({ slowest }) => slowest).flat()
  const worst = { at: iso(12 * MINUTE_MS), method: 'GET', path: '/orders/<script>alert(1)', status: 503, ms: 5000,
    worker: 3, release: 'r2' }
  const all = await list()
  assert.deepEqual(all[0], worst)
  assert.deepEqual(all.slice(1).map(({ ms }) => ms), [1200, 1100, 1000, 900, 800, 700, 600, 500, 400])
  assert.deepEqual(await list('?release=r2'), [worst])
  assert.deepEqual((await list('?since=1m')).map(({ ms }) => ms), [5000, 1200, 60])
  const span = `since=${iso(2 * MINUTE_MS)}&until=${iso(4 * MINUTE_MS)}`
  assert.deepEqual((await list(`?${span}`)).map(({ ms }) => ms), [400, 300])

  const rowsOf = async (query: string = '') =>
    (await visit(`/route?route=GET+/orders/:id${query}`)).text.match(/(?<=routes-route">)<bdi>[^]*?<\/tr>/g) ?? ['']
  const [first, ...others] = await rowsOf()
  assert.match(first,
    /^<bdi>GET \/orders\/&lt;script&gt;alert\(1\)<[^]*href="\/logs\?around=2026-01-01T00:12:00.000Z"[^]*>5\.0 s<[^]*is-failing" data-label="Status">503<[^]*href="\/workers\/3\?at=[^"]+">3<[^]*href="\/releases\/r2">/)
  assert.equal(others.length, 9)
  assert.doesNotMatch(others.join(''), /is-failing/)
  assert.equal((await rowsOf(`&${span}`)).length, 2)
  clock.advance(61 * MINUTE_MS)
  say(1, 'r1', 70)
  assert.deepEqual((await list('?since=1h')).map(({ ms }) => ms), [70])
})

test('the page marks the routes that a release made worse, and shows their names as text', async (t) => {
  const { visit } = await setUp(t)
  const page = async (query: string) => (await visit(`/routes${query}`)).text
  const text = await page('?release=r2&compare=r1')
  assert.match(text, /GET \/users\/:id<\/bdi><\/a> <span class="pill tone-warn">Slower/)
  assert.match(text, /GET \/orders<\/bdi><\/a> <span class="pill tone-bad">More errors/)
  assert.ok(!text.includes('<script>alert'))
  assert.match(await page('?sort=size'), /role="alert"/)
})

test('an agent reads the slowest first', async (t) => {
  const admin = await setUp(t)
  const response = await fetch(`${admin.url}/mcp`, { method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream',
      authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call',
      params: { name: 'routes', arguments: { release: 'r2', compare: 'r1' } } }) })
  const { result } = await response.json() as { result: { content: { text: string }[] } }
  assert.match(result.content[0].text,
    /^3 routes of r2 since this master began, slowest p99 first:\n- GET \/users\/:id: 50 requests, 0\.0% errors, p50 487 ms, p99 487 ms \(r1: 50 requests/)
})
