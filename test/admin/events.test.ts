import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openHistory } from '../../db/history.ts'
import { csvCell, exportChunks } from '../../server/events/api-export.ts'
import { rawRequest, START_MS, startAdmin, TOKEN, type Admin } from '../support/admin.ts'
import { setVariables } from '../support/variables.ts'
import type { EventCounts } from '../../server/events/api-counts.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

// Times without a zone are UTC, wherever the master runs.
setVariables({ TZ: 'Pacific/Auckland' })

const BEARER = { Authorization: `Bearer ${TOKEN}` }
const BLANK = Object.fromEntries(
  ['cause', 'slot', 'worker', 'pid', 'release', 'rollout', 'actor', 'code', 'signal', 'uptimeMs', 'message', 'detail']
    .map((name) => [name, null])
) as unknown as Omit<DeckEvent, 'id' | 'at' | 'type'>
const HOUR_MS = 60 * 60_000
// More than the sockets between here and there hold.
const LARGE = { detail: { stack: 'x'.repeat(5000) } }

test('serves the history newest first, page by page', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 250)
  const first = (await admin.api('get', '/api/v1/events').expect(200)).body
  assert.deepEqual(ids(first), countDown(250, 100))
  const second = (await admin.api('get', `/api/v1/events?cursor=${first.next}&limit=120`).expect(200)).body
  assert.deepEqual(ids(second), countDown(150, 120))
  const last = (await admin.api('get', `/api/v1/events?cursor=${second.next}`).expect(200)).body
  assert.deepEqual(ids(last), countDown(30, 30))
  assert.equal(last.next, null)
})

test('finds events by every filter', async (t) => {
  const admin = await startAdmin(t)
  const at = (hours: number) => new Date(START_MS + hours * HOUR_MS).toISOString()
  admin.clock.advance(10 * HOUR_MS)
  admin.history.record({ ...BLANK, id: 1, at: at(0), type: 'worker.forked', slot: 1, worker: 1, release: 'r1' })
  admin.history.record({ ...BLANK, id: 2, at: at(2), type: 'worker.exited', slot: 1, worker: 1, release: 'r1',
    cause: 'crash', message: 'TypeError: x is "not" a function' })
  admin.history.record({ ...BLANK, id: 3, at: at(5), type: 'rollout.started', rollout: 4, release: 'r2',
    detail: { id: 4 } })
  admin.history.record({ ...BLANK, id: 4, at: at(9), type: 'worker.exited', slot: 2, worker: 2, release: 'r1',
    cause: 'out-of-memory' })
  for (const [query, expected] of [['type=worker.exited', [4, 2]], ['type=worker.*', [4, 2, 1]], [
    'type=worker.forked,rollout.started',
    [3, 1]
  ], ['type=rollout.*,worker.forked', [3, 1]], ['type=token.created', []], ['cause=out-of-memory', [4]], ['slot=1', [2,
    1]], ['worker=2', [4]], ['release=r2', [3]], ['rollout=4', [3]], [`since=${at(2)}`, [4, 3, 2]], [
    'since=2026-01-01T05:00:00Z',
    [4, 3]
  ], ['since=2026-01-01T05:00', [4, 3]], ['since=2026-01-01T07:00:00%2B02:00', [4, 3]], [
    'since=2026-01-01T07:00:00+02:00',
    [4, 3]
  ], ['since=2026-01-01', [4, 3, 2, 1]], ['since=2026-01-02', []], ['since=8h', [4, 3, 2]], ['since=301m', [4, 3]], [
    'since=1d',
    [4, 3, 2, 1]
  ], ['since=3599s', []], [`until=${at(5)}`, [2, 1]], [`since=${at(2)}&until=${at(5)}`, [2]], ['q=not%22%20a', [2]], [
    'q=typeerror',
    [2]
  ], ['q=%25', []], ['slot=1&type=worker.exited&cause=crash&release=r1', [2]], ['slot=1&cause=out-of-memory', []]] as [
    string,
    number[]
  ][]) {
    assert.deepEqual(ids((await admin.api('get', `/api/v1/events?${query}`).expect(200)).body), expected, query)
  }
})

test('counts by step, type and cause exactly what the history lists', async (t) => {
  const admin = await startAdmin(t)
  const at = (seconds: number) => new Date(START_MS + seconds * 1000).toISOString()
  admin.clock.advance(HOUR_MS)
  admin.history.record({ ...BLANK, id: 1, at: at(10), type: 'rollout.started', rollout: 4, detail: { id: 4 } })
  for (let id = 2; id <= 1501; id++)
    admin.history.record({ ...BLANK, id, at: at(60 + id * 2), type: 'worker.exited', slot: id % 2 + 1,
      cause: id % 3 === 0 ? 'killed' : 'crash' })
  const count = async (query: string) => (await admin.api('get', `/api/v1/events/counts?${query}`).expect(200)).body
  const sum = (items: { count: number }[]) => items.reduce((total, { count }) => total + count, 0)

  const { items: [rollout, ...exits], ...range } = await count('type=rollout.*,worker.exited&since=1h&step=5m')
  assert.deepEqual(range, { stepMs: 300_000, since: at(0), until: at(3600), next: null })
  assert.deepEqual(rollout, { at: at(0), type: 'rollout.started', cause: null, count: 1, firstAt: at(10),
    lastAt: at(10), lastId: 1 })
  assert.equal(sum(exits), 1500)
  assert.deepEqual(exits.filter(({ cause }) => cause === 'killed')[1], { at: at(300), type: 'worker.exited',
    cause: 'killed', count: 50, firstAt: at(300), lastAt: at(594), lastId: 267 })
  for (const query of ['type=worker.exited:killed', 'cause=crash&slot=2', `since=${at(100)}&until=${at(200)}`,
    'worker=9', 'type=token.created', 'q=kill'])
  {
    const listed =
      (await download(admin, `/api/v1/events?since=1h&${query}`.replace(/since=1h&(since)/, '$1'),
        'application/x-ndjson')).split('\n').length - 1
    assert.equal(sum((await count(query.includes('since') ? query : `since=1h&${query}`)).items), listed, query)
  }
  assert.equal((await count('since=30d')).stepMs, 3 * HOUR_MS)
  assert.deepEqual((await count('since=2h&until=2h')).items, [])
  for (const query of ['since=1h&step=1s', 'since=2y', 'since=1000d', 'limit=5'])
    await admin.api('get', `/api/v1/events/counts?${query}`).expect(400)
})

test('counts go on where the time of an answer was spent, and lose and double nothing', async (t) => {
  let ms = 0
  const history = openHistory({ file: ':memory:', clock: () => (ms += 10) })
  const admin = await startAdmin(t, { history })
  fill(admin, 12_000)
  admin.clock.advance(HOUR_MS)
  const counted = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const { items, next } =
      (await admin.api('get', `/api/v1/events/counts${cursor && `?cursor=${cursor}`}`).expect(200)).body as EventCounts
    counted.push(items.reduce((total, { count }) => total + count, 0))
    cursor = next
  }
  assert.ok(counted.length > 1 && counted.every((count) => count > 0), `several answers: ${counted}`)
  assert.equal(counted.reduce((total, count) => total + count), 12_000)
})

test('counts the events that match over time, problems apart, in steps of a round length', async (t) => {
  const admin = await startAdmin(t)
  admin.clock.advance(10 * HOUR_MS)
  const at = (hours: number) => new Date(START_MS + hours * HOUR_MS).toISOString()
  for (const [id, [hours, cause]] of Object.entries([[0, null], [1.5, 'crash'], [1.6, 'deploy'], [9.9, 'hung']])) {
    admin.history.record({ ...BLANK, id: Number(id) + 1, at: at(Number(hours)),
      type: cause ? 'worker.exited' : 'worker.ready', cause: cause as string | null, slot: 1 })
  }
  const ask = async (query: string) => (await admin.api('get', `/api/v1/events/histogram?${query}`).expect(200)).body
  const all = await ask('steps=11')
  assert.deepEqual({ ...all, items: all.items.map(({ count, problems }) => [count, problems]) }, { from: at(0),
    to: at(11), stepMs: HOUR_MS, countedSince: null,
    items: [[1, 0], [2, 1], ...Array.from({ length: 7 }, () => [0, 0]), [1, 1], [0, 0]] })
  const part = await ask(`type=problems&since=${at(1)}&until=${at(2)}&steps=2`)
  assert.deepEqual(part.items, [{ at: at(1), count: 0, problems: 0 }, { at: at(1.5), count: 1, problems: 1 }])
  for (const query of ['since=999999999d', 'until=0000-01-01', 'since=9999-12-31', 'since=2026-01-02&until=2026-01-01',
    'steps=1'])
  {
    const { items } = await ask(query)
    assert.ok(items.length >= 1 && items.length <= 61, `${query}: ${items.length}`)
  }
})

test('serves one event by its id', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 3)
  const { items } = (await admin.api('get', '/api/v1/events')).body
  assert.deepEqual((await admin.api('get', '/api/v1/events/2').expect(200)).body, items[1])
})

test('exports everything that matches, far beyond one page', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 1500)
  const lines = (await download(admin, '/api/v1/events', 'application/x-ndjson')).trimEnd().split('\n').map((line) =>
    JSON.parse(line)
  )
  assert.deepEqual(lines.map(({ id }) => id), countDown(1500, 1500))
  assert.deepEqual(lines[0], (await admin.api('get', '/api/v1/events/1500')).body)

  const [head, ...rows] = (await download(admin, '/api/v1/events?slot=2', 'text/csv')).trimEnd().split('\r\n')
  assert.equal(head, 'id,at,type,cause,slot,worker,pid,release,rollout,actor,code,signal,uptimeMs,message,detail')
  assert.equal(rows.length, 750)
  assert.ok(rows.every((row) => row.split(',')[4] === '2'))
})

test('exports no more than the limit, and goes on from a cursor', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 700)
  const exported = async (query: string) =>
    (await download(admin, `/api/v1/events?${query}`, 'application/x-ndjson')).trimEnd().split('\n').map((line) =>
      JSON.parse(line).id
    )
  assert.deepEqual(await exported('limit=450'), countDown(700, 450))
  assert.deepEqual(await exported('limit=1'), [700])
  const { next } = (await admin.api('get', '/api/v1/events?limit=300')).body
  assert.deepEqual(await exported(`cursor=${next}`), countDown(400, 400))
})

test('says what kind of file an export is', async (t) => {
  const admin = await startAdmin(t)
  for (const [accept, type, file] of [['text/csv', 'text/csv', 'csv'], ['application/x-ndjson', 'application/x-ndjson',
    'ndjson'], ['text/csv;q=0.5, application/x-ndjson', 'application/x-ndjson', 'ndjson']])
  {
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await rawRequest(admin, { method, path: '/api/v1/events',
        headers: { ...BEARER, Accept: accept } })
      assert.equal(headers['content-type'], `${type}; charset=utf-8`)
      assert.equal(headers['content-disposition'], `attachment; filename="clusterdeck-events.${file}"`)
      assert.match(String(headers.vary), /Accept/)
    }
  }
  assert.match(String((await admin.api('get', '/api/v1/events').set('Accept', '*/*')).headers['content-type']),
    /^application\/json/)
})

test('lets the loop turn between the slices of an export', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 2000)
  const reads = countReads(admin)
  let turns = 0
  let counter = setImmediate(function count () {
    turns++
    counter = setImmediate(count)
  })
  await download(admin, '/api/v1/events', 'text/csv')
  clearImmediate(counter)
  assert.ok(reads.limits.every((limit) => limit <= 200))
  assert.ok(turns >= reads.limits.length, `${turns} turns for ${reads.limits.length} reads`)
})

test('lets the loop turn more often the larger the events are', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 200, { detail: { stack: 'x'.repeat(50_000) } })
  let chunks = 0
  const slice = admin.history.page({ limit: 200 })
  for await (const chunk of exportChunks({ history: admin.history, query: {}, type: 'application/x-ndjson',
    first: slice }))
  {
    chunks++
    assert.ok(chunk.length < 64 * 1024 + 51_000)
  }
  assert.ok(chunks >= 100, `10 MB came in ${chunks} chunks`)
})

test('reads no further than a slow reader reads', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 4000, LARGE)
  const reads = countReads(admin)
  const req = http.get(`${admin.url}/api/v1/events`, { headers: { ...BEARER, Accept: 'application/x-ndjson' } })
  const [res] = await once(req, 'response')
  const stalled = await countUntilStill(reads)
  assert.ok(stalled < 18, `${stalled} of 20 slices were read for a reader that reads nothing`)
  let length = 0
  for await (const chunk of res) length += chunk.length
  assert.ok(length > 4000 * 5000)
  assert.ok(reads.limits.length >= 20)
})

test('stops an export whose reader has gone', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 4000, LARGE)
  const reads = countReads(admin)
  const req = http.get(`${admin.url}/api/v1/events`, { headers: { ...BEARER, Accept: 'application/x-ndjson' } })
  const [res] = await once(req, 'response')
  res.destroy()
  assert.ok(await countUntilStill(reads) < 18)
  assert.deepEqual(admin.logged, [], 'a reader that goes is no news')
})

test('cuts the connection when the database fails in the middle of an export', async (t) => {
  const admin = await startAdmin(t)
  fill(admin, 1000)
  const { page } = admin.history
  let calls = 0
  admin.history.page = (query) => {
    if (++calls === 3) throw new Error('disk I/O error')
    return page(query)
  }
  await assert.rejects(download(admin, '/api/v1/events', 'text/csv'), /aborted|ECONNRESET/)
  assert.equal(admin.logged.length, 1)
})

test('leaves nothing in a CSV cell that a spreadsheet would run', () => {
  for (const [value, cell] of [['=1+1', '\'=1+1'], ['+1', '\'+1'], ['-1', '\'-1'], ['@SUM(A1)', '\'@SUM(A1)'], ['\t=1',
    '"\'\t=1"'], ['x;=1+1', '"x;=1+1"'], ['\r=1', '"\'\r=1"'], ['=cmd|" /C calc"!A0', '"\'=cmd|"" /C calc""!A0"'], [
    'plain',
    'plain'
  ], ['a=b', 'a=b'], ['a,b', '"a,b"'], ['a"b', '"a""b"'], ['two\nlines', '"two\nlines"'], [-1, '-1'], [0, '0'], [null,
    ''], [undefined, ''], [{ stack: 'a, "b"' }, '"{""stack"":""a, \\""b\\""""}"']] as [unknown, string][])
  {
    assert.equal(csvCell(value), cell, JSON.stringify(value))
  }
})

function fill ({ history }: Admin, count: number, more: object = {}) {
  for (let id = 1; id <= count; id++) {
    history.record({ ...BLANK, id, at: new Date(START_MS + id).toISOString(), type: 'worker.online', slot: id % 2 + 1,
      worker: id, ...more })
  }
}

function countReads ({ history }: Admin) {
  const { page } = history
  const limits = [] as number[]
  history.page = (query) => {
    limits.push(Number(query?.limit))
    return page(query)
  }
  return { limits }
}

/** How many reads there were once a hundred turns of the loop in a row saw none. */
async function countUntilStill ({ limits }: { limits: number[] }) {
  for (let still = 0, last = limits.length; still < 100; still++) {
    await nextTurn()
    if (limits.length !== last) still = 0
    last = limits.length
  }
  return limits.length
}

async function download (admin: Admin, path: string, Accept: string) {
  const { status, text } = await rawRequest(admin, { path, headers: { ...BEARER, Accept } })
  assert.equal(status, 200)
  return text
}

function ids ({ items }: { items: { id: number }[] }) {
  return items.map(({ id }) => id)
}

function countDown (from: number, count: number) {
  return Array.from({ length: count }, (_, index) => from - index)
}
