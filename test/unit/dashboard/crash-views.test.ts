import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import fc from '../../support/fast-check.ts'
import { openHistory } from '../../../db/history.ts'
import { crashLabels, crashUrlOf, headlineOf } from '../../../server/crashes/page-kinds.ts'
import { crashModel, followCrash } from '../../../server/crashes/page-crash.ts'
import { crashesModel } from '../../../server/crashes/page.ts'
import { countOpen } from '../../../server/words/health.ts'
import { firstLine, readable } from '../../../server/dashboard/readable-text.ts'
import { sparklineOf } from '../../../server/vitals/page-sparkline.ts'
import { foldFrames } from '../../../server/crashes/page-stack.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { createCrashService } from '../../../server/crashes/crashes.ts'
import { aCrash } from '../../support/crash-record.ts'
import { fake } from '../../support/fake.ts'
import type { CrashGroup } from '../../../server/api/shapes.ts'
import type { Deck } from '../../../server/deck.ts'
import type { CrashRecord } from '../../../db/crashes.ts'

const NOW = Date.parse('2026-01-01T00:01:00.000Z')
const MARKUP = '<x-evil onload="1">\'"&</title></pre>'
const HOSTILE = `${MARKUP}\u202e\u0000\u001b[31m\u001b]0;title\u0007\r\n\u2028\u0085`
const INJECTED = /<x-evil|" onload="|'"&<\/title>/
const DANGEROUS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u2028]/
const views = createViews()

/** `crashes`: by group; a group is told by its name of the error */
function setUp (t: TestContext, crashes: CrashRecord[]) {
  const history = openHistory({ file: ':memory:' })
  t.after(() => history.close())
  for (const crash of crashes)
    history.crashes.record(`v1:${crash.errorName}`, crash, {
      culprit: crash.frames[0] ? `${crash.frames[0].function} (${crash.frames[0].file})` : null
    })
  const desk = createCrashService({ store: history.crashes, events: { publish: () => fake({}) }, release: () => 'r1',
    now: () => NOW })
  const deck = fake<Deck>({ crashes: desk, snapshot: () => ({}) })
  const list = (query = '') =>
    views.render('pages/crashes', crashesModel({ deck, history, params: new URLSearchParams(query), now: () => NOW }))
  const model = (id = '1', query = '') =>
    crashModel({ deck, history, id, params: new URLSearchParams(query), now: () => NOW })
  const one = (id = '1', query = '') => views.render('pages/crash', model(id, query))
  return { history, desk, deck, list, model, one }
}

function textOf (html: string) {
  return html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
}

test('text of an app is shown without what a terminal obeys, and with the names of what hides or reorders', () => {
  assert.equal(readable('\u001b[31mred\u001b[0m\u001b]0;t\u0007'), 'red')
  assert.equal(readable('a\u0000b\u007f\tc\r\nd\re'), 'a\u2400b\u2421\tc\nd\u240de')
  assert.equal(readable('user\u202etxt.exe\ufeff\u0085\u2028'), 'user<U+202E>txt.exe<U+FEFF><U+0085><U+2028>')
  assert.equal(readable('👩‍🚀 ä'), '👩‍🚀 ä')
  assert.equal(readable(null), '')
  assert.deepEqual([firstLine('\n one\ntwo', 50), firstLine('abcdef', 3), firstLine('abc', 3)], ['one …', 'abc …',
    'abc'])
})

test('what ended without an error is told by its manner, not by the worker that it happened to last', () => {
  const told = (fields: Partial<CrashGroup>) =>
    headlineOf({ kind: 'signal', errorName: null, message: null, ...fields })
  assert.deepEqual(told({ message: 'worker 12 (slot 2) was ended by SIGKILL' }), { name: null,
    message: 'Ended by SIGKILL' })
  const lacking = { kind: 'heap-out-of-memory', cause: 'boot-failure', errorName: null,
    message: 'worker 12 (slot 2) was ended by SIGABRT' } as const
  assert.deepEqual([told(lacking), crashLabels(lacking)], [{ name: null, message: 'Heap out of memory' }, [
    'While starting'
  ]])
  assert.deepEqual(crashLabels({ ...lacking, errorName: 'MemoryError', message: null }), ['Heap out of memory',
    'While starting'])
  assert.deepEqual(told({}), { name: null, message: 'Signal' })
  assert.deepEqual(told({ errorName: 'string', message: 'oops' }), { name: 'thrown string', message: 'oops' })
  const limit = '(option watchdog.timeoutMs: 10000)'
  for (const [more, request] of [[' in "GET /reports/2026-10"', ' in GET /reports/2026-10'], ['', '']])
    assert.deepEqual(
      told({ kind: 'hung', errorName: 'Unresponsive', message: `event loop blocked for 10 s ${limit}${more}` }),
      { name: null, message: `Event loop blocked for 10 s${request}` }
    )
  assert.deepEqual(told({ errorName: 'TypeError', message: 'worker 1 (slot 1) x' }), { name: 'TypeError',
    message: 'worker 1 (slot 1) x' })
})

test('frames that are not of the app are folded, unless there are no others', () => {
  const { frames } = aCrash()
  assert.deepEqual(
    foldFrames(frames).map((
      { isFolded, label, frames }
    ) => [isFolded, isFolded ? label : frames.map(({ name, place }) => `${name} ${place}`)]),
    [[false, ['sum src/shop.js:12:34']], [true, '2 frames of express, Node.js'], [false, ['serve src/app.js:12:34']]]
  )
  assert.deepEqual(foldFrames([frames[2]]).map(({ isFolded, frames }) => [isFolded, frames[0].name]), [[false, 'emit']])
  assert.deepEqual(foldFrames([]), [])
})

test('a sparkline ends at the right edge, is as high as its highest value and has gaps where nothing is known', () => {
  const { path, end, max, last } = sparklineOf([{ ageMs: 60_000, value: 5 }, { ageMs: 30_000, value: 10 }, {
    ageMs: 20_000,
    value: null
  }, { ageMs: 0, value: 0 }], 60_000)
  assert.equal(path, 'M0 16h0L60 2M120 30h0')
  assert.deepEqual([end, max, last], [{ x: 120, y: 30 }, 10, 0])
  assert.deepEqual(sparklineOf([{ ageMs: -5, value: null }], 60_000), { path: '', end: null, max: null, last: null })
})

test('a group says what crashed, where, how often and when; and a link leads to it', (t) => {
  const { list, desk } = setUp(t, [aCrash(), aCrash({ at: '2026-01-01T00:00:40.000Z' }),
    aCrash({ errorName: 'RangeError', release: 'r0', cause: 'boot-failure', frames: [] })])
  const html = list()
  assert.match(textOf(html),
    /TypeError total is not a function New in r1 Exception sum \(src\/shop\.js\) this hour: 2 2 20 s ago 1 min ago r1/)
  assert.match(textOf(html), /RangeError total is not a function Exception While starting this hour: 1 1 /)
  assert.ok(html.indexOf('/crashes/2"') < html.indexOf('/crashes/1"'), 'the last to crash comes first')
  assert.match(html, /id="open-crashes"/)
  assert.deepEqual([crashUrlOf({ detail: { crash: 3, crashGroup: 2 } }), crashUrlOf({ detail: { crashGroup: 2 } }),
    crashUrlOf({ detail: { crashGroup: '2' } }), crashUrlOf({ detail: null })], ['/crashes/2?crash=3', '/crashes/2',
    null, null])
  desk.act(2, 'resolve', 'cli')
  assert.equal(countOpen(desk), 1)
  assert.equal(countOpen({ counts () {
    throw new Error('disk I/O error')
  } }), null)
})

test('an empty list says whether that is good news or nothing matches', (t) => {
  const { list, desk, history } = setUp(t, [])
  assert.match(list(), /No crashes/)
  history.crashes.record('v1:x', aCrash(), { culprit: null })
  assert.match(list('q=nowhere'), /No crash matches/)
  assert.match(list('release=r9&state=all'), /No crash matches/)
  assert.match(list('state=muted'), /No muted crashes/)
  desk.act(1, 'resolve', 'cli')
  assert.match(list(), /No open crashes/)
  assert.match(list('state=resolved'), /id="crash-group-1"/)
  assert.match(list('state=all'), />Resolved<\/span>/)
})

test('the list goes on where it ended, and keeps its filters on the way', (t) => {
  const { list } = setUp(t, Array.from({ length: 51 }, (_, n) => aCrash({ errorName: `E${n}` })))
  const [, more] = /href="([^"]+)" rel="next"/.exec(list('q=total&state=all')) ?? []
  assert.match(more, /^\/crashes\?state=all&amp;q=total&amp;cursor=/)
  const next = list(more.replaceAll('&amp;', '&').split('?')[1])
  assert.match(next, /id="crash-group-1"/)
  assert.equal(next.match(/id="crash-group-/g)?.length, 1)
  assert.match(next, /not live/)
})

test('a crash shows all of its evidence', (t) => {
  const { one, history } = setUp(t, [aCrash()])
  history.record(
    fake({ id: 9, at: '2026-01-01T00:00:00.000Z', type: 'worker.exited', worker: 7, slot: 1, cause: 'crash',
      detail: { crash: 1, crashGroup: 1 } })
  )
  history.record(fake({ id: 7, at: '2025-12-31T23:50:00.000Z', type: 'config.changed', message: 'long before' }))
  history.record(fake({ id: 8, at: '2025-12-31T23:59:30.000Z', type: 'config.changed', message: 'workers' }))
  history.record(fake({ id: 10, at: '2026-01-01T00:00:02.000Z', type: 'worker.ready', worker: 8, slot: 1 }))
  history.record(fake({ id: 11, at: '2026-01-01T00:00:03.000Z', type: 'worker.online', worker: 8, slot: 1 }))
  const html = one()
  assert.doesNotMatch(html, /long before|3 s after/, 'nor steps of what is told in one event')
  for (const part of ['30 s before', '2 s after', 'Just before and after', 'Once , 1 min ago', 'Introduced in r1',
    'TypeError', 'in sum (src/shop.js)', 'sum src/shop.js:12:34', '2 frames of express, Node.js', 'Error : no cart',
    'POST /checkout 12 ms', 'first line last words', 'Last 5 seconds', 'Memory', 'Exit code 1', 'Lived for 1 min 05 s',
    '16.0 MB of 32.0 MB', 'v20.20.2'])
  {
    assert.ok(textOf(html).includes(part), part)
  }
  assert.match(html, /href="\/workers\/7\?at=/)
  for (const link of ['/history?slot=1', '/releases/r1', '/history/9'])
    assert.ok(html.includes(`href="${link}"`), link)
})

test('what a crash says twice is shown once, and red only while it is open', (t) => {
  const { one, desk } = setUp(t, [aCrash(), aCrash({ at: '2025-12-20T00:00:00.000Z' })])
  const open = textOf(one())
  assert.match(open, /2 times , first .* ago , last .* ago Introduced in r1/)
  for (const part of ['Last 24 hours 1', 'Last 30 days 2', 'Occurrences']) assert.ok(open.includes(part), part)
  assert.match(one(), /class="bars tone-bad"/)
  desk.act(1, 'resolve', 'ada')
  const settled = one().split('<main')[1]
  assert.doesNotMatch(settled, /tone-(bad|ok|warn)|live-dot|primary/)
  assert.match(textOf(settled), /Resolved .* by ada/)

  const once = setUp(t, [aCrash()]).one()
  assert.doesNotMatch(textOf(once), /Last 30 days|Pin it|1 of 1/, 'the last 24 hours have shown it')
  assert.match(once, /id="crash-kept" hidden/)
})

test('stderr is shown where it says more than the stack', (t) => {
  const { stack } = aCrash()
  const textWith = (stderr: string[]) => textOf(setUp(t, [aCrash({ stderr, causes: [] })]).one())
  const ofNode = ['/srv/app/src/shop.js:12', '  return total()', '         ^', '', ...String(stack).split('\n'), '',
    'Node.js v24.22.3']
  assert.match(textWith(ofNode), /Its last output on stderr was this stack\. Logs around this/)
  assert.doesNotMatch(textWith(ofNode), /Last lines of stderr/)
  assert.match(textWith(['cart 7 is empty', ...ofNode]), /Last lines of stderr .*cart 7 is empty/)
})

test('releases of a crash are a list', (t) => {
  const { one } = setUp(t, [aCrash({ release: 'r3' }), aCrash({ release: 'r7' })])
  assert.match(textOf(one()), /Releases r3 × 1 , r7 × 1/)
})

test('a hang says in which function and in which request, and has no cards for what it lacks', (t) => {
  const requests = [{ method: 'POST', path: '/import', ageMs: 10_000, isHanging: true }]
  const { one } = setUp(t, [aCrash({ kind: 'hung', cause: 'hung', requests, stderr: [], causes: [] })])
  const text = textOf(one())
  assert.match(text, /in sum \(src\/shop\.js\) .* Stack .*\/import It hung in this one/)
  assert.match(text, /No output on stderr\. Logs around this/)
  assert.doesNotMatch(text, /Last lines of stderr|Caused by/)
})

test('in the last minute of a worker there is a gap wherever it was silent, and nothing of now at its end', (t) => {
  const [sample] = aCrash().vitals as object[]
  const vitals = [20, 19, 13, 12].map((ageS) => ({ ...sample, at: new Date(NOW - ageS * 1000).toISOString() }))
  const { model, one } = setUp(t, [aCrash({ at: new Date(NOW).toISOString(), kind: 'hung', vitals })])
  const drawn = model('1').crash?.vitals ?? []
  assert.ok(drawn.length > 0)
  for (const { label, path, lastText } of drawn)
    assert.deepEqual([path.match(/[ML][\d.]+/g), lastText], [['M0', 'L6', 'M42', 'L48'], '–'], label)
  assert.match(textOf(one()), /no reports in the last 12 s/)
})

test('of a crash without a stack it is said why there is none', (t) => {
  const bare = { stack: null, frames: [], errorName: null, errorMessage: 'worker 7 (slot 1) was ended by SIGSEGV',
    requests: [], causes: [], stderr: [], vitals: [], memory: null }
  const { one } = setUp(t, [aCrash({ ...bare, kind: 'signal', signal: 'SIGSEGV', code: null })])
  const text = textOf(one())
  assert.match(text, /Ended by SIGSEGV/)
  assert.match(text, /A signal ended the process, which leaves no stack\./)
  assert.match(text, /No output on stderr\./)
  assert.doesNotMatch(text, /Requests in flight|Its last|Caused by/)
})

test('a crash that is not kept any more is told so, beside those that are', (t) => {
  const { one, model } = setUp(t, [aCrash(), aCrash({ errorName: 'RangeError' })])
  for (const n of ['99', '2']) {
    assert.equal(model('1', `crash=${n}`).status, 404)
    assert.match(one('1', `crash=${n}`), new RegExp(`Occurrence ${n} is no longer kept`))
  }
  assert.equal(model('1', 'crash=1').status, 200)
  assert.throws(() => model('1', 'crash=abc'), { code: 'invalid-query',
    message: 'crash: expected a positive integer, received "abc"' })
  for (const id of ['9', 'abc', '-1', '1e3', '9'.repeat(30)]) assert.throws(() => model(id), { code: 'not-found' })
})

test('a page that is followed is worked out anew only when its group has changed', (t) => {
  const { desk, deck, history } = setUp(t, [aCrash()])
  const follow = (query: string) =>
    followCrash({ deck, history, id: '1', params: new URLSearchParams(query), now: () => NOW })
  const newest = follow('')
  assert.equal(newest()?.group.state, 'open')
  assert.equal(newest(), null)
  desk.act(1, 'mute', 'cli')
  assert.equal(newest()?.group.state, 'muted')
  assert.equal(newest(), null)
  // Whoever reads one crash does not want another one in its place.
  assert.deepEqual(follow('crash=1')()?.fragments, ['crash-head', 'crash-when', 'crash-kept'])
  assert.deepEqual([follow('crash=x')(),
    followCrash({ deck, history, id: '77', params: new URLSearchParams(), now: () => NOW })()], [null, null])
})

test('the list has a graph of each group, and is sorted by a link that keeps its filters', (t) => {
  const { list, model } = setUp(t, [aCrash(), aCrash(), aCrash({ at: '2025-12-31T22:59:00.000Z' }),
    aCrash({ at: '2025-12-20T00:00:00.000Z' }), aCrash({ errorName: 'RangeError' })])
  const html = list('q=total&sort=count')
  assert.match(html, /aria-label="Last 24 hours: 3 crashes, at most 2 in one hour"/)
  assert.deepEqual(Array.from(html.matchAll(/<title>([^<]*: \d+)<\/title>/g), ([, title]) => title), ['2 h ago: 1',
    'this hour: 2', 'this hour: 1'])
  assert.ok(html.indexOf('/crashes/1"') < html.indexOf('/crashes/2"'), 'the most frequent comes first')
  assert.match(html, /aria-sort="descending"><a class="sort" href="\/crashes\?q=total&amp;sort=count">Count/)
  assert.match(html, /href="\/crashes\?q=total">Last seen/)
  assert.deepEqual(model().frequencies.map(({ total, max }) => [total, max]), [[3, 2], [4, 3]])
})

test('whoever only looks has nothing to choose or to settle, and an operator has', (t) => {
  const { list, one, model } = setUp(t, [aCrash()])
  for (const html of [list(), one()]) assert.doesNotMatch(html, /<input type="checkbox"|\/actions\//)
  const can = { operate: true, administer: false, name: 'ada' }
  assert.match(views.render('pages/crash', { ...model(), can }), /\/actions\/resolveCrash/)
})

test('the source of the first own frame is open, and is text whatever it holds', (t) => {
  const { desk, history } = setUp(t, [aCrash()])
  const crashes: typeof desk = { ...desk,
    sourceLines: ({ frames }) =>
      frames.map(({ isInApp }) =>
        isInApp ? [{ number: 11, text: HOSTILE }, { number: 12, text: 'return total()' }] : null
      ) }
  const html = views.render('pages/crash',
    crashModel({ deck: { crashes }, history, id: '1', params: new URLSearchParams(), now: () => NOW }))
  assert.match(html,
    /<li class="frame is-own is-first">.*sum<.*src\/shop\.js:12:34<\/bdi><\/span>\s*<div class="source-lines"/)
  assert.equal(html.split('src/shop.js:12:34</bdi>').length, 2, 'it is on the page once')
  assert.match(html, /<details class="source" id="source-2-0">/)
  assert.match(html,
    /class="is-there" aria-current="true"><span class="source-number">12<\/span><code><bdi>return total\(\)/)
  assert.doesNotMatch(html, INJECTED)
  assert.doesNotMatch(html, DANGEROUS)
})

test('the list survives any query, and says what it cannot read', (t) => {
  const { deck, history } = setUp(t, [aCrash()])
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('q', 'state', 'release', 'sort', 'cursor'), fc.string()), (query) => {
      const model = crashesModel({ deck, history, params: new URLSearchParams(query), now: () => NOW })
      assert.match(views.render('pages/crashes', model), /<\/html>/)
    })
  )
  for (const bad of ['state=closed', 'sort=name', 'release=a b', `q=${'x'.repeat(101)}`, 'cursor=%00']) {
    const { problem } = crashesModel({ deck, history, params: new URLSearchParams(bad), now: () => NOW })
    assert.equal(problem?.status, 400, bad)
    assert.match(String(problem?.message), new RegExp(`^${bad.split('=')[0]}: expected `))
  }
})

test('nothing that an app throws, writes or is asked for becomes markup or moves text about', (t) => {
  const fields = ['errorName', 'errorMessage', 'stack', 'nodeVersion', 'signal']
  const frames = [{ function: HOSTILE, file: HOSTILE, line: 1, column: 1, isInApp: true }, { function: HOSTILE,
    file: `node_modules/${HOSTILE}/x.js`, line: 1, column: 1, isInApp: false }]
  const crash = aCrash({ ...Object.fromEntries(fields.map((field) => [field, HOSTILE])), release: MARKUP, cause: MARKUP,
    kind: MARKUP as 'signal', frames, causes: [{ depth: 1, errorName: HOSTILE, errorMessage: HOSTILE, stack: HOSTILE }],
    requests: [{ method: HOSTILE, path: HOSTILE, ageMs: 1 }], stderr: [HOSTILE, 'x'.repeat(16_384)] })
  const { list, one } = setUp(t, [crash])
  for (const html of [list(), list('state=all'), one(), one('1', 'crash=1')]) {
    assert.match(html, /&lt;x-evil/)
    assert.doesNotMatch(html, INJECTED)
    assert.doesNotMatch(html, DANGEROUS)
  }
  for (const name of ['q', 'state', 'release'])
    assert.doesNotMatch(list(new URLSearchParams({ [name]: MARKUP }).toString()), INJECTED)
})
