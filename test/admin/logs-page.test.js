import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { liveFile } from '../../server/logs/log-files.js'
import { rawRequest, startAdmin, TOKEN } from '../support/admin.js'

const HTML = { Accept: 'text/html' }
const HOSTILE = '<script>alert(1)</script>"\'&\u001b[2J\u001b]0;x\u0007\u202e'

describe('the page of the logs', () => {
  test('shows the last lines before anything else runs, and where a tail goes on', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stdout', Array.from({ length: 150 }, (_, index) => `line ${index}`))
    const { status, text } = await visit(admin, '/logs?slot=1&stream=stdout')
    assert.equal(status, 200)
    assert.deepEqual([shownLines(text).length, shownLines(text)[0], shownLines(text).at(-1)], [100, 'line 50', 'line 149'])
    assert.match(text, /data-stream="\/api\/v1\/logs\/stream\?slot=1&amp;stream=stdout&amp;" data-places="1o1240"/)
    assert.doesNotMatch(text, /one log after another/)
    assert.match(text, /<option value="1" selected>/)
    assert.match(text, /<option value="stdout" selected>/)
  })

  test('gives each log its share, one after the other, and says that they are in no order', async (t) => {
    const admin = await startAdmin(t)
    for (const slot of [1, 2]) say(admin, slot, 'stdout', Array.from({ length: 90 }, (_, index) => `${slot}: ${index}`))
    say(admin, 2, 'stderr', ['oops'])
    const { text } = await visit(admin, '/logs?slot=&stream=')
    const lines = shownLines(text)
    assert.deepEqual([lines.length, lines[48], lines[49], lines.at(-1)], [100, '1: 89', '2: 40', 'oops'])
    assert.match(text, /one log after another/)
    assert.match(text, /is-stderr/)
  })

  test('says so where nothing is written yet', async (t) => {
    const { status, text } = await visit(await startAdmin(t), '/logs')
    assert.equal(status, 200)
    assert.match(text, /id="log-empty">.*No output yet/s)
  })

  test('makes text of what a worker wrote, bounded', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stderr', [HOSTILE, 'y'.repeat(100_000)])
    const { text } = await visit(admin, '/logs')
    assert.doesNotMatch(text, /<script>alert/)
    assert.match(text, /<span class="line-text">&lt;script&gt;alert\(1\)&lt;\/script&gt;&quot;&#39;&amp; <\/span>/)
    assert.match(text, /y{4000}<span class="line-cut">… 96,000 more<\/span>/)
  })

  test('marks a line that has no end yet, as the tail brings it again', async (t) => {
    const admin = await startAdmin(t)
    appendFileSync(liveFile(admin.deck.logs.folder, { slot: 1, stream: 'stdout' }), 'whole\nhalf')
    const { text } = await visit(admin, '/logs?slot=1')
    assert.match(text, /data-places="1o6-1e0"/)
    assert.match(text, /data-open><span class="line-slot">1<\/span><span class="line-stream"><\/span><span class="line-text">half</)
  })

  for (const [query, status, message] of /** @type {[string, number, string][]} */ ([
    ['slot=abc', 400, 'slot: expected an integer from 1 to 256, received &quot;abc&quot;'],
    ['slot=0', 400, 'slot: expected an integer from 1 to 256, received &quot;0&quot;'],
    ['slot=1&slot=2', 400, 'slot: expected to be given once'],
    ['stream=%3Cscript%3Ealert(1)', 400, 'received &quot;&lt;script&gt;alert(1)&quot;'],
    ['slot=9', 404, 'Slot 9 has no logs']
  ])) {
    test(`?${query}: names what is wrong, and follows nothing`, async (t) => {
      const answer = await visit(await startAdmin(t), `/logs?${query}`)
      assert.equal(answer.status, status)
      assert.ok(answer.text.includes(message), answer.text.slice(answer.text.indexOf('role="alert"'), answer.text.indexOf('role="alert"') + 500))
      assert.doesNotMatch(answer.text, /data-stream/)
    })
  }

  test('is for those who are signed in', async (t) => {
    const admin = await startAdmin(t)
    for (const path of ['/logs', '/logs.txt', '/logs.ndjson']) {
      assert.equal((await rawRequest(admin, { path })).status, 401, path)
      const visited = await rawRequest(admin, { path: `${path}?slot=1`, headers: HTML })
      assert.deepEqual([visited.status, visited.headers.location], [303, `/sign-in?next=${encodeURIComponent(`${path}?slot=1`)}`])
    }
  })

  test('gives what is selected as a file', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stdout', ['out', HOSTILE])
    say(admin, 1, 'stderr', ['err'])
    const both = await visit(admin, '/logs.txt?slot=1')
    assert.equal(both.text, `1 stdout | out\n1 stdout | ${HOSTILE}\n1 stderr | err\n`)
    assert.deepEqual([both.headers['content-type'], both.headers['content-disposition']], ['text/plain; charset=utf-8', 'attachment; filename="clusterdeck-logs.txt"'])
    assert.equal((await visit(admin, '/logs.txt?slot=1&stream=stdout')).text, `out\n${HOSTILE}\n`)
    const lines = (await visit(admin, '/logs.ndjson?slot=1&stream=')).text.trim().split('\n').map((line) => JSON.parse(line))
    assert.deepEqual(lines.at(-1), { slot: 1, stream: 'stderr', text: 'err' })
    assert.equal((await visit(admin, '/logs.txt?slot=x')).status, 400)
  })

  test('has a place in the address bar that says no more than what is selected', async (t) => {
    const admin = await startAdmin(t)
    const pushed = async (/** @type {string} */ path) => (await visit(admin, path, { 'HX-Request': 'true' })).headers['hx-push-url']
    assert.deepEqual([await pushed('/logs?slot=&stream=stderr&x=1'), await pushed('/logs?slot=&stream=')], ['/logs?stream=stderr', '/logs'])
  })
})

/** @param {import('../support/admin.js').Admin} admin @param {string} path @param {Record<string, string>} [headers] */
function visit (admin, path, headers = {}) {
  return rawRequest(admin, { path, headers: { ...HTML, Authorization: `Bearer ${TOKEN}`, ...headers } })
}

/** @param {string} html @returns {string[]} */
function shownLines (html) {
  return [...html.matchAll(/<span class="line-text">([^<]*)/g)].map(([, text]) => text)
}

/** @param {import('../support/admin.js').Admin} admin @param {number} slot @param {'stdout' | 'stderr'} stream @param {string[]} lines */
function say (admin, slot, stream, lines) {
  appendFileSync(liveFile(admin.deck.logs.folder, { slot, stream }), lines.map((line) => `${line}\n`).join(''))
}
