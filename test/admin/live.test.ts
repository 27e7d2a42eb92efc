import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { io } from 'socket.io-client'
import { openHistory } from '../../db/history.ts'
import { attachLive } from '../../server/admin/live.ts'
import { livePages } from '../../server/dashboard/pages.ts'
import { createViews } from '../../server/dashboard/views.ts'
import { heard } from '../support/admin.ts'
import { createFakeDeck } from '../support/fake-deck.ts'
import { until } from '../support/until.ts'
import type { AddressInfo } from 'node:net'
import type { Auth } from '../../server/api/roles.ts'
import type { SentFragment } from '../../public/live-events.d.ts'

const ADMIN: Auth = { actor: 'dashboard', via: 'session', client: 'dashboard', name: null, role: 'admin', token: null,
  until: null }

/** The live part alone, over HTTP without a guard. */
async function startLive (t: TestContext,
  { authenticate = () => ADMIN, basePath, now = Date.now }: { authenticate?: () => Auth | null, basePath?: string,
    now?: () => number } = {})
{
  const history = openHistory({ file: ':memory:' })
  const deck = createFakeDeck({ history })
  const views = createViews()
  const rendered = [] as string[]
  const renderings = new EventEmitter()
  const logged: unknown[] = []
  const spy = { fragment (id: string, data: object) {
    rendered.push(id)
    renderings.emit(id)
    return views.fragment(id, data)
  } }
  const httpServer = http.createServer()
  const live = attachLive({ httpServer, pages: livePages({ deck, history, now, views: spy }), basePath, authenticate,
    now, log: { error: (...args) => logged.push(args) } })
  httpServer.listen(0, '127.0.0.1')
  await once(httpServer, 'listening')
  const { port } = httpServer.address() as AddressInfo
  t.after(async () => {
    live.close()
    await new Promise((resolve) => {
      httpServer.close(resolve)
      httpServer.closeAllConnections()
    })
    history.close()
  })

  return {
    deck,
    live,
    rendered,
    renderings,
    logged,
    /** A viewer whose connection ends with the test. */
    connect () {
      const socket = io(`http://127.0.0.1:${port}`, { transports: ['websocket'], reconnection: false, forceNew: true })
      t.after(() => socket.close())
      return socket
    },
    /** Watches a page; resolves once its first fragments are here. */
    async watch (url: unknown) {
      const socket = this.connect()
      const updates = [] as SentFragment[][]
      socket.on('fragments', ({ fragments }) => updates.push(fragments))
      await heard(socket, 'connect')
      const reply = await socket.emitWithAck('watch', url)
      return { socket, updates, reply, next: async () => (await heard(socket, 'fragments'))[0].fragments }
    }
  }
}

test('renders nothing while nobody watches, whatever happens', async (t) => {
  const { deck, rendered, watch, connect } = await startLive(t)
  deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  await nextTurn()
  assert.deepEqual(rendered, [])
  // Connected is not watching; an event's own page does not change, nor do older pages of a list, but for what stands
  // around them.
  await heard(connect(), 'connect')
  for (const url of ['/history/1', '/history?cursor=1', '/docs', '/nope']) await watch.call({ connect }, url)
  deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  await nextTurn()
  assert.deepEqual([...new Set(rendered)], ['trouble', 'open-crashes'])
})

test('a viewer gets the whole page first, then what changed and nothing else', async (t) => {
  const live = await startLive(t)
  const viewer = await live.watch('/')
  assert.deepEqual(viewer.updates[0].map(({ id }) => id), ['notices', 'health', 'addresses', 'actions', 'facts',
    'rollout', 'workers', 'recent', 'chart-news', 'silent-hosts', 'fleet-turn', 'trouble', 'open-crashes'])
  assert.equal(typeof viewer.reply.version, 'string')

  live.deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  assert.deepEqual((await viewer.next()).map(({ id }) => id), ['recent'])
})

test('renders once for any number of viewers, and once for any number of events of one turn', async (t) => {
  const live = await startLive(t)
  const viewers = [await live.watch('/'), await live.watch('/'), await live.watch('/')]
  live.rendered.length = 0
  for (let n = 0; n < 50; n++) live.deck.events.publish({ type: 'worker.ready', worker: n, slot: 1 })
  await Promise.all(viewers.map(({ next }) => next()))
  assert.equal(live.rendered.filter((name) => name === 'recent').length, 1)
})

test('sends nothing when only time has passed', async (t) => {
  let hours = 0
  const live = await startLive(t, { now: () => Date.parse('2026-01-01T00:00:00.000Z') + 3_600_000 * hours++ })
  const viewer = await live.watch('/')
  for (let beat = 0; beat < 3; beat++) await once(live.renderings, 'recent')
  assert.equal(viewer.updates.length, 1)
})

test('a viewer of the history gets what its filters let through', async (t) => {
  const live = await startLive(t)
  const exits = await live.watch('/history?type=worker.exited')
  live.deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  await nextTurn()
  live.deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1 })
  await until(() => exits.updates.flat().some(({ id, parts }) => id === 'events' && parts.join('').includes('event-2')),
    'the exit')
  const html = JSON.stringify(exits.updates.flat().findLast(({ id }) => id === 'events')?.parts)
  assert.match(html, /id=\\"event-2\\"/)
  assert.doesNotMatch(html, /event-1\\"/)
})

test('a viewer that moves on gets the new page and no longer the old one', async (t) => {
  const live = await startLive(t)
  const viewer = await live.watch('/history')
  await viewer.socket.emitWithAck('watch', '/')
  viewer.updates.length = 0
  live.deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  await viewer.next()
  assert.deepEqual(viewer.updates.flat().filter(({ id }) => id === 'events'), [])
})

test('refuses whoever is not signed in', async (t) => {
  const live = await startLive(t, { authenticate: () => null })
  const socket = live.connect()
  const [error] = await Promise.race([heard(socket, 'connect_error'), heard(socket, 'connect')])
  assert.equal(error?.message, 'unauthenticated')
})

test('tells a viewer whose session has ended, and lets it go', async (t) => {
  let isSignedIn = true
  const live = await startLive(t, { authenticate: () => isSignedIn ? ADMIN : null })
  const { socket } = await live.watch('/')
  const told = heard(socket, 'signed-out')
  const gone = heard(socket, 'disconnect')
  isSignedIn = false
  await told
  assert.deepEqual((await gone)[0], 'io server disconnect')
})

test('whoever is no longer signed in gets no page, not even in the moment before being told', async (t) => {
  let isSignedIn = true
  const live = await startLive(t, { authenticate: () => isSignedIn ? ADMIN : null })
  const socket = live.connect()
  const updates = [] as unknown[]
  socket.on('fragments', (update) => updates.push(update))
  await heard(socket, 'connect')
  isSignedIn = false
  await socket.emitWithAck('watch', '/')
  assert.deepEqual(updates, [])
})

test('nonsense in place of an address harms nobody', async (t) => {
  const live = await startLive(t, { basePath: '/deck' })
  for (const url of [null, 5, '/deck//', {}, 'http://[', '//', '\0', 'x'.repeat(5000), '/history?slot=abc',
    '/history?cursor=%00'])
  {
    const { reply, socket } = await live.watch(url)
    assert.equal(typeof reply.version, 'string')
    socket.emit('watch')
    socket.emit('watch', '/', 'not a function')
  }
  assert.deepEqual((await live.watch(`/history?more=${'x'.repeat(5000)}`)).updates, [])
  const viewer = await live.watch('/')
  live.deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  assert.equal((await viewer.next())[0].id, 'recent')
  assert.deepEqual(live.logged, [])
})

test('closing lets viewers come back by themselves: the connection is lost, not ended', async (t) => {
  const live = await startLive(t)
  const { socket } = await live.watch('/')
  const gone = heard(socket, 'disconnect')
  live.live.close()
  assert.equal((await gone)[0], 'transport close')
})

test('whoever asks for pages faster than they can be rendered gets the last one', async (t) => {
  const { rendered, connect } = await startLive(t)
  const socket = connect()
  await heard(socket, 'connect')
  for (let n = 0; n < 5000; n++) socket.emit('watch', `/history?q=${n}`)
  const seen = [] as string[]
  await new Promise((resolve) =>
    socket.on('fragments', ({ url }) => seen.push(url) && url === '/history?q=4999' && resolve(undefined))
  )
  assert.ok(seen.length <= 100, `${seen.length} answers`)
  assert.ok(rendered.length <= 1000, `${rendered.length} parts rendered`)
})
