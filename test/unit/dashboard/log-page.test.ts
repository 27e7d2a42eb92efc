import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, test } from 'node:test'
import { attempt } from '../../../server/errors.ts'
import fc from '../../support/fast-check.ts'
import { createBacklog } from '../../../public/log-backlog.ts'
import { createTail } from '../../../public/log-tail.ts'
import { levelOf } from '../../../public/log-levels.ts'
import { createHits, createLineFilter, toPattern } from '../../../public/log-query.ts'
import { formatCount } from '../../../public/format.ts'
import { MAX_SHOWN_CHARS, markHits, shownLine, TONES } from '../../../public/log-text.ts'
import { levelsOf } from '../../../server/logs/page.ts'
import { formatPlaces, parsePlaces } from '../../../server/logs/api-lines.ts'
import { fake } from '../../support/fake.ts'
import { assertRetold } from '../../support/golden.ts'
import { rows } from '../../support/rows.ts'

const ESC = '\u001b'

describe('what is shown of a line', () => {
  test('is its text, in the looks of a fixed list', async () => {
    await assertRetold(import.meta, 'log-lines', (line) => {
      const written = JSON.parse(line)
      const { text, cutChars, parts } = shownLine(written)
      const tone = TONES[levelOf(written, 'stdout')]
      assert.equal(cutChars, 0)
      const looks = parts.filter(({ style }) => style !== '').map((part) =>
        `${JSON.stringify(part.text)} ${part.style}`
      )
      return [JSON.stringify(text), ...tone ? [tone] : [], ...looks].join(', ')
    })
  })

  test('has only so many parts, and no class but those of the list, whatever is written', () => {
    const { parts, text } = shownLine(
      Array.from({ length: 900 }, (_, index) => `${ESC}[${index % 100}m.`).join('').slice(0, MAX_SHOWN_CHARS)
    )
    assert.ok(parts.length <= 200)
    assert.match(text, /^\.+$/)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 8 }), (codes) =>
        shownLine(`${ESC}[${codes.join(';')}mx`).parts.every(({ style }) => /^(ansi-[a-z]+ ?)*$/.test(style)))
    )
  })

  test('of a line without an end the beginning, and how much is left out, without half a character', () => {
    const { text, cutChars } = shownLine('x'.repeat(MAX_SHOWN_CHARS - 1) + '😀'.repeat(1000))
    assert.deepEqual([text, cutChars], ['x'.repeat(MAX_SHOWN_CHARS - 1), 2000])
  })

  test('is never a control character but a tab, whatever is written', () => {
    const nasty = fc.string({
      unit: fc.constantFrom(ESC, '[', ']', '0', ';', 'm', '\\', '\u0007', '\u009b', '\u0090', '\r', 'a', ' ', '\u202e'),
      maxLength: 60
    })
    fc.assert(
      fc.property(nasty, (text) => !/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u202e]/.test(shownLine(text).text))
    )
  })

  test('is no time that stands in front of the line anyway, but each that says something else', () => {
    const arrivedAt = '2026-01-31T12:00:03.500Z'
    const shown = (text: string, at: string | null = arrivedAt) => shownLine(text, at).text
    for (const time of ['2026-01-31T12:00:00.000Z', '[2026-01-31 12:00:00,123]', '2026-01-31T17:45:03+05:45:'])
      assert.equal(shown(`${time} GET / 200`), 'GET / 200', time)
    const { raw, parts } = shownLine(`${ESC}[31m2026-01-31T12:00:00Z late`, arrivedAt)
    assert.deepEqual([raw, parts], ['2026-01-31T12:00:00Z late', [{ text: 'late', style: 'ansi-red' }]])
    for (const text of ['2026-01-31T11:50:00Z from before', '2026-01-31T12:00:00Z', '2026-01-31 was cold'])
      assert.equal(shown(text), text)
    assert.equal(shown('2026-01-31T12:00:00Z x', null), '2026-01-31T12:00:00Z x')
  })

  test('names method and path of a request once', () => {
    const textOf = (msg: string) => shownLine(JSON.stringify({ level: 30, msg, method: 'GET', url: '/a', ms: 7 })).text
    assert.deepEqual([textOf('GET /a 200'), textOf('done')], ['INFO  GET /a 200 ms=7',
      'INFO  done method=GET url=/a ms=7'])
  })

  test('a line of nothing but beginnings takes no longer than others', () => {
    for (const part of ['\u0090', `${ESC}[`, `${ESC}]`, `${ESC}[0;`, `${ESC}${ESC}[ `]) {
      const before = process.cpuUsage()
      for (let count = 0; count < 10; count++) shownLine(part.repeat(1e6))
      // Of its own CPU time: the machine may be busy with others. What looks at the rest again from each beginning
      // takes hours.
      const { user } = process.cpuUsage(before)
      assert.ok(user < 3e6, `${JSON.stringify(part)}: ${user} µs`)
    }
  })

  test('has its hits marked, over the borders of its parts, and says the same', () => {
    const { parts, text } = shownLine(`${ESC}[31mreq-${ESC}[0m7 and REQ-7`)
    assert.deepEqual(markHits(parts, createHits('req-7')(text)).map((part) => [part.text, part.style]), [['req-',
      'ansi-red line-hit'], ['7', 'line-hit'], [' and ', ''], ['REQ-7', 'line-hit']])
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'A', '/', '"', '.'), minLength: 1, maxLength: 3 })
    fc.assert(fc.property(fc.array(word, { maxLength: 12 }), word, (texts, q) => {
      const all = texts.map((part) => ({ text: part, style: '' }))
      assert.equal(
        markHits(all, createHits(isRegular(q) ? q : undefined)(texts.join(''))).map((part) => part.text).join(''),
        texts.join('')
      )
    }))
  })

  test('is copied as it was written, without what a terminal would obey', () => {
    assert.deepEqual(['{"level":50,"msg":"a"}', `a${ESC}[2J\u202eb\rc`, 'plain'].map((line) => shownLine(line).raw), [
      '{"level":50,"msg":"a"}',
      'a b c',
      'plain'
    ])
  })

  test('has digits in groups', () => {
    assert.deepEqual([0, 999, 1000, 1234567].map(formatCount), ['0', '999', '1,000', '1,234,567'])
  })
})

describe('the level of a line', () => {
  test('is what it says itself; on stderr a word for an error or a frame of its stack is enough', async () => {
    await assertRetold(import.meta, 'log-levels', (line) => levelOf(line, 'stdout'))
    assert.equal(levelOf(`${ESC}[31merror${ESC}[39m: x`, 'stdout'), 'error')
    for (const line of ['    at sum (shop.js:1:1)', '  File "shop.py", line 1', 'could not write: disk error'])
      assert.deepEqual([levelOf(line, 'stdout'), levelOf(line, 'stderr')], ['none', 'error'], line)
    const quiet = ['listening on 3000', 'GET / 200', '0 errors', 'terror']
    assert.deepEqual(quiet.map((line) => levelOf(line, 'stderr')), quiet.map(() => 'none'))
    assert.equal(levelOf('info: error page built', 'stderr'), 'info')
  })
})

describe('what is searched for', () => {
  test('is a text in any case, or a pattern between slashes', () => {
    for (const [q, found, not] of rows(`
      Timeout         → a timeOUT b      → time out
      a.c             → xa.cx            → abc
      /time(d )?out/  → timed out        → TIMEOUT
      /TIMED? OUT/i   → time out         → timeout
      "/orders/"      → GET /orders/1    → orders
      "level":50      → {"level":50}     → level 50
      /orders         → GET /orders      → orders
      /api/my         → GET /api/my      → api
    `, '→')) {
      const find = createLineFilter({ q })
      assert.deepEqual([find(found, 'stdout') >= 0, find(not, 'stdout') >= 0], [true, false], q)
    }
  })

  test('is of the chosen levels', () =>
    assert.deepEqual(
      ['INFO a', 'ERROR a', 'ERROR b'].map((line) => createLineFilter({ q: 'a', level: ['error'] })(line, 'stdout')),
      [-1, 6, -1]
    ))
})

describe('what waits to be shown', () => {
  test('is what came, in order', () => {
    const backlog = createBacklog(3)
    backlog.push([1])
    backlog.push([2, 3])
    assert.deepEqual([backlog.count, backlog.take(), backlog.count, backlog.take()], [3, { items: [1, 2, 3],
      leftOut: 0 }, 0, { items: [], leftOut: 0 }])
  })

  test('is the newest of it, and how many came before, in whatever pieces it came', () => {
    fc.assert(fc.property(fc.array(fc.nat({ max: 12 }), { maxLength: 30 }), (sizes) => {
      const backlog = createBacklog(5)
      let last = 0
      for (const size of sizes) backlog.push(Array.from({ length: size }, () => ++last))
      const { items, leftOut } = backlog.take()
      assert.deepEqual(items,
        Array.from({ length: Math.min(5, last) }, (_, index) => last - Math.min(5, last) + 1 + index))
      assert.equal(leftOut, last - items.length)
    }))
  })
})

describe('the tail', () => {
  test('shows a batch once it is whole, and begins the next time where it ended', () => {
    const { tail, sources, shown } = aTail()
    tail.start()
    say(sources[0], 'a', '')
    assert.deepEqual(shown, [])
    say(sources[0], 'b', '1o20')
    say(sources[0], 'c', '1o20')
    assert.deepEqual(shown, ['a', 'b'])
    tail.stop()
    tail.start()
    assert.deepEqual(sources.map(({ url }) => url), ['/stream?from=1o0', '/stream?from=1o20'])
    say(sources[1], 'c', '')
    say(sources[1], 'd', '1o40')
    assert.deepEqual(shown, ['a', 'b', 'c', 'd'], 'what had come of the second batch came again')
  })

  test('forgets what a broken connection has left, as the browser asks for it anew', () => {
    const { tail, sources, shown, states } = aTail()
    tail.start()
    sources[0].emit('open')
    say(sources[0], 'a', '1o20')
    say(sources[0], 'b', '1o20')
    sources[0].emit('error')
    sources[0].emit('open')
    say(sources[0], 'b', '1o20')
    say(sources[0], 'c', '1o40')
    assert.deepEqual([shown, states, sources.length], [['a', 'b', 'c'], ['live', 'lost', 'live'], 1])
  })

  test('asks again where the browser gives up, and not once it is stopped', () => {
    const { tail, sources, retry, states } = aTail()
    tail.start()
    sources[0].readyState = 2
    sources[0].emit('error')
    retry()
    assert.deepEqual([sources.length, sources[0].isClosed, states], [2, true, ['lost']])
    sources[1].readyState = 2
    sources[1].emit('error')
    tail.stop()
    retry()
    assert.equal(sources.length, 2)
  })
})

describe('places in the logs', () => {
  const places = [{ log: { slot: 1, stream: 'stdout' as const }, position: 4096 }, {
    log: { slot: 256, stream: 'stderr' as const },
    position: 0
  }]

  test('are a text and back', () => {
    assert.equal(formatPlaces(places), '1o4096-256e0')
    assert.deepEqual(parsePlaces('1o4096-256e0', 'from'), places)
  })

  test('are nothing else', () => {
    for (const bad of ['', 'x', '1o', '1o1-', '-1o1', '1x1', '1o1,2o2', '1o-1', '1o1e5 ', '1o1\n', '9999o1',
      `1o${'1'.repeat(16)}`, Array(513).fill('1o1').join('-')])
    {
      assert.throws(() => parsePlaces(bad, 'from'), { code: 'invalid-query',
        message: /^from: expected .*, received "/ }, bad.slice(0, 20))
    }
  })
})

function isRegular (q: string) {
  return attempt(() => Boolean(toPattern(q)), false)
}

/** A tail over connections that do what the test says. */
function aTail () {
  const sources: (EventEmitter & { url: string, readyState: number, isClosed: boolean })[] = []
  const shown = [] as (string | undefined)[]
  const states = [] as string[]
  let pending = null as (() => void) | null
  const tail = createTail({ url: '/stream?', places: '1o0',
    onEntries: (entries) => shown.push(...entries.map(({ text }) => text)), onState: (state) => states.push(state),
    open (url) {
      const source = Object.assign(new EventEmitter(), { url, readyState: 1, isClosed: false, close () {
        this.isClosed = true
      }, addEventListener: (type: string, handler: () => void) => source.on(type, handler) })
      // An emitter without a listener would throw.
      sources.push(source.on('error', () => {}))
      return source as object as EventSource
    }, timers: fake({ setTimeout: (task: () => void) => {
      pending = task
    }, clearTimeout: () => {
      pending = null
    } }) })
  return { tail, sources, shown, states, retry: () => pending?.() }
}

function say (source: EventEmitter, text: string, lastEventId: string) {
  source.emit('message', { data: JSON.stringify({ slot: 1, stream: 'stdout', text }), lastEventId })
}

test('a level that the shown lines have stands before those that they have not', () => {
  assert.deepEqual(levelsOf(undefined, [{ level: 'none' }, { level: 'warn' }]).map(({ value }) => value), ['warn',
    'none', 'error', 'info', 'debug'])
})
