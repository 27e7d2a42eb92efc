import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { rawRequest, startAdmin, TOKEN, type Admin } from '../support/admin.ts'
import { openFeed } from '../support/feed.ts'
import { fake } from '../support/fake.ts'
import { until } from '../support/until.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

const HEARTBEAT_MS = 15_000

test('tells events as they happen, with their ids', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin)
  assert.equal(feed.headers['content-type'], 'text/event-stream; charset=utf-8')
  const published = admin.deck.events.publish({ type: 'worker.exited', message: 'line one\nline two\r\n\r\nid: 99' })
  assert.deepEqual(await feed.next(), { id: '1', event: published })
  admin.deck.events.publish({ type: 'worker.forked' })
  assert.equal((await feed.next()).id, '2')
})

test('tells a reader that was away what it missed, then what happens', async (t) => {
  const admin = await startAdmin(t)
  for (let id = 1; id <= 350; id++) admin.deck.events.publish({ type: 'worker.online', worker: id })
  const feed = await follow(t, admin, { 'Last-Event-ID': '20' })
  for (let id = 21; id <= 350; id++) {
    // What happens while the past is still being told comes after it, once.
    if (id === 21) admin.deck.events.publish({ type: 'worker.ready' })
    assert.equal((await feed.next()).id, String(id))
  }
  assert.equal((await feed.next()).event.type, 'worker.ready')
  admin.deck.events.publish({ type: 'worker.draining' })
  assert.deepEqual(pick(await feed.next()), ['352', 'worker.draining'])
})

test('has 32 streams for each who is signed in, and room again once one has ended', async (t) => {
  const admin = await startAdmin(t)
  const { headers } = await admin.tokenFor('ada', 'viewer')
  const feeds = []
  for (let n = 0; n < 32; n++) feeds.push(await follow(t, admin))
  const look = async (path: string) =>
    (await rawRequest(admin, { method: 'HEAD', path, headers: { Authorization: `Bearer ${TOKEN}` } })).status
  assert.deepEqual([await look('/api/v1/events/stream'), await look('/api/v1/logs/stream')], [429, 429])
  await follow(t, admin, { Authorization: headers.authorization })
  feeds[0].close()
  await until(async () => await look('/api/v1/events/stream') === 200, 'room for another one')
})

test('has room for the owner in a browser, however many streams a viewer has there', async (t) => {
  const admin = await startAdmin(t)
  const { body: { url } } = await admin.api('post', '/api/v1/sign-in-links').send({ role: 'viewer', name: 'grace' })
    .expect(201)
  const viewer = await admin.signIn(url)
  for (let n = 0; n < 32; n++) await follow(t, admin, { Authorization: undefined, Cookie: viewer })
  const look = async (cookie: string) =>
    (await rawRequest(admin, { method: 'HEAD', path: '/api/v1/events/stream', headers: { Cookie: cookie } })).status
  assert.deepEqual([await look(viewer), await look(await admin.signIn())], [429, 200])
})

test('tells nothing twice to a reader that is up to date, or claims to be ahead', async (t) => {
  const admin = await startAdmin(t)
  admin.deck.events.publish({ type: 'worker.online' })
  for (const id of ['1', '900']) {
    const feed = await follow(t, admin, { 'Last-Event-ID': id })
    const { id: published } = admin.deck.events.publish({ type: 'worker.ready' })
    assert.equal((await feed.next()).id, String(published))
  }
})

test('says what it leaves out when a reader was away for too long', async (t) => {
  const admin = await startAdmin(t)
  const oldest = 500_000
  Object.defineProperty(admin.deck.events, 'lastId', { get: () => oldest + 10_000 - 1 })
  const read = [] as number[]
  admin.history.event = (id) => {
    read.push(id)
    return id === oldest + 9_999 ? fake<DeckEvent>({ id, type: 'worker.online' }) : null
  }
  const feed = await follow(t, admin, { 'Last-Event-ID': '1' })
  assert.equal((await feed.next()).id, String(oldest + 9_999))
  assert.match(feed.comments(), /: events 2 to 499999 are left out/)
  assert.equal(read[0], oldest)
})

test('sends heartbeats while nothing happens', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin)
  admin.clock.advance(HEARTBEAT_MS)
  await feed.until(() => feed.comments().includes(': heartbeat'))
})

test('ends when the session does', async (t) => {
  for (const end of [(admin) => admin.admin.revokeSessions(),
    (admin, Cookie) =>
      rawRequest(admin, { method: 'POST', path: '/sign-out', headers: { Cookie, Origin: admin.origin } }),
    (admin) => admin.clock.advance(13 * 60 * 60_000)] as ((admin: Admin, Cookie: string) => unknown)[])
  {
    const admin = await startAdmin(t)
    const Cookie = await admin.signIn()
    const feed = await follow(t, admin, { Cookie, Authorization: undefined })
    await end(admin, Cookie)
    admin.deck.events.publish({ type: 'worker.exited', message: 'not for everybody' })
    await feed.ended
    assert.ok(!feed.text().includes('not for everybody'))
  }
})

test('lets go of a reader that has gone', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin)
  assert.equal(admin.clock.pending(), 1)
  const gone = new Promise((resolve) => {
    const { clearInterval } = admin.clock.timers
    admin.clock.timers.clearInterval = (id) => {
      clearInterval(id)
      resolve(undefined)
    }
  })
  feed.close()
  await gone
  assert.equal(admin.clock.pending(), 0)
})

test('cuts off a reader that does not read, instead of keeping everything for it', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin)
  feed.stopReading()
  const large = 'x'.repeat(100_000)
  const cut = new Promise((resolve) => {
    const { clearInterval } = admin.clock.timers
    admin.clock.timers.clearInterval = (id) => {
      clearInterval(id)
      resolve('cut')
    }
  })
  let published = 0
  while (await Promise.race([cut, new Promise((resolve) => setImmediate(resolve))]) !== 'cut') {
    admin.deck.events.publish({ type: 'worker.exited', detail: { large } })
    assert.ok(++published < 1000, 'a hundred megabytes are kept for a reader that does not read')
  }
  feed.close()
})

test('ends every feed when the port closes', async (t) => {
  const admin = await startAdmin(t)
  const feeds = [await follow(t, admin), await follow(t, admin)]
  await Promise.all([admin.admin.close(), ...feeds.map(({ ended }) => ended)])
})

test('goes on with the present while the database fails', async (t) => {
  const admin = await startAdmin(t)
  admin.deck.events.publish({ type: 'worker.online' })
  const { event } = admin.history
  admin.history.event = () => {
    throw new Error('disk I/O error')
  }
  const feed = await follow(t, admin, { 'Last-Event-ID': '0' })
  const { id } = admin.deck.events.publish({ type: 'worker.ready' })
  assert.equal((await feed.next()).id, String(id))
  admin.history.event = event
})

/** A reader that has begun to follow what happens. */
async function follow (t: TestContext, admin: Admin, headers?: Record<string, string | undefined>) {
  const feed = await openFeed(t, admin, '/api/v1/events/stream', headers)
  const messages = () => feed.blocks().filter((block) => block.startsWith('id: '))
  let told = 0
  return { ...feed, comments: () => feed.blocks().filter((block) => block.startsWith(': ')).join('\n'), async next () {
    const index = told++
    await feed.until(() => messages().length > index)
    const [id, data, ...rest] = messages()[index].split('\n')
    assert.deepEqual(rest, [], 'a message has two lines, whatever the event holds')
    return { id: id.slice('id: '.length), event: JSON.parse(data.slice('data: '.length)) }
  } }
}

function pick ({ id, event }: { id: string, event: { type: string } }) {
  return [id, event.type]
}
