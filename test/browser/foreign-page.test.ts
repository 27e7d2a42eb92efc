import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { PAGES } from '../../server/dashboard/pages.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { startDeckHere, type DeckHere as Deck } from '../support/deck-here.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import type { Page } from 'playwright-core'
import type { AddressInfo } from 'node:net'
import type { Plan } from './attacks.ts'

const HOSTS = ['127.0.0.1', 'localhost']
/** Where the page is, and where the admin port: to a browser those of two hosts are two sites, whichever is which. */
const WAYS = [['127.0.0.1', '127.0.0.1'], ['localhost', '127.0.0.1'], ['localhost', 'localhost']]
const FILES = ['/history.csv', '/logs.txt', '/logs.ndjson', '/assets/app.css', '/assets/charts.js', '/sign-in']
const POLLING = '/socket.io/?EIO=4&transport=polling'
/** What would do something, if it were let through. */
const BODIES: Record<string, object> = { '/api/v1/scale': { workers: 3 }, '/api/v1/rollouts': { kind: 'restart' },
  '/api/v1/tokens': { name: 'eve', role: 'admin' }, '/api/v1/messages': { type: 'reload' } }
/** Kinds whose attempts tell a page nothing even where all is open: only what they do counts. */
const BLIND = ['beacon', 'frame', 'form in a frame', 'ahead', 'speculation', 'cookie']

const browser = useBrowser()

test('a page on the app\'s own port can read nothing of the admin port and do nothing there, whoever visits it', {
  skip: rareOnly,
  timeout: 180_000
}, async (t) => {
  const deck = await startDeckHere(t, 'serves-a-hostile-page.js')
  await deck.until({ ready: 2 })
  await deck.api('/tokens', { method: 'POST', body: JSON.stringify({ name: 'ada', role: 'viewer' }) })
  const [{ port: appPort }, { port: adminPort }] = [new URL(await deck.appUrl()), new URL(deck.adminUrl)]
  const page = await browser.page()
  t.after(() => page.context().close())
  for (const host of HOSTS) {
    await page.goto(at(host, adminPort) + await freshLink(deck))
    await untilLive(page)
  }
  const wanted = await planOf(deck)
  const ways = await Promise.all(WAYS.map(async ([from, to]) => ({ from, to, link: await freshLink(deck) })))
  const before = await stateOf(deck)

  for (const { from, to, link } of ways) {
    // The browser counts another port of the same host as the same site; what it keeps from other sites, and whether
    // the host has a name, needs no trying of each path; and what a path answers to one way to ask, that of another one
    // does too.
    const isShared = from === to && from === HOSTS[0]
    const { reads, writes, forms } = isShared ? wanted : sampleOf(wanted)
    const { made, read, frames } = await attackFrom(page, at(from, appPort), { ...wanted, reads, writes, forms,
      isShared, link, target: at(to, adminPort) })
    const total = Object.values(made).reduce((sum, count) => sum + count)
    t.diagnostic(
      `${total} attempts from ${from} on ${to}: ${
        Object.entries(made).map(([kind, count]) => `${kind} ${count}`).join(', ')
      }`
    )
    assert.equal(made.fetch, reads.length * (isShared ? 2 : 3))
    assert.equal(made.write, writes.length * (isShared ? 3 : 4 * 3))
    assert.equal(made['form in a frame'], forms.length * (isShared ? 1 : 3))
    assert.deepEqual(read, [], `from ${from} on ${to}`)
    assert.ok(frames.length >= made['form in a frame'])
    assert.deepEqual(frames.filter((url) => !url.startsWith('chrome-error:')), [], 'no frame shows anything')
  }

  const events = (await deck.history('limit=1000')).filter(({ id }) => id > before.lastEventId)
  assert.deepEqual(
    events.filter(({ type, actor }) => type !== 'access.refused' || actor !== null).map(({ type, message }) =>
      `${type}: ${message}`
    ),
    []
  )
  assert.ok(events.length > 0, 'it has come as far as the port')
  assert.deepEqual((await stateOf(deck)).facts, before.facts)
  for (const host of HOSTS) {
    for (const path of ['/history', '/']) {
      await page.goto(at(host, adminPort) + path)
      await untilLive(page)
    }
    assert.equal(await page.evaluate(async () => (await fetch('/api/v1/status')).status), 200,
      `still signed in on ${host}`)
  }
  for (const { link } of ways)
    assert.equal((await fetch(deck.adminUrl + link, { redirect: 'manual' })).status, 303,
      'a link that was fetched ahead still signs in')
})

rareTest('the same page reads and does all of that where a server lets it', async (t) => {
  const deck = await startDeckHere(t, 'serves-a-hostile-page.js', { workers: 1 })
  await deck.until({ ready: 1 })
  const { port, requests } = await openDoor(t)
  const page = await browser.page()
  t.after(() => page.context().close())
  const all = await planOf(deck)
  const plan = { ...all, ...sampleOf(all), link: '/sign-in?code=x', target: at('127.0.0.1', port) }
  const { made, read, frames } = await attackFrom(page, at('127.0.0.1', new URL(await deck.appUrl()).port), plan)

  const kinds = new Set(read.map((outcome) => outcome.split(':', 1)[0]))
  assert.deepEqual(Object.keys(made).filter((kind) => !kinds.has(kind)), BLIND)
  assert.equal(read.filter((outcome) => outcome.startsWith('fetch: cors ')).length, plan.reads.length)
  assert.equal(read.filter((outcome) => outcome.startsWith('write: cors ')).length, plan.writes.length * 4)
  assert.equal(frames.length, made['form in a frame'] + made.frame)
  assert.ok(frames.every((url) => url.startsWith(plan.target)), frames.join())
  for (const path of plan.forms)
    assert.ok(requests.filter((request) => request === `POST ${path}`).length >= 3 + 3, path)
  for (const { path, method } of plan.writes) assert.ok(requests.includes(`${method} ${path}`), `${method} ${path}`)
  assert.ok(requests.includes(`GET ${plan.link}`), 'fetched ahead')
})

function at (host: string, port: string | number) {
  return `http://${host}:${port}`
}

/** @returns its path */
async function freshLink (deck: Deck): Promise<string> {
  const { pathname, search } = new URL(await deck.signInLink())
  return pathname + search
}

/** All that the document, the pages and the forms name, with ids of what there is. */
async function planOf (deck: Deck): Promise<Omit<Plan, 'target' | 'link'>> {
  const { body: document } = await deck.api('/openapi.json')
  const operations = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId: name }]) => ({ name, method: method.toUpperCase(),
      path: path.replace('{release}', 'r1').replace(/\{\w+\}/g, '1') })
    )
  )
  const gets = operations.filter(({ method }) => method === 'GET').map(({ path }) => path)
  const pages = PAGES.map(({ path }) => path.replace('{/:id}', '').replace(':id', '1'))
  const writes = operations.filter(({ method }) => method !== 'GET')
  assert.ok(gets.length >= 25 && writes.length >= 20, `${gets.length} and ${writes.length}`)
  return { reads: [...gets, ...pages, ...FILES, POLLING],
    writes: [...writes, { method: 'POST', path: '/sign-in' }, { method: 'POST', path: `${POLLING}&sid=guess` }, {
      method: 'PATCH',
      path: '/api/v1/scale'
    }].map(({ method, path }) => ({ method, path, body: JSON.stringify(BODIES[path] ?? {}) })),
    forms: [...writes.map(({ name }) => `/actions/${name}`), '/actions/startRollout', '/actions/switch', '/sign-in',
      '/sign-out'], streams: gets.filter((path) => path.endsWith('/stream')),
    socket: '/socket.io/?EIO=4&transport=websocket', cookie: `clusterdeck_${new URL(deck.adminUrl).port}` }
}

function sampleOf ({ reads, writes, forms }: Omit<Plan, 'target' | 'link'>) {
  const isTaken = (_: unknown, index: number) => index % 12 === 0
  return { reads: reads.filter(isTaken), writes: writes.filter(isTaken), forms: forms.filter(isTaken) }
}

/** `origin`: of the hostile page */
async function attackFrom (page: Page, origin: string, plan: Plan) {
  await page.goto(origin)
  await page.waitForFunction(() => 'attack' in window)
  const outcome: { made: Record<string, number>, read: string[] } = await page.evaluate((plan) => window.attack(plan),
    plan)
  const frames = page.frames().slice(1).map((frame) => frame.url())
  await Promise.all(page.context().pages().filter((each) => each !== page).map((each) => each.close()))
  return { ...outcome, frames }
}

async function stateOf (deck: Deck) {
  const { desiredWorkers, rollout, upgrade, state, release, workers, lastEventId } = await deck.status()
  const [tokens, config, diagnostics] = await Promise.all(
    ['/tokens', '/config', '/diagnostics'].map(async (path) => (await deck.api(path)).body)
  )
  const ids = workers.map(({ id, slot, pid, state }) => ({ id, slot, pid, state }))
  return { lastEventId,
    facts: { desiredWorkers, rollout, upgrade, state, release, workers: ids, tokens, config, diagnostics } }
}

/** A server that lets everybody do everything. */
async function openDoor (t: TestContext) {
  const requests: string[] = []
  const server = http.createServer((request, response) => {
    const { method, url = '', headers } = request
    requests.push(`${method} ${url}`)
    response.setHeader('Access-Control-Allow-Origin', headers.origin ?? '*').setHeader(
      'Access-Control-Allow-Credentials',
      'true'
    )
    response.setHeader('Access-Control-Allow-Methods', String(headers['access-control-request-method'])).setHeader(
      'Access-Control-Allow-Headers',
      String(headers['access-control-request-headers'])
    )
    response.setHeader('Content-Type', typeOf(url))
    request.resume().once('end',
      () => response.end(url.endsWith('/stream') ? 'data: open\n\n' : contentOf(typeOf(url))))
  })
  const sockets = new WebSocketServer({ server })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    sockets.close()
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, requests }
}

function typeOf (url: string) {
  if (url.endsWith('/stream')) return 'text/event-stream'
  if (url.endsWith('.svg')) return 'image/svg+xml'
  if (url.endsWith('.css')) return 'text/css'
  return url.endsWith('.js') ? 'text/javascript' : 'text/html'
}

function contentOf (type: string) {
  if (type === 'image/svg+xml') return '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
  return type === 'text/html' ? '<!doctype html><script>opener?.postMessage("here", "*")</script>' : '/**/'
}
