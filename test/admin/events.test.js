import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { csvCell, exportChunks } from '../../server/api/export.js'
import { rawRequest, START_MS, startAdmin, TOKEN } from '../support/admin.js'

// Times without a zone are UTC, wherever the master runs.
process.env.TZ = 'Pacific/Auckland'

const BEARER = { Authorization: `Bearer ${TOKEN}` }
const BLANK = Object.fromEntries(['cause', 'slot', 'worker', 'pid', 'release', 'rollout', 'actor', 'code', 'signal', 'uptimeMs', 'message', 'detail'].map((name) => [name, null]))
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
  const at = (/** @type {number} */ hours) => new Date(START_MS + hours * HOUR_MS).toISOString()
  admin.clock.advance(10 * HOUR_MS)
  admin.history.record({ ...BLANK, id: 1, at: at(0), type: 'worker.forked', slot: 1, worker: 1, release: 'r1' })
  admin.history.record({ ...BLANK, id: 2, at: at(2), type: 'worker.exited', slot: 1, worker: 1, release: 'r1', cause: 'crash', message: 'TypeError: x is "not" a function' })
  admin.history.record({ ...BLANK, id: 3, at: at(5), type: 'rollout.started', rollout: 4, release: 'r2', detail: { id: 4 } })
  admin.history.record({ ...BLANK, id: 4, at: at(9), type: 'worker.exited', slot: 2, worker: 2, release: 'r1', cause: 'out-of-memory' })
  for (const [query, expected] of /** @type {[string, number[]][]} */ ([
    ['type=worker.exited', [4, 2]],
    ['type=worker.*', [4, 2, 1]],
    ['type=worker.forked,rollout.started', [3, 1]],
    ['type=rollout.*,worker.forked', [3, 1]],
    ['type=unheard.of', []],
    ['cause=out-of-memory', [4]],
    ['slot=1', [2, 1]],
    ['worker=2', [4]],
    ['release=r2', [3]],
    ['rollout=4', [3]],
    [`since=${at(2)}`, [4, 3, 2]],
    ['since=2026-01-01T05:00:00Z', [4, 3]],
    ['since=2026-01-01T05:00', [4, 3]],
    ['since=2026-01-01T07:00:00%2B02:00', [4, 3]],
    ['since=2026-01-01T07:00:00+02:00', [4, 3]],
    ['since=2026-01-01', [4, 3, 2, 1]],
    ['since=2026-01-02', []],
    ['since=8h', [4, 3, 2]],
    ['since=301m', [4, 3]],
    ['since=1d', [4, 3, 2, 1]],
    ['since=3599s', []],
    [`until=${at(5)}`, [2, 1]],
    [`since=${at(2)}&until=${at(5)}`, [2]],
    ['q=not%22%20a', [2]],
    ['q=typeerror', [2]],
    ['q=%25', []],
    ['slot=1&type=worker.exited&cause=crash&release=r1', [2]],
    ['slot=1&cause=out-of-memory', []]
  ])) {
    assert.deepEqual(ids((await admin.api('get', `/api/v1/events?${query}`).expect(200)).body), expected, query)
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
  const lines = (await download(admin, '/api/v1/events', 'application/x-ndjson')).trimEnd().split('\n').map((line) => JSON.parse(line))
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
  const exported = async (/** @type {string} */ query) => (await download(admin, `/api/v1/events?${query}`, 'application/x-ndjson')).trimEnd().split('\n').map((line) => JSON.parse(line).id)
  assert.deepEqual(await exported('limit=450'), countDown(700, 450))
  assert.deepEqual(await exported('limit=1'), [700])
  const { next } = (await admin.api('get', '/api/v1/events?limit=300')).body
  assert.deepEqual(await exported(`cursor=${next}`), countDown(400, 400))
})

test('says what kind of file an export is', async (t) => {
  const admin = await startAdmin(t)
  for (const [accept, type, file] of [['text/csv', 'text/csv', 'csv'], ['application/x-ndjson', 'application/x-ndjson', 'ndjson'], ['text/csv;q=0.5, application/x-ndjson', 'application/x-ndjson', 'ndjson']]) {
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await rawRequest(admin, { method, path: '/api/v1/events', headers: { ...BEARER, Accept: accept } })
      assert.equal(headers['content-type'], `${type}; charset=utf-8`)
      assert.equal(headers['content-disposition'], `attachment; filename="clusterdeck-events.${file}"`)
      assert.match(String(headers.vary), /Accept/)
    }
  }
  assert.match(String((await admin.api('get', '/api/v1/events').set('Accept', '*/*')).headers['content-type']), /^application\/json/)
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
  for await (const chunk of exportChunks({ history: admin.history, query: {}, type: 'application/x-ndjson', first: slice })) {
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
  admin.history.page = (/** @type {any} */ query) => {
    if (++calls === 3) throw new Error('disk I/O error')
    return page(query)
  }
  await assert.rejects(download(admin, '/api/v1/events', 'text/csv'), /aborted|ECONNRESET/)
  assert.equal(admin.logged.length, 1)
})

test('leaves nothing in a CSV cell that a spreadsheet would run', () => {
  for (const [value, cell] of /** @type {[unknown, string][]} */ ([
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', '"\'\t=1"'],
    ['x;=1+1', '"x;=1+1"'],
    ['\r=1', "\"'\r=1\""],
    ['=cmd|" /C calc"!A0', '"\'=cmd|"" /C calc""!A0"'],
    ['plain', 'plain'],
    ['a=b', 'a=b'],
    ['a,b', '"a,b"'],
    ['a"b', '"a""b"'],
    ['two\nlines', '"two\nlines"'],
    [-1, '-1'],
    [0, '0'],
    [null, ''],
    [undefined, ''],
    [{ stack: 'a, "b"' }, '"{""stack"":""a, \\""b\\""""}"']
  ])) {
    assert.equal(csvCell(value), cell, JSON.stringify(value))
  }
})

/** @param {import('../support/admin.js').Admin} admin @param {number} count @param {object} [more] */
function fill ({ history }, count, more = {}) {
  for (let id = 1; id <= count; id++) {
    history.record({ ...BLANK, id, at: new Date(START_MS + id).toISOString(), type: 'worker.online', slot: id % 2 + 1, worker: id, ...more })
  }
}

/** @param {import('../support/admin.js').Admin} admin */
function countReads ({ history }) {
  const { page } = history
  const limits = /** @type {number[]} */ ([])
  history.page = (/** @type {any} */ query) => {
    limits.push(query.limit)
    return page(query)
  }
  return { limits }
}

/** How many reads there were once a hundred turns of the loop in a row saw none. @param {{ limits: number[] }} reads */
async function countUntilStill ({ limits }) {
  for (let still = 0, last = limits.length; still < 100; still++) {
    await nextTurn()
    if (limits.length !== last) still = 0
    last = limits.length
  }
  return limits.length
}

/** @param {import('../support/admin.js').Admin} admin @param {string} path @param {string} Accept */
async function download (admin, path, Accept) {
  const { status, text } = await rawRequest(admin, { path, headers: { ...BEARER, Accept } })
  assert.equal(status, 200)
  return text
}

function ids (/** @type {{ items: { id: number }[] }} */ { items }) {
  return items.map(({ id }) => id)
}

function countDown (/** @type {number} */ from, /** @type {number} */ count) {
  return Array.from({ length: count }, (_, index) => from - index)
}
