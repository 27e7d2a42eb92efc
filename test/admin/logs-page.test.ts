import assert from 'node:assert/strict'
import { appendFileSync, utimesSync } from 'node:fs'
import { describe, test } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { startAdmin, type Admin } from '../support/admin.ts'

const HOSTILE = '<script>alert(1)</script>"\'&\u001b[2J\u001b]0;x\u0007\u202e'

describe('the page of the logs', () => {
  test('shows the last lines before anything else runs, and where a tail goes on', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stdout', Array.from({ length: 250 }, (_, index) => `line ${index}`))
    const { status, text } = await visit(admin, '/logs?slot=1&stream=stdout')
    assert.equal(status, 200)
    assert.deepEqual([shownLines(text).length, shownLines(text)[0], shownLines(text).at(-1)], [200, 'line 50',
      'line 249'])
    assert.match(text, /data-stream="\/api\/v1\/logs\/stream\?slot=1&amp;stream=stdout&amp;" data-places="1o2140"/)
    assert.deepEqual(shownLines((await visit(admin, linkTo(text, 'Older'))).text).at(-1), 'line 49')
    assert.match(text, /<option value="1" selected>/)
    assert.match(text, /<option value="stdout" selected>/)
  })

  test('puts the lines of all slots and streams in the order of their arrival, each with its time', async (t) => {
    const admin = await startAdmin(t)
    await sayAt(admin, 1, 'stdout', 'first', 1)
    await sayAt(admin, 2, 'stderr', 'second', 2)
    await sayAt(admin, 1, 'stdout', 'third', 3)
    const { text } = await visit(admin, '/logs?slot=&stream=')
    assert.deepEqual(shownLines(text), ['first', 'second', 'third'])
    assert.deepEqual(
      [...text.matchAll(/class="line-time"[^>]*><time data-clock="short" datetime="([^"]*)"/g)].map(([, time]) => time),
      [1, 2, 3].map((seconds) => at(seconds))
    )
    assert.match(text, /is-stderr/)
  })

  test('shows what is around a time, with a mark where it was, and the way on', async (t) => {
    const admin = await startAdmin(t)
    for (let second = 1; second <= 4; second++) await sayAt(admin, 1, 'stdout', `line ${second}`, second)
    const { text } = await visit(admin, `/logs?slot=1&around=${at(3)}`)
    assert.match(text, /line 2<.*id="log-mark".*line 3</s)
    assert.doesNotMatch(text, /data-stream/)
    assert.match(text, new RegExp(`href="/logs\\?slot=1&amp;around=${encodeURIComponent(at(4))}"`))
    assert.match((await visit(admin, `/logs?around=${at(9)}`)).text, /line 4<.*nothing after it yet/s)
    assert.match((await visit(admin, `/logs?slot=2&around=${at(3)}`)).text, /No output around this time/)
  })

  test('shows what matches in all files, and says so where nothing does', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stdout', ['needle', ...Array.from({ length: 500 }, (_, index) => `hay ${index}`)])
    const { text } = await visit(admin, '/logs?slot=&q=NEEDLE')
    assert.deepEqual(shownLines(text), ['needle'])
    assert.match(text, /<span class="line-hit">needle<\/span>/)
    assert.match(text, /1 matching line/)
    // The places are where the search began, so that what comes live is new.
    assert.match(text,
      /data-q="NEEDLE" data-matcher="[^"]+" data-stream="\/api\/v1\/logs\/stream\?" data-places="1o\d{4}-1e0-2o0-2e0"/)
    assert.match((await visit(admin, '/logs?q=pin')).text, /No line matches/)
    assert.equal((await visit(admin, '/logs.txt?q=needle&slot=1&stream=stdout')).text, 'needle\n')
  })

  test('a file has all lines that match, also where they are more than an answer holds', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stdout', Array.from({ length: 400 }, (_, index) => `${index} ${'x'.repeat(15_000)}`))
    const { text } = await visit(admin, '/logs.txt?q=x&slot=1&stream=stdout')
    assert.deepEqual(text.trimEnd().split('\n').map((line) => parseInt(line)), [...Array(400).keys()])
  })

  test('shows what is around a line, with the line marked, what was searched for, and the way back', async (t) => {
    const admin = await startAdmin(t)
    for (let second = 1; second <= 4; second++)
      await sayAt(admin, 1 + second % 2, 'stdout',
        second === 3 ? '{"level":50,"msg":"req-7 failed"}' : `line ${second} of req-7`, second)
    const found = (await visit(admin, '/logs?level=error&level=warn&q=req-7')).text
    assert.deepEqual(shownLines(found), ['ERROR req-7 failed'])
    assert.match(found, /data-raw="\{&quot;level&quot;:50,&quot;msg&quot;:&quot;req-7 failed&quot;\}"/)
    const link = /class="line-time" href="([^"#]*)#log-mark"/.exec(found)?.[1].replaceAll('&amp;', '&') ?? ''
    assert.equal(link, '/logs?q=req-7&level=error%2Cwarn&around=2o16')
    const { text } = await visit(admin, link)
    assert.deepEqual(shownLines(text), ['line 1 of req-7', 'line 2 of req-7', 'ERROR req-7 failed', 'line 4 of req-7'])
    assert.match(text, /id="log-mark" aria-current="true"[^>]*data-raw="[^"]*req-7 failed/)
    assert.equal(linkTo(text, 'Back to the newest matches'), '/logs?q=req-7&level=error%2Cwarn')
    assert.match((await visit(admin, '/logs?around=2o9999')).text, /The line 2o9999 is no longer kept/)
  })

  test('keeps slots that the cluster has no more out of the way, but within reach', async (t) => {
    const admin = await startAdmin(t)
    admin.deck.logs.open({ worker: 3, slot: 3 }).close()
    for (const slot of [1, 3]) say(admin, slot, 'stdout', [`of ${slot}`])
    const { text } = await visit(admin, '/logs')
    assert.deepEqual(shownLines(text), ['of 1'])
    assert.match(text, /<optgroup label="No longer there">\s*<option value="3">/)
    assert.match(text, /data-places="1o5-1e0-2o0-2e0-3o5-3e0"/)
    assert.deepEqual(shownLines((await visit(admin, '/logs?slot=3')).text), ['of 3'])
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
    assert.match(text,
      /data-open>.*<span class="line-slot">1<\/span><span class="line-stream"><\/span><span class="line-text">half</)
  })

  for (const [query, status, message] of [['slot=abc', 400,
    'slot: expected an integer from 0 to 256, received &quot;abc&quot;'], ['slot=-1', 400,
    'slot: expected an integer from 0 to 256, received &quot;-1&quot;'], ['slot=0', 404, 'Slot 0 has no logs'], [
    'slot=1&slot=2',
    400,
    'slot: expected to be given once'
  ], ['stream=%3Cscript%3Ealert(1)', 400, 'received &quot;&lt;script&gt;alert(1)&quot;'], ['slot=9', 404,
    'Slot 9 has no logs']] as [string, number, string][])
  {
    test(`?${query}: names what is wrong, and follows nothing`, async (t) => {
      const answer = await visit(await startAdmin(t), `/logs?${query}`)
      assert.equal(answer.status, status)
      assert.ok(answer.text.includes(message),
        answer.text.slice(answer.text.indexOf('role="alert"'), answer.text.indexOf('role="alert"') + 500))
      assert.doesNotMatch(answer.text, /data-stream/)
    })
  }

  test('gives what is selected as a file', async (t) => {
    const admin = await startAdmin(t)
    say(admin, 1, 'stdout', ['out', HOSTILE])
    say(admin, 1, 'stderr', ['err'])
    const both = await visit(admin, '/logs.txt?slot=1')
    assert.equal(both.text.replaceAll(/^\d{4}-.{20}/gm, '<time>'),
      `<time>1 stdout | out\n<time>1 stdout | ${HOSTILE}\n<time>1 stderr | err\n`)
    assert.deepEqual([both.headers['content-type'], both.headers['content-disposition']], ['text/plain; charset=utf-8',
      'attachment; filename="clusterdeck-logs.txt"'])
    assert.equal((await visit(admin, '/logs.txt?slot=1&stream=stdout')).text, `out\n${HOSTILE}\n`)
    const lines = (await visit(admin, '/logs.ndjson?slot=1&stream=')).text.trim().split('\n').map((line) =>
      JSON.parse(line)
    )
    const { arrivedAt, ...last } = lines.at(-1)
    assert.deepEqual([typeof arrivedAt, last], ['string', { slot: 1, stream: 'stderr', text: 'err', place: '1e0' }])
    assert.equal((await visit(admin, '/logs.txt?slot=x')).status, 400)
  })

  test('has a place in the address bar that says no more than what is selected', async (t) => {
    const admin = await startAdmin(t)
    const pushed = async (path: string) => (await visit(admin, path, { 'HX-Request': 'true' })).headers['hx-push-url']
    assert.deepEqual([await pushed('/logs?slot=&stream=stderr&x=1'), await pushed('/logs?slot=&stream=')], [
      '/logs?stream=stderr',
      '/logs'
    ])
  })
})

function visit (admin: Admin, path: string, headers: Record<string, string> = {}) {
  return admin.visit(path, headers)
}

/** As a worker does at that time, while a master looks. */
async function sayAt (admin: Admin, slot: number, stream: 'stdout' | 'stderr', text: string, seconds: number) {
  say(admin, slot, stream, [text])
  utimesSync(liveFile(admin.deck.logs.folder, { slot, stream }), new Date(at(seconds)), new Date(at(seconds)))
  await admin.deck.logs.page({ slot, stream, lines: 1, maxBytes: 1000 })
}

function at (seconds: number) {
  return new Date(Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1000).toISOString()
}

/** @returns where the link with this text goes */
function linkTo (html: string, text: string): string {
  return (new RegExp(`href="([^"]*)"[^>]*>(?:<svg.*?</svg>)?${text}<`).exec(html)?.[1] ?? '').replaceAll('&amp;', '&')
}

function shownLines (html: string): string[] {
  return [...html.matchAll(/<span class="line-text">(.*?)<\/div>/g)].map(([, text]) => text.replace(/<[^>]*>/g, ''))
}

function say (admin: Admin, slot: number, stream: 'stdout' | 'stderr', lines: string[]) {
  appendFileSync(liveFile(admin.deck.logs.folder, { slot, stream }), lines.map((line) => `${line}\n`).join(''))
}
