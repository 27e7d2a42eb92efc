import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { takeCrashNote } from '../../../server/crashes/note.ts'
import { culpritOf } from '../../../server/crashes/record.ts'
import { createCrashRecorder, fingerprintOf, normaliseMessage } from '../../../server/crashes/recorder.ts'
import { createOutOfMemory } from '../../../server/crashes/oom.ts'
import { createSourceMaps } from '../../../server/crashes/source-maps.ts'
import { createEventStream, type NewEvent, type Detail } from '../../../server/events/stream.ts'
import { createSourceLines } from '../../../server/crashes/source-lines.ts'
import { parseStack } from '../../../server/crashes/stack-frames.ts'
import { describeCrash } from '../../../workers/crash-note.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'

/** For a recorder whose records nobody reads. */
const NOWHERE = { store: { record () {
  throw new Error('no history here')
} }, events: createEventStream() }

const STACK = `TypeError: at first (not:a:frame)
    at Shop.total [as sum] (/srv/r1/src/shop.js:12:34)
    at async handle (file:///srv/r1/app%20one.mjs:3:5)
    at /srv/r1/anonymous.js:1:2
    at new Layer (/srv/r1/node_modules/express/lib/layer.js:5:6)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)
    at eval (eval at <anonymous> (/srv/r1/x.js:1:1), <anonymous>:1:7)
    at Array.map (<anonymous>)`

test('a stack is read frame by frame, relative to the release', () => {
  const frames = parseStack(STACK, { root: '/srv/r1' }).map((
    { function: name, file, line, column, isInApp }
  ) => [name, file, line, column, isInApp])
  assert.deepEqual(frames.slice(0, 5), [['Shop.total', 'src/shop.js', 12, 34, true], ['handle', 'app one.mjs', 3, 5,
    true], [null, 'anonymous.js', 1, 2, true], ['new Layer', 'node_modules/express/lib/layer.js', 5, 6, false], [
    'process.processTicksAndRejections',
    'node:internal/process/task_queues',
    95,
    5,
    false
  ]])
  assert.ok(frames.slice(5).every(([, , , , isInApp]) => isInApp === false))
  for (const hostile of ['', '    at (', `    at ${'('.repeat(5000)}`, '    at x (file://%zz:1:1)',
    'at '.repeat(10_000), '\n'.repeat(100_000)]) parseStack(hostile, { root: '/srv' })
})

test('the fingerprint ignores lines, releases, packages and what varies in messages, and nothing else', () => {
  const crash = (stack: string, changes = {}) =>
    fingerprintOf({ kind: 'exception', errorName: 'TypeError', errorMessage: 'm', code: 1, signal: null,
      frames: parseStack(stack, { root: /\/srv\/r\d/.exec(stack)?.[0] ?? null }), ...changes })
  const one = crash(STACK)
  assert.match(one, /^v1:[0-9a-f]{32}$/)
  assert.equal(
    crash(STACK.replaceAll('r1', 'r2').replaceAll(':12:34', ':99:1').replace('layer.js', 'other.js'), {
      errorMessage: 'other',
      code: 7,
      kind: 'unhandled-rejection'
    }),
    one
  )
  assert.notEqual(crash(STACK.replace('Shop.total', 'Shop.count')), one)
  assert.notEqual(crash(STACK, { errorName: 'Error' }), one)
  const text = (errorMessage: string) => crash('', { errorMessage })
  assert.equal(text('order 17 of "Ann" at /srv/a/b.js:3 not found'),
    text('order 182 of "Bob" at /srv/c/d.js:77 not found'))
  assert.notEqual(text('order 17 not found'), text('user 17 not found'))
  assert.equal(normaliseMessage('id 123e4567-e89b-12d3-a456-426614174000 hash deadbeef01 0xFF in 1.5s'),
    'id <uuid> hash <hex> <hex> in <n>s')
  const bare = (changes: Partial<Parameters<typeof fingerprintOf>[0]>) =>
    fingerprintOf({ kind: 'signal', errorName: null, errorMessage: 'worker 5 was ended', code: null, signal: 'SIGSEGV',
      frames: [], ...changes })
  assert.equal(bare({ errorMessage: 'worker 6' }), bare({}))
  assert.notEqual(bare({ signal: 'SIGBUS' }), bare({}))
})

test('source maps of the release are applied, inline or beside the file; broken ones and those outside are not', () => {
  const root = tempFolder()
  const outside = tempFolder()
  const map = JSON.stringify({ version: 3, sources: ['src/shop.ts'], names: [], mappings: 'AAAA;AASA' })
  const inline = `data:application/json;base64,${Buffer.from(map).toString('base64')}`
  mkdirSync(path.join(root, 'maps'))
  writeFileSync(path.join(outside, 'secret.map'), map)
  writeFileSync(path.join(root, 'maps', 'b.js.map'), map)
  writeFileSync(path.join(root, 'bad.map'), '{"version":3,"mappings":"@@@@"}')
  symlinkSync(path.join(outside, 'secret.map'), path.join(root, 'link.map'))
  const urls = { 'a.js': inline, 'b.js': 'maps/b.js.map', 'c.js': 'bad.map', 'd.js': '../../../etc/passwd',
    'e.js': 'link.map', 'f.js': 'https://host/x.map' }
  for (const [file, url] of Object.entries(urls))
    writeFileSync(path.join(root, file), `one()\ntwo()\n//# sourceMappingURL=${url}\n`)
  const { original } = createSourceMaps()
  const places = [...Object.keys(urls), 'gone.js'].map((file) =>
    original(parseStack(`E\n    at f (${path.join(root, file)}:2:1)`, { root }), root)[0]
  )
  assert.deepEqual(places.map(({ file, line }) => `${file}:${line}`), ['src/shop.ts:10', 'src/shop.ts:10', 'c.js:2',
    'd.js:2', 'e.js:2', 'f.js:2', 'gone.js:2'])
})

test('the last words are the app\'s own, not what the master has made node say', () => {
  const words = Array.from({ length: 55 }, (_, index) => `word ${index}`)
  const ours = ['Debugger listening on ws://127.0.0.1:9229/0-1', 'For help, see: https://nodejs.org/en/docs/inspector',
    'Debugger attached.', 'Debugger ending on ws://127.0.0.1:9229/0-1']
  const said = [...words, ...ours, 'Debugger of the app']
  const recorder = createCrashRecorder({ ...NOWHERE, logs: { tail: ({ lines }) => said.slice(-lines) } })
  assert.deepEqual(recorder.examine({ slot: 1, worker: 1, pid: 7, code: 1, signal: null }).stderr,
    [...words, 'Debugger of the app'].slice(-50))
})

test('a worker that does not start says why: the last lines of its stderr, or of its stdout, without colours and Node\'s own part of a stack', () => {
  const said = { stderr: [] as string[], stdout: ['config.json: port missing', ''] }
  const recorder = createCrashRecorder({ ...NOWHERE, logs: { tail: ({ stream }) => said[stream] } })
  const exit = (fields: Partial<NewEvent> = {}) => {
    const event = { type: 'worker.exited', cause: 'boot-failure', code: 1, signal: null, slot: 1, worker: 1,
      message: 'worker 1 exited', ...fields }
    const found = recorder.examine({ slot: 1, worker: 1, pid: 7, code: 1, signal: null })
    return [found.said, (recorder.record(event, { ...found, root: null }).detail as Detail | null)?.lastLines]
  }
  assert.deepEqual(exit(), ['config.json: port missing', ['config.json: port missing']])
  said.stderr = ['1', '2', '3', '4', '5', '6', '\u001b[31mDATABASE_URL is not set\u001b[0m',
    '    at Module._compile (node:internal/modules/cjs/loader:1554:14)', '', 'Node.js v20.20.2']
  assert.deepEqual(exit(), ['DATABASE_URL is not set', ['2', '3', '4', '5', '6', 'DATABASE_URL is not set']])
  assert.deepEqual(exit({ cause: 'crash' })[1], undefined)
  Object.assign(said, { stderr: [], stdout: [] })
  assert.deepEqual(exit(), [null, undefined])
})

test('of what a program says last, the line that names a fault tells why it ended; one that serves has to name one', () => {
  const said = { stderr: ['listening', 'ERROR: [Errno 98] address already in use', 'INFO: shutdown complete'],
    stdout: [] }
  const recorder = createCrashRecorder({ ...NOWHERE, logs: { tail: ({ stream }) => said[stream as 'stderr'] },
    lackedMemory: () => null })
  const exit = { slot: 1, worker: 1, pid: 7, code: 1, signal: null, isProgram: true }
  const reason = (more: Partial<Parameters<typeof recorder.examine>[0]> = {}) =>
    recorder.examine({ ...exit, ...more }).said
  assert.deepEqual([reason(), reason({ hasStarted: true }), reason({ hasStarted: true, isProgram: false, code: 3 })],
    Array(3).fill(said.stderr[1]))
  assert.deepEqual([reason({ signal: 'SIGKILL', code: null }), reason({ isAsTold: true }),
    reason({ hasStarted: true, code: 0 })], [null, null, null])
  said.stderr = ['GET / 200']
  assert.deepEqual([reason(), reason({ hasStarted: true })], ['GET / 200', null])
  said.stderr = ['memory allocation of 8 bytes failed']
  assert.equal(recorder.examine({ ...exit, code: null, signal: 'SIGABRT' }).memoryKind, 'heap-out-of-memory')
})

test('source lines are those that ran: of the release or of its map, and of no file outside, hidden, changed, special or large', () => {
  const root = tempFolder()
  const outside = tempFolder()
  const text = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`).join('\n')
  mkdirSync(path.join(root, '.git'))
  mkdirSync(path.join(root, 'node_modules'))
  for (const file of ['a.js', 'b.ts', 'secrets.json', '.env', '.git/x.js', 'node_modules/m.js'])
    writeFileSync(path.join(root, file), text)
  writeFileSync(path.join(outside, 'o.js'), text)
  symlinkSync(path.join(outside, 'o.js'), path.join(root, 'link.js'))
  writeFileSync(path.join(root, 'large.js'), `${text}\n`.repeat(10_000))
  execFileSync('mkfifo', [path.join(root, 'pipe.js')])
  const map = { version: 3, sources: ['src/only-in-map.ts'], sourcesContent: [text], names: [], mappings: 'AAAA;AASA' }
  writeFileSync(path.join(root, 'built.js'),
    `one()\ntwo()\n//# sourceMappingURL=data:application/json;base64,${
      Buffer.from(JSON.stringify(map)).toString('base64')
    }\n`)
  const around = createSourceLines()
  const linesOf = (file: string, at = Date.now() + 1000, line = 5) => {
    const stack = `E\n    at f (${path.resolve(root, file)}:${line}:1)`
    const frames = createSourceMaps().original(parseStack(stack, { root }), root)
    return around({ at: new Date(at).toISOString(), stack, frames }, root)[0]
  }
  assert.deepEqual(linesOf('a.js'), [2, 3, 4, 5, 6, 7, 8].map((number) => ({ number, text: `line ${number}` })))
  assert.deepEqual(linesOf('a.js', undefined, 1)?.map(({ number }) => number), [1, 2, 3, 4])
  assert.equal(linesOf('b.ts')?.length, 7)
  assert.deepEqual(linesOf('built.js', undefined, 2)?.map(({ number }) => number), [7, 8, 9, 10, 11, 12, 13])
  for (const file of ['secrets.json', '.env', '.git/x.js', 'node_modules/m.js', 'link.js', 'large.js', 'pipe.js',
    'gone.js', path.join(outside, 'o.js')]) assert.equal(linesOf(file), null, file)
  assert.equal(linesOf('a.js', undefined, 21), null)
  assert.equal(linesOf('a.js', Date.now() - 60_000), null, 'it was another file when it crashed')
  assert.equal(linesOf('built.js', Date.now() - 60_000, 2), null)
  assert.deepEqual(
    around({ at: new Date().toISOString(), stack: null, frames: parseStack(STACK, { root: null }) }, null)[0],
    null
  )
})

test('lack of memory is told by V8\'s words or the kernel\'s count, and by nothing else', () => {
  let [group, system] = [3, 10]
  const lacked = createOutOfMemory({
    read: (file) =>
      ({ '/proc/self/cgroup': '0::/box\n', '/sys/fs/cgroup/box/memory.events': `oom 9\noom_kill ${group}\n`,
        '/proc/vmstat': `pgfault 1\noom_kill ${system}\n` })[file] ?? '',
    killedByKernel: (pid) => pid === 7
  })
  const V8 = 'FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory'
  const exit = { pid: 7, code: null, signal: 'SIGABRT', stderr: [] }
  assert.equal(lacked(exit), null)
  assert.equal(lacked({ ...exit, stderr: ['x', V8] }), 'heap-out-of-memory')
  assert.equal(lacked({ ...exit, code: 134, signal: null, stderr: [V8] }), 'heap-out-of-memory')
  assert.equal(lacked({ ...exit, signal: 'SIGSEGV', stderr: [V8] }), null)
  const killed = { ...exit, signal: 'SIGKILL' }
  assert.equal(lacked(killed), null)
  group++
  assert.equal(lacked(killed), 'kernel-out-of-memory')
  assert.equal(lacked(killed), null)
  system++
  assert.equal(lacked({ ...killed, pid: 8 }), null)
  system++
  assert.equal(lacked(killed), 'kernel-out-of-memory')
})

test('whatever is thrown is described, within bounds', () => {
  const hostile = new Error('x')
  Object.defineProperty(hostile, 'message', { get () {
    throw new Error('no')
  } })
  const loop = new Error('loop')
  loop.cause = new AggregateError([loop, ...Array(100).fill(0).map((_, n) => new Error(`e${n}`, { cause: n }))], 'many')
  const thrown = [hostile, loop, null, undefined, 'text', Symbol('s'), 5n, { a: 1 }, () => {}, new Proxy({}, { get () {
    throw new Error('no')
  } }), new Error('y'.repeat(1e6))]
  for (const each of thrown) {
    const note = describeCrash(each, 'uncaughtException',
      Array(500).fill({ method: 'GET', path: '/'.repeat(9999), ageMs: 1 }))
    assert.ok(JSON.stringify(note).length < 200_000)
    assert.equal(note.requests.length, 100)
    assert.ok(note.causes.length <= 8)
  }
  const { causes } = describeCrash(loop, 'uncaughtException', [])
  assert.deepEqual(causes.slice(0, 2).map(({ depth, errorName }) => [depth, errorName]), [[1, 'AggregateError'], [2,
    'Error']])
})

test('an error that does not let itself be read leaves what can be read of it', () => {
  const hostile = (property: string, value: unknown) =>
    Object.defineProperty(new Error('message'), property, { get () {
      if (value) return value
      throw new Error('no')
    } })
  const described = (error: Error) => {
    const { errorName, errorMessage } = describeCrash(error, 'uncaughtException', [])
    return [errorName, errorMessage]
  }
  assert.deepEqual(described(hostile('stack', null)), ['Error', 'message'])
  assert.deepEqual(described(hostile('stack', { toString () {
    throw new Error('no')
  } })), ['Error', 'message'])
  assert.deepEqual(described(hostile('name', { toString () {
    throw new Error('no')
  } })), ['Error', 'message'])
  assert.deepEqual(described(hostile('message', Symbol('s'))), ['Error', '(it cannot be read)'])
})

test('a note that could not be left in a file counts where it was sent', () => {
  const file = path.join(tempFolder(), 'note.json')
  const sent = { at: Date.now(), kind: 'exception', errorName: 'TypeError', errorMessage: 'sent' }
  assert.equal(takeCrashNote(file, 1, sent)?.errorMessage, 'sent')
  assert.equal(takeCrashNote(file, 0, sent), null, 'it has ended well')
  for (const at of [{ toString: 1, valueOf: 1 }, '1', null, [Date.now()]])
    assert.equal(takeCrashNote(file, 1, { ...sent, at }), null)
  assert.equal(takeCrashNote(file, 1, { ...sent, at: Date.now() - 60_000 }), null, 'it has lived on')
  writeFileSync(file, JSON.stringify({ ...sent, errorMessage: 'left' }))
  assert.equal(takeCrashNote(file, 1, sent)?.errorMessage, 'left')
})

test('a note that an app has forged is taken for what it is', () => {
  const file = path.join(tempFolder(), 'note.json')
  const taken = (content: unknown) => {
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return takeCrashNote(file, 1)
  }
  for (const content of ['', '{', 'null', '[]', '3', { at: 1 }, 'x'.repeat(600_000)]) assert.equal(taken(content), null)
  const note = taken({ at: Date.now(), kind: {}, errorName: ['x'], stack: 7, causes: [null, 3, { depth: 'x' }],
    requests: { length: 9 }, memory: 'much', more: 1 })
  assert.deepEqual([note?.kind, note?.errorName, note?.stack, note?.causes.length, note?.requests,
    note?.memory.rssBytes], ['exception', '', null, 3, [], 0])
})

test('the place to look at is the first function of the app, or the file where that has no name', () => {
  for (const [line, culprit] of [['at sum (/srv/r1/shop.js:1:2)', 'sum (shop.js)'], ['at /srv/r1/shop.js:1:2',
    'shop.js'], ['at file:///srv/r1/shop.js:1:2', 'shop.js'], ['at Object.<anonymous> (/srv/r1/shop.js:1:2)',
    'shop.js'], ['at run (node:internal/x:1:2)', null]])
    assert.equal(culpritOf(fake({ frames: parseStack(`Error: x\n    ${line}`, { root: '/srv/r1' }) })), culprit)
})
