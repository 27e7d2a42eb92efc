import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { fingerprintOf } from '../../../server/crashes/recorder.ts'
import { faultIn, lastLinesOf, noteFrom } from '../../../server/crashes/last-words.ts'
import { toRecord } from '../../../server/crashes/record.ts'
import { assertGolden } from '../../support/golden.ts'

const GOLDEN = readFileSync(new URL('golden/last-words.txt', import.meta.url), 'utf8')
/** What the runtimes have written, by language. */
const TRACES = new Map(GOLDEN.split(/^# /m).slice(2).map((section) => {
  const [language, ...lines] = section.split('\n')
  const words = lines.slice(0, lines.indexOf('→')).map((line) => line.slice(2))
  return [language, words.join('\n').replaceAll(String.raw`\u001b`, '\u001b')]
}))
const [PYTHON, GO, RUST] = ['Python', 'Go', 'Rust without a backtrace'].map((language) => TRACES.get(language) ?? '')

test('the last words of a program are its error, with the functions of the app', () => {
  const told = Array.from(TRACES, ([language, text]) => {
    const note = noteFrom(['2026-11-27 listening on 8000', ...text.split('\n')])
    const { frames } = recordOf(text)
    const own = frames.filter(({ isInApp }) => isInApp)
    const found = [`${note?.errorName}: ${note?.errorMessage}`,
      ...note?.causes?.map(({ errorName, errorMessage }) => `caused by ${errorName}: ${errorMessage}`) ?? [],
      ...own.map(({ function: name, file, line }) => `in ${name} (${file}:${line})`),
      ...frames.length > own.length ? [`frames of others: ${frames.length - own.length}`] : []]
    const section = GOLDEN.slice(GOLDEN.indexOf(`\n# ${language}\n`)).split('\n→\n', 1)[0]
    return [section, '→', ...found.join('\n').split('\n').map((line) => `  ${line}`)].join('\n')
  })
  assert.ok(told.length > 15)
  assertGolden(import.meta, 'last-words', [GOLDEN.split('\n', 1)[0], ...told].join('\n'))
})

test('an error that a program has lived with, or that it only tells of, is not why it ended', () => {
  const python = PYTHON.split('\n')
  assert.equal(noteFrom([...python, ...Array.from({ length: 30 }, (_, n) => `answered request ${n}`)]), null)
  assert.equal(
    noteFrom(['2026/11/27 01:00:00 http: panic serving 127.0.0.1:5: boom',
      'listen tcp :80: bind: address already in use']),
    null
  )
  assert.equal(
    noteFrom([...python, 'Exception ignored in: <function f>', ...PYTHON.split('\n').slice(0, 6), 'KeyError: 1'])
      ?.errorName,
    'RuntimeError'
  )
})

test('the last words of Bun are read to the end where a stack is cut off before them', () => {
  const text =
    '    at load (/srv/r1/a.js:1:1)\n1 | let x =\n        ^\nerror: Unexpected end of file\n    at /srv/r1/app.js:1:8\n\nBun v1.4.5 (Linux x64)'
  assert.equal(noteFrom(text.split('\n'))?.errorMessage, 'Unexpected end of file')
})

test('words of any length and kind are read in no time', () => {
  const hostile = ['', ' '.repeat(5000), `at ${'('.repeat(2000)}`, `  File "${'a'.repeat(5000)}`, 'a:1:in '.repeat(500),
    '\tat '.repeat(900), `${'a.'.repeat(1000)}: x`, '#0 '.repeat(800), 'error: '.repeat(700), 'a$.'.repeat(600),
    ' in x:'.repeat(300), `${'a:1:in \'x\': '.repeat(160)}\r!`]
  const began = performance.now()
  // A log is read from its last 64 kB on.
  for (const text of hostile) noteFrom(Array(32).fill(text.slice(0, 2000)))
  for (const text of TRACES.values()) for (const end of hostile) noteFrom([...text.split('\n'), end])
  assert.ok(performance.now() - began < 5000)
  for (const text of TRACES.values()) for (const line of text.split('\n')) noteFrom([line])
})

test('a fault of another language has one group, whatever its lines, addresses and release', () => {
  const go = GO
  const group = (text: string) => fingerprintOf(recordOf(text))
  assert.equal(group(go.replace(':12', ':99').replace('0xc000', '0xc111')), group(go))
  assert.notEqual(group(go.replace('Add', 'Remove')), group(go))
  const rust = RUST
  assert.equal(group(rust.replace(':2:5', ':9:1')), group(rust))
  assert.notEqual(group(rust.replace('boom', 'no config')), group(rust), 'the file alone tells too little')
  const silent = (said: string) => fingerprintOf({ ...recordOf(''), said })
  assert.equal(silent('listen tcp :80: bind: address already in use'),
    silent('listen tcp :81: bind: address already in use'))
  assert.notEqual(silent('listen tcp :80: bind: address already in use'), silent('open shop.db: permission denied'))
})

/** `text`: of a program whose release is in /srv/r1 */
function recordOf (text: string) {
  return toRecord({ type: 'worker.exited', cause: 'crash', code: 1, signal: null }, { note: noteFrom(text.split('\n')),
    memoryKind: null, root: '/srv/r1', stderr: [], vitals: [], isProgram: true, at: 0, original: (frames) => frames })
}

test('a logged error is among the last lines however long its stack is, with its first place', () => {
  const frames = Array.from({ length: 12 }, (_, number) => `    at step${number} (/srv/shop/steps.js:${number + 1}:3)`)
  const lines = lastLinesOf(['starting', '\u001B[31merror\u001B[39m: The upload folder does not exist', ...frames,
    'info: Shutting down'])
  assert.deepEqual(lines, ['starting', 'error: The upload folder does not exist', frames[0], 'info: Shutting down'])
  assert.equal(faultIn(lines), 'error: The upload folder does not exist')
})

test('of an error that is logged with all that it has, the words are said, and what it was caused by; never only the bracket at its end', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { errno: -111, code: 'ECONNREFUSED',
    syscall: 'connect', address: '127.0.0.1', port: 1 })
  const many = Object.assign(new Error('status 401'), {
    config: Object.fromEntries(
      Array.from({ length: 90 }, (_, index) => [`key${index}`, { authorization: `Bearer ${'x'.repeat(70)}` }])
    )
  })
  const cases: [string, string][] = [[`no database: ${inspect(refused)}`,
    'no database: Error: connect ECONNREFUSED 127.0.0.1:1'], [
    inspect(new TypeError('fetch failed', { cause: refused })),
    'TypeError: fetch failed (Error: connect ECONNREFUSED 127.0.0.1:1)'
  ], [inspect(new AggregateError([refused, refused])), 'AggregateError (Error: connect ECONNREFUSED 127.0.0.1:1)'], [
    inspect(many),
    'Error: status 401'
  ], [inspect({ error: 'bad config', file: 'x'.repeat(80) }), `{ error: 'bad config', file: '${'x'.repeat(80)}' }`], [
    'Error: DbError {\n    kind: Refused,\n    message: "cannot connect",\n}',
    'Error: DbError { kind: Refused, message: "cannot connect", }'
  ], [
    'Error: no store\n\nCaused by:\n    Connection refused (os error 111)\n\nStack backtrace:\n   0: anyhow::error\n             at /srv/x.rs:3:2',
    'Connection refused (os error 111)'
  ], [`2026/11/27 01:00:00 dial: connection refused${'\nmain.open\n\t/srv/main.go:10 +0x5b'.repeat(9)}`,
    '2026/11/27 01:00:00 dial: connection refused'], [
    `System.InvalidOperationException: no store${'\n   at Shop.Failed.Run() in /srv/x.cs:line 3'.repeat(9)}`,
    'System.InvalidOperationException: no store'
  ]]
  for (const [text, said] of cases) assert.equal(faultIn(lastLinesOf(['listening', ...text.split('\n'), ''])), said)
  assert.deepEqual(lastLinesOf(['  key: 1', '}']), ['  key: 1'])
})

test('what an error has does not hide that a program has ended by it', () => {
  const properties = Array.from({ length: 14 }, (_, index) => `  key${index}: 1,`)
  const lines = ['Error: no config', '    at load (file:///srv/r1/app.ts:1:27) {', ...properties,
    '  [cause]: Error: inner', '      at x (file:///srv/r1/app.ts:3:3)', '}']
  const note = noteFrom(lines)
  assert.deepEqual([note?.errorMessage, note?.stack], ['no config',
    'Error: no config\n    at load (file:///srv/r1/app.ts:1:27)'])
})
