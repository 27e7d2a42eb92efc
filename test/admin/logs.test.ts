import assert from 'node:assert/strict'
import { appendFileSync, utimesSync } from 'node:fs'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { startAdmin, type Admin } from '../support/admin.ts'
import { openFeed } from '../support/feed.ts'

const TICK_MS = 100
const HOSTILE = '<script>alert(1)</script>\u001b[2J\r data: {"x":1}'

test('gives the last lines of each log, as JSON or as a line of JSON each', async (t) => {
  const admin = await startAdmin(t)
  say(admin, 1, 'stdout', ['a', 'b', HOSTILE])
  say(admin, 1, 'stderr', ['oops'])
  say(admin, 2, 'stdout', ['c'])
  for (const [slot, stream, seconds] of [[1, 'stdout', 1], [1, 'stderr', 3], [2, 'stdout', 2]] as const)
    writtenAt(admin, slot, stream, seconds)
  const all = await admin.api('get', '/api/v1/logs?lines=2')
  assert.deepEqual(all.body.items.map(({ place, ...line }) => line), [{ slot: 1, stream: 'stdout', text: 'b',
    arrivedAt: at(1) }, { slot: 1, stream: 'stdout', text: HOSTILE, arrivedAt: at(1) }, { slot: 2, stream: 'stdout',
    text: 'c', arrivedAt: at(2) }, { slot: 1, stream: 'stderr', text: 'oops', arrivedAt: at(3) }],
    'in the order of their arrival')
  assert.deepEqual(all.body.items.map(({ place }) => place), ['1o2', '1o4', '2o0', '1e0'], 'and where each begins')
  const one = await admin.api('get', '/api/v1/logs?slot=1&stream=stdout').set('Accept', 'application/x-ndjson').buffer(
    true
  ).parse(asText)
  assert.equal(one.headers['content-type'], 'application/x-ndjson; charset=utf-8')
  assert.deepEqual(String(one.body).split('\n').slice(0, -1).map((line) => JSON.parse(line).text), ['a', 'b', HOSTILE])
  assert.deepEqual((await admin.api('get', '/api/v1/logs?slot=2&stream=stderr')).body, { items: [], next: null })
  assert.deepEqual((await admin.api('get', '/api/v1/logs?slot=1&stream=stdout&lines=2')).body.next, '1o2')
})

test('finds the newest lines that match, in all files, and says where to look further', async (t) => {
  const admin = await startAdmin(t)
  for (const [index, [slot, stream]] of ([[1, 'stdout'], [2, 'stderr'], [1, 'stdout']] as const).entries()) {
    say(admin, slot, stream, Array.from({ length: 3 }, (_, line) =>
      `${index}${line} ${line === 1 ? 'An ERROR ÄRGER' : 'fine'}`))
    writtenAt(admin, slot, stream, index)
    // Noted, as a master does by itself.
    await admin.api('get', '/api/v1/logs')
  }
  /** A search that has got no CPU says where to go on. */
  const find = async (query: string) => {
    let { body } = await admin.api('get', `/api/v1/logs?${query}`)
    while (body.items?.length === 0 && body.next !== null)
      body = (await admin.api('get', `/api/v1/logs?${query}&cursor=${body.next}`)).body
    return body
  }
  const texts = ({ items }: { items: { text: string }[] }) => items.map(({ text }) => text.slice(0, 2))
  const first = await find('q=error%20ärger&lines=2')
  assert.deepEqual(texts(first), ['11', '21'])
  const rest = await find(`q=error&lines=2&cursor=${first.next}`)
  assert.deepEqual([texts(rest), rest.next], [['01'], null])
  assert.deepEqual(texts(await find(`q=error&since=${at(1)}`)), ['11', '21'])
  assert.deepEqual(texts(await find(`until=${at(1)}`)), ['00', '01', '02'])
  assert.deepEqual(texts(await find(`around=${at(1)}&lines=4`)), ['01', '02', '10', '11'])
  const [line] = (await find('q=11')).items
  assert.deepEqual(texts(await find(`around=${line.place}&lines=4`)), ['02', '10', '11', '12'], 'of all slots')
  assert.deepEqual(texts(await find(`q=${encodeURIComponent('/^[02]1 .*(ERROR|never)/')}`)), ['01', '21'])
  assert.deepEqual([texts(await find('level=error&lines=3')), texts(await find('level=info,none&lines=3'))], [['01',
    '11', '21'], ['12', '20', '22']], 'what says none is none, on stderr too')
  assert.deepEqual(await find('q=nowhere'), { items: [], next: null })
  for (const [query, message] of [[`around=${at(1)}&q=x`, 'around: expected without q, received both'], ['since=soon',
    'since: expected an ISO 8601 time'], ['cursor=1x', 'cursor: expected the id of an event'], ['q=',
    'q: expected 1 to 200 characters'], ['q=/(/', 'q: expected text, or a regular expression such as /time(d )?out/'], [
    'level=loud',
    'level: expected levels (error, warn'
  ], ['around=1o0&level=error', 'around: expected without level']]) {
    const { body } = await admin.api('get', `/api/v1/logs?${query}`).expect(400)
    assert.ok(body.detail.startsWith(message), body.detail)
  }
})

test('leaves out slots that the cluster has no more, unless one is asked for', async (t) => {
  const admin = await startAdmin(t)
  admin.deck.logs.open({ worker: 3, slot: 3 }).close()
  for (const slot of [1, 3]) say(admin, slot, 'stdout', [`of ${slot}`])
  for (const query of ['', '?q=of'])
    assert.deepEqual((await admin.api('get', `/api/v1/logs${query}`)).body.items.map(({ slot }) => slot), [1], query)
  for (const query of ['?slot=3', '?slot=3&q=of'])
    assert.deepEqual((await admin.api('get', `/api/v1/logs${query}`)).body.items.map(({ slot }) => slot), [3], query)
})

test('gives a bounded answer, whatever has been written', async (t) => {
  const admin = await startAdmin(t)
  for (const slot of [1, 2])
    say(admin, slot, 'stdout', [...Array.from({ length: 50_000 }, (_, index) => `${index} ${'x'.repeat(100)}`),
      'y'.repeat(2_000_000), 'last'])
  const { body, text } = await admin.api('get', '/api/v1/logs?lines=1000')
  assert.ok(text.length < 1_200_000)
  assert.equal(body.items.at(-1)?.text, 'last')
})

test('tells what is written as it is written, each line once and whole, also of a slot that comes later', async (t) => {
  const admin = await startAdmin(t)
  say(admin, 1, 'stdout', ['old', 'older'])
  appendFileSync(liveFile(admin.deck.logs.folder, { slot: 1, stream: 'stdout' }), 'half ')
  const feed = await follow(t, admin, '?lines=2')
  say(admin, 1, 'stdout', ['and half', HOSTILE])
  say(admin, 2, 'stderr', ['second'])
  assert.deepEqual(await feed.next(4), [['message', { slot: 1, stream: 'stdout', text: 'older' }], ['message', {
    slot: 1,
    stream: 'stdout',
    text: 'half and half'
  }], ['message', { slot: 1, stream: 'stdout', text: HOSTILE }], ['message', { slot: 2, stream: 'stderr',
    text: 'second' }]], 'what has no end yet comes with its end, and once')
  admin.deck.logs.open({ worker: 3, slot: 3 }).close()
  say(admin, 3, 'stdout', ['third'])
  assert.deepEqual(await feed.next(1), [['message', { slot: 3, stream: 'stdout', text: 'third' }]])
})

test('tells only what was asked for', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin, '?slot=2&stream=stderr')
  say(admin, 1, 'stderr', ['no'])
  say(admin, 2, 'stdout', ['no'])
  say(admin, 2, 'stderr', ['yes'])
  assert.deepEqual(await feed.next(1), [['message', { slot: 2, stream: 'stderr', text: 'yes' }]])
})

test('leaves out what comes too fast, says so, and goes on with a whole line', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin, '?slot=1&stream=stdout')
  say(admin, 1, 'stdout', Array.from({ length: 20_000 }, (_, index) => `${index} ${'x'.repeat(60)}`))
  const [[event, { bytes }], [, { text }]] = await feed.next(2)
  assert.equal(event, 'dropped')
  assert.ok(bytes > 500_000)
  assert.match(text, /^\d+ x{60}$/)
})

test('goes on for a reader where it was, by the id of the last event', async (t) => {
  const admin = await startAdmin(t)
  say(admin, 1, 'stdout', ['first'])
  const feed = await follow(t, admin, '?slot=1&lines=5')
  say(admin, 1, 'stderr', ['second'])
  assert.deepEqual((await feed.next(2)).map(([, { text }]) => text), ['first', 'second'])
  const ids = [...feed.text().matchAll(/^id: (.+)$/gm)].map(([, id]) => id)
  assert.deepEqual(ids, ['1o6-1e0', '1o6-1e7'])
  say(admin, 1, 'stdout', ['third'])
  for (const [query, headers] of [['?slot=1&from=1o6-1e7', {}], ['?slot=1&from=1o0-1e0', {
    'Last-Event-ID': '1o6-1e7'
  }], ['?slot=1&lines=5', { 'Last-Event-ID': '1o6-1e7' }]] as const) {
    const next = await follow(t, admin, query, headers)
    assert.deepEqual(await next.next(1), [['message', { slot: 1, stream: 'stdout', text: 'third' }]], query)
  }
  const all = await follow(t, admin, '?from=1o6-1e7')
  say(admin, 2, 'stdout', ['of a slot that it did not know'])
  assert.deepEqual((await all.next(2)).map(([, { text }]) => text), ['third', 'of a slot that it did not know'])
})

test('reads no more in one tick than it may, however many logs are written to', async (t) => {
  const admin = await startAdmin(t)
  const { logs } = admin.deck
  for (let slot = 3; slot <= 64; slot++) logs.open({ worker: slot, slot }).close()
  const feed = await follow(t, admin)
  for (const slot of logs.slots()) say(admin, slot, 'stdout', [`${'x'.repeat(99)}\n`.repeat(4000)])
  await feed.next(1)
  const once = await feed.settled()
  assert.ok(once > 100_000 && once < 2.2e6, `${once} characters of 26 MB`)
})

test('keeps nothing for a reader that does not read', async (t) => {
  const admin = await startAdmin(t)
  const feed = await follow(t, admin, '?slot=1&stream=stdout')
  feed.stopReading()
  for (let round = 0; round < 400; round++) {
    say(admin, 1, 'stdout', [`${'z'.repeat(100)}\n`.repeat(4000)])
    admin.clock.advance(TICK_MS)
    await new Promise((resolve) => setImmediate(resolve))
  }
  feed.goOnReading()
  await feed.next(1)
  // What the sockets hold, and little more: 160 MB were written, of which 26 MB would have been read.
  const kept = await feed.settled()
  assert.ok(kept < 10e6, `${kept} characters were kept for it`)
})

test('ends when the port closes, and when the session does', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const guest = await follow(t, admin, '', { Cookie, Authorization: undefined })
  const script = await follow(t, admin)
  admin.admin.revokeSessions()
  say(admin, 1, 'stdout', ['not for everybody'])
  admin.clock.advance(TICK_MS)
  await guest.ended
  assert.doesNotMatch(guest.text(), /not for everybody/)
  await Promise.all([admin.admin.close(), script.ended])
  assert.equal(admin.clock.pending(), 0)
})

function say (admin: Admin, slot: number, stream: 'stdout' | 'stderr', lines: string[]) {
  appendFileSync(liveFile(admin.deck.logs.folder, { slot, stream }), lines.map((line) => `${line}\n`).join(''))
}

function writtenAt (admin: Admin, slot: number, stream: 'stdout' | 'stderr', seconds: number) {
  utimesSync(liveFile(admin.deck.logs.folder, { slot, stream }), new Date(at(seconds)), new Date(at(seconds)))
}

function at (seconds: number) {
  return new Date(Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1000).toISOString()
}

/** a line; `bytes`: of what was dropped */
type Told = { text: string, bytes: number }

/** `data`: of a message, whose lines say when they have arrived */
function withoutTime ({ arrivedAt, place, ...data }: { arrivedAt?: string, place?: string } & Told) {
  assert.equal(typeof arrivedAt, data.text === undefined ? 'undefined' : 'string')
  return data
}

async function follow (t: TestContext, admin: Admin, query = '', headers?: Record<string, string | undefined>) {
  const feed = await openFeed(t, admin, `/api/v1/logs/stream${query}`, headers)
  assert.equal(feed.headers['content-type'], 'text/event-stream; charset=utf-8')
  let told = 0
  const messages = () =>
    feed.blocks().filter((block) => block.includes('data: ')).map((block): [string, Told] => {
      const lines = block.split('\n')
      return [lines.find((line) => line.startsWith('event: '))?.slice('event: '.length) ?? 'message',
        withoutTime(JSON.parse((lines.at(-1) as string).slice('data: '.length)))]
    })

  return {
    ...feed,
    /** Waits until nothing more comes while time stands still; returns the number of characters. */
    async settled () {
      let before = -1
      for (let quiet = 0; quiet < 4; quiet = before === feed.text().length ? quiet + 1 : 0) {
        before = feed.text().length
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      return before
    },

    /** Lets time go by until so many more have come. */
    async next (count: number) {
      while (messages().length < told + count) {
        admin.clock.advance(TICK_MS)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      told += count
      return messages().slice(told - count, told)
    }
  }
}

function asText (res: http.IncomingMessage, done: (error: Error | null, body: string) => void) {
  let text = ''
  res.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  }).on('end', () => done(null, text))
}
