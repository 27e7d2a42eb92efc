import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync,
  writeSync } from 'node:fs'
import path from 'node:path'
import { Writable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { endOf, listParts, liveFile } from '../../../server/logs/log-files.ts'
import { createLogs } from '../../../server/logs/logs.ts'
import { loadPosix } from '../../../server/system/posix.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import type { Order } from '../../../server/logs/archiver.ts'
import type { Streams } from '../../../server/logs/mirror.ts'

function canCutOff (): string | false {
  const fd = openSync(path.join(tempFolder(), 'file'), 'w+')
  writeSync(fd, 'x'.repeat(65_537))
  const isDone = loadPosix()?.cutOff(fd, 65_536)
  closeSync(fd)
  return !isDone && 'this file system cuts nothing off'
}

const WITHOUT_HOLES = ['--import', 'data:text/javascript,Object.defineProperty(process,"platform",{value:"other"})']
const ARCHIVER = fileURLToPath(new URL('../../../server/logs/archiver.ts', import.meta.url))
const MAX_BYTES = 64 * 1024
const LOG = { slot: 1, stream: 'stdout' } as const

test('keeps every line through rotation, in files that end with a line, for a writer that never hears of it', async (t) => {
  const { folder, say, rotate, all } = setUp(t)
  const written = []
  for (let round = 0; round < 6; round++) {
    written.push(...say(900, `round ${round} ${'x'.repeat(60)}`))
    await rotate({ maxFiles: 100 })
  }
  assert.deepEqual(all(), written)
  const parts = listParts(folder, LOG)
  assert.ok(parts.length >= 4, `${parts.length} files`)
  for (const { file, from, to } of parts) {
    assert.ok(to - from <= MAX_BYTES && to - from > MAX_BYTES - 100)
    assert.equal(readFileSync(file).at(-1), 10)
    assert.equal(statSync(file).mode & 0o777, 0o600)
  }
  assert.equal(statSync(liveFile(folder, LOG)).mode & 0o777, 0o600)
  assert.ok(statSync(liveFile(folder, LOG)).blocks * 512 < 2 * MAX_BYTES,
    'what was moved out takes no room in the live file')
})

test(
  'what a new shipper reads of a rotated log is one line that says where the older ones are, and then lines of the app, each with its place',
  { skip: canCutOff() },
  async (t) => {
    const { folder, logs, say, rotate } = setUp(t)
    // Such a line of the app's own is one like all others.
    const written = say(1, `\n[clusterdeck: ${'9'.repeat(15)} bytes before this, no; 000100]`).concat(
      say(900, 'x'.repeat(60))
    )
    const before = logs.cursor(1, 'stdout', 0)
    for (let round = 0; round < 3; round++) {
      written.push(...say(900, `${round} ${'z'.repeat(60)}`))
      await rotate({ maxFiles: round === 2 ? 1 : 3 })
      const live = readFileSync(liveFile(folder, LOG), 'utf8')
      const [first, ...lines] = live.split('\n').slice(0, -1)
      assert.match(first,
        /^\[clusterdeck: \d{15} bytes before this, the last of them in slot-1\.stdout\.\*\.log; \d{6}\] *$/)
      assert.deepEqual(lines, written.slice(-lines.length))
      assert.ok(!live.includes('\0') && live.length < MAX_BYTES + 8192)
      assert.equal(endOf(folder, LOG), Buffer.byteLength(`${written.join('\n')}\n`))
      assert.deepEqual(logs.tail({ ...LOG, lines: lines.length - 1 }), lines.slice(1))
    }
    const { lost, lines } = await before.read(1e9)
    assert.ok(lost > 0 && lines.length > 0)
    assert.deepEqual(lines, written.slice(-lines.length))
  }
)

test('keeps no more files than it may, and what is left is the newest', async (t) => {
  for (const maxFiles of [1, 3]) {
    const { folder, logs, say, rotate } = setUp(t)
    const written = say(9000, 'y'.repeat(60))
    await rotate({ maxFiles })
    assert.equal(listParts(folder, LOG).length, maxFiles - 1)
    written.push(...say(5, 'after'))
    assert.deepEqual(logs.tail({ ...LOG, lines: 20 }), written.slice(-20))
  }
})

test('a writer that is faster than the copying takes no more of the disk than the bound, and how much was removed is told', async (t) => {
  const reasons: string[] = []
  const { folder, logs, fd, say } = setUp(t, { onError: (reason) => reasons.push(reason) })
  const other = { slot: 2, stream: LOG.stream }
  writeFileSync(liveFile(folder, other), 'of another slot\n')
  const chunk = Buffer.alloc(1_000_000, `${'f'.repeat(99)}\n`)
  // While nobody looks, as in the time of no master.
  for (let count = 0; count < 8; count++) writeSync(fd, chunk)
  logs.start()
  t.after(() => logs.close())
  await until(() => reasons.length > 0, 'word of what was removed')
  assert.match(reasons[0],
    /^slot 1, stdout: \d{7} bytes were removed before .* logs\.maxBytes \(65536\) × logs\.maxFiles \(5\) is the bound$/)
  const parts = listParts(folder, LOG)
  assert.equal(parts.length, 4)
  assert.ok(statSync(liveFile(folder, LOG)).blocks * 512 < 2 * MAX_BYTES, 'what was moved out or removed is freed')
  const said = say(3, 'after')
  assert.deepEqual(logs.tail({ ...LOG, lines: 4 }), ['f'.repeat(99), ...said])
  assert.equal(readFileSync(liveFile(folder, other), 'utf8'), 'of another slot\n')
})

test('the end of a master waits for no archiver, and the next one goes on with what is left', async (t) => {
  const { folder, logs, say, rotate, all } = setUp(t, { maxFiles: 1000 })
  const written = say(9000, 'y'.repeat(60))
  logs.start()
  await logs.close()
  assert.ok(statSync(liveFile(folder, LOG)).size > 4 * MAX_BYTES && listParts(folder, LOG).length === 0,
    'nothing was waited for')
  await rotate({ maxFiles: 1000 })
  assert.ok(listParts(folder, LOG).length > 4)
  assert.deepEqual(all(), written)
})

test('moves out what is larger than a limit that is set while it runs', async (t) => {
  const { folder, logs, say } = setUp(t, { maxBytes: 1e9 })
  logs.start()
  t.after(() => logs.close())
  say(1500, 'z'.repeat(60))
  assert.equal(listParts(folder, LOG).length, 0)
  logs.configure({ maxBytes: MAX_BYTES, maxFiles: 3 })
  await until(() => listParts(folder, LOG).length > 0, 'a file that is moved out')
})

test('a folder that somebody removes under a running master is empty until the next worker makes it anew', async (t) => {
  const { folder, logs } = setUp(t)
  logs.start()
  t.after(() => logs.close())
  logs.open({ worker: 1, slot: 1 }).close()
  rmSync(folder, { recursive: true })
  assert.deepEqual((await logs.page({ ...LOG, lines: 10, maxBytes: 1000 })).lines, [])
  assert.deepEqual(logs.tail({ ...LOG, lines: 10 }), [])
  const output = logs.open({ worker: 2, slot: 1 })
  writeSync(output.stdout, 'here again\n')
  output.close()
  assert.deepEqual((await logs.page({ ...LOG, lines: 10, maxBytes: 1000 })).lines, ['here again'])
  assert.equal(statSync(folder).mode & 0o777, 0o700)
})

test('reads the last lines over the border between two files', async (t) => {
  const { folder, logs, say, rotate } = setUp(t)
  const written = say(1100, 'z'.repeat(60))
  await rotate()
  written.push(...say(3, 'after'))
  const inLive = endOf(folder, LOG) - Number(listParts(folder, LOG).at(-1)?.to)
  assert.ok(inLive < 20_000)
  const tail = logs.tail({ ...LOG, lines: 500 })
  assert.deepEqual(tail, written.slice(-500))
  const page = await logs.page({ ...LOG, lines: 1000, maxBytes: 1e6 })
  assert.deepEqual(page.lines, written.slice(-1000))
  assert.ok(logs.tail({ ...LOG, lines: 1e6 }).join('\n').length <= 64 * 1024, 'and no more than 64 KiB')
})

test('an archiver that ends in the middle of its work is gone on with: nothing is lost and nothing is there twice', async (t) => {
  const { folder, say, rotate, all } = setUp(t)
  const written = say(3000, 'a'.repeat(60))
  // It had finished a part, and not freed what it holds.
  const first = readFileSync(liveFile(folder, LOG)).subarray(0, MAX_BYTES)
  writeFileSync(path.join(folder, `slot-1.stdout.${'0'.repeat(15)}.log`), first.subarray(0, first.lastIndexOf(10) + 1))
  // Another one was still copying.
  writeFileSync(path.join(folder, `slot-1.stdout.000000000065000.log.${2 ** 22 + 1}.new`), 'half a li')
  await rotate({ maxFiles: 100 })
  assert.deepEqual(all(), written)
  assert.ok(listParts(folder, LOG).length > 1, 'it goes on')
  assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith('.new')), [])
})

test('archivers that are killed at any time, several at once, while somebody writes: every line once', async (t) => {
  const { folder, say, rotate, all } = setUp(t)
  const written = []
  for (let round = 0; round < 6; round++) {
    written.push(...say(2000, `${round} ${'k'.repeat(60)}`))
    const children = [1, 2].map(() => startArchiver({ folder, maxBytes: MAX_BYTES, maxFiles: 1000 }))
    const exits = children.map((child) => once(child, 'exit'))
    const timer = setTimeout(() => children[0].kill('SIGKILL'), 40 + round * 10)
    written.push(...say(500, `meanwhile ${round}`))
    await Promise.all(exits)
    clearTimeout(timer)
  }
  await rotate({ maxFiles: 1000 })
  assert.deepEqual(all(), written)
})

test('a line that is larger than a file stays whole; one without an end is waited for', async (t) => {
  const { folder, fd, say, rotate, all } = setUp(t)
  const large = 'L'.repeat(3 * MAX_BYTES)
  writeSync(fd, large)
  await rotate()
  assert.deepEqual(listParts(folder, LOG), [])
  writeSync(fd, '\n')
  const written = [large, ...say(10, 'small')]
  await rotate()
  assert.equal(listParts(folder, LOG).length, 1)
  assert.deepEqual(all(), written)
})

test('begins anew when somebody empties the file by hand', async (t) => {
  const { folder, logs, say, rotate } = setUp(t)
  say(3000, 'b'.repeat(60))
  await rotate()
  truncateSync(liveFile(folder, LOG))
  const written = say(3, 'new')
  assert.deepEqual(logs.tail({ ...LOG, lines: 10 }), written)
  await rotate()
  assert.deepEqual(logs.tail({ ...LOG, lines: 10 }), written)
  assert.deepEqual(listParts(folder, LOG), [])
})

test('tells the last lines of the worker that died, not those of its successor', (t) => {
  const { logs, fd, say } = setUp(t)
  say(2, 'first worker')
  writeSync(fd, 'its last word')
  logs.ended(1)
  logs.open({ worker: 2, slot: 1 }).close()
  say(3, 'second worker')
  assert.deepEqual(logs.tail({ ...LOG, lines: 50, worker: 1 }), ['0 first worker', '1 first worker', 'its last word'])
  assert.deepEqual(logs.tail({ ...LOG, lines: 50, worker: 2 }), ['0 second worker', '1 second worker',
    '2 second worker'])
  assert.deepEqual(logs.tail({ ...LOG, lines: 1 }), ['2 second worker'])
  assert.deepEqual(logs.tail({ slot: 1, stream: 'stderr', lines: 5, worker: 1 }), [])
  assert.deepEqual(logs.tail({ slot: 7, stream: 'stderr', lines: 5 }), [])
})

test('the last words of a candidate that failed are not those of the worker that served on', (t) => {
  const { logs, say } = setUp(t)
  say(1, 'serves')
  logs.open({ worker: 2, slot: 1 }).close()
  say(1, 'candidate')
  logs.ended(2)
  say(1, 'serves on')
  logs.ended(1)
  assert.deepEqual(logs.tail({ ...LOG, lines: 9, worker: 1 }), ['0 serves on'])
  assert.deepEqual(logs.tail({ ...LOG, lines: 9, worker: 2 }), ['0 serves', '0 candidate'].slice(1))
})

test('an end of line is not put into the middle of what an old worker writes beside the new one', (t) => {
  const { logs, fd } = setUp(t)
  writeSync(fd, 'half ')
  logs.open({ worker: 2, slot: 1 }).close()
  writeSync(fd, 'and half\n')
  assert.deepEqual(logs.tail({ ...LOG, lines: 5 }), ['half and half'])
})

test('nor into what a worker is writing that has outlived its master, however often the next one looks', async (t) => {
  const { folder, logs } = setUp(t)
  logs.ended(1)
  const script = 'const line = "x".repeat(78) + "\\n"; for (;;) require("node:fs").writeSync(1, line)'
  const orphan = spawn(process.execPath, ['-e', script], {
    stdio: ['ignore', openSync(liveFile(folder, LOG), 'a'), 'ignore']
  })
  t.after(() => orphan.kill())
  await until(() => statSync(liveFile(folder, LOG)).size > 0, 'its first line')
  for (let worker = 2; worker < 1500; worker++) {
    logs.open({ worker, slot: 1 }).close()
    logs.ended(worker)
  }
  orphan.kill()
  await once(orphan, 'exit')
  assert.equal(readFileSync(liveFile(folder, LOG)).indexOf('\n\n'), -1)
})

test('follows a log over the borders of its files, and says what was removed before it was read', async (t) => {
  const { logs, say, rotate } = setUp(t)
  const cursor = logs.cursor(1, 'stdout', 0)
  const written = say(2000, 'c'.repeat(60))
  await rotate({ maxFiles: 100 })
  written.push(...say(3, 'after'))
  const read = []
  while (cursor.lag() > 0) {
    const { lines, lost } = await cursor.read(10_000)
    assert.equal(lost, 0)
    read.push(...lines)
  }
  assert.deepEqual(read, written)

  const late = logs.cursor(1, 'stdout', 0)
  await rotate({ maxFiles: 2 })
  say(2000, 'd'.repeat(60))
  await rotate({ maxFiles: 2 })
  const { lines, lost } = await late.read(MAX_BYTES)
  assert.ok(lost > 0 && lines.every((line) => /^\d+ [cd]+$/.test(line)))
  const [skipping] = [logs.cursor(1, 'stdout', 0)]
  const skipped = skipping.skipTo(1000)
  const rest = await skipping.read(2000)
  assert.ok(skipped > 0)
  assert.ok(rest.lines.length > 10 && rest.lines.every((line) => /^\d+ d{60}$/.test(line)),
    'no half line after what was left out')
})

test('mirrors whole lines on a terminal, with the slot in front and nothing that moves the cursor', async (t) => {
  const terminal = createScreen({ isTTY: true })
  const { logs, fd } = setUp(t, { mirror: 'auto', streams: { stdout: terminal, stderr: terminal } })
  logs.start()
  writeSync(fd, 'half ')
  writeSync(fd, '\u001b[2J\u001b]0;title\u0007\u001b[31mred\u001b[0m\rover\nand \u009b1mmore\n')
  await terminal.until((text) => text.includes('more'))
  writeSync(fd, 'no end')
  await logs.close()
  const lines = terminal.text().split('\n')
  assert.equal(lines.length, 4)
  assert.deepEqual(lines.slice(0, 3).map((line) => line.replace(/\u001b\[3\dm|\u001b\[39m/g, '')), ['1 │ half red over',
    '1 │ and more', '1 │ no end'])
})

test('elsewhere it mirrors nothing unless asked to, and then the lines as they are', async (t) => {
  for (const [mirror, expected] of [['auto', ''], ['off', ''], ['on', '{"level":30}\n']] as const) {
    const pipe = createScreen({ isTTY: false })
    const { logs, fd } = setUp(t, { mirror, streams: { stdout: pipe, stderr: pipe } })
    logs.start()
    writeSync(fd, '{"level":30}\n')
    await logs.close()
    assert.equal(pipe.text(), expected)
  }
})

test('where several apps have the same output each line begins with the name of its app', async (t) => {
  for (const isTTY of [true, false]) {
    const screen = createScreen({ isTTY })
    const { logs, fd } = setUp(t, { mirror: 'on', streams: { stdout: screen, stderr: screen, prefix: 'shop | ' } })
    logs.start()
    writeSync(fd, 'one\ntwo\n')
    await logs.close()
    assert.match(stripVTControlCharacters(screen.text()),
      isTTY ? /^shop \| 1 │ one\nshop \| 1 │ two\n$/ : /^shop \| one\nshop \| two\n$/)
  }
})

test('the next master mirrors on from where the one before has handed over', async (t) => {
  const pipe = createScreen({ isTTY: false })
  const options = { mirror: 'on', streams: { stdout: pipe, stderr: pipe } } as const
  const before = setUp(t, options)
  before.logs.start()
  const written = before.say(3, 'before')
  await before.logs.close({ handsOver: true })
  written.push(...before.say(3, 'between'))
  const next = createLogs({ folder: before.folder, options: { maxBytes: MAX_BYTES, maxFiles: 5, mirror: 'on' },
    streams: options.streams })
  next.start()
  await next.close()
  assert.deepEqual(pipe.text().split('\n').slice(0, -1), written)
})

test('a master hands over no line that has not left it, and leaves what a slow reader has not taken to the next one', async (t) => {
  const screens = [createScreen({ isTTY: false, takesMs: 20 }), createScreen({ isTTY: false })]
  const { folder, logs, say } = setUp(t, { mirror: 'on', streams: { stdout: screens[0], stderr: screens[0] } })
  logs.start()
  const written = say(4000, 'm'.repeat(60))
  await screens[0].until((text) => text.length > 0)
  await logs.close({ handsOver: true })
  const shown = screens[0].text()
  assert.ok(shown.endsWith('\n') && shown.split('\n').length < written.length, 'it ends in the middle')
  const next = createLogs({ folder, options: { maxBytes: MAX_BYTES, maxFiles: 5, mirror: 'on' },
    streams: { stdout: screens[1], stderr: screens[1] } })
  next.start()
  await next.close()
  assert.equal(screens[0].text(), shown, 'nothing comes late')
  assert.deepEqual(`${shown}${screens[1].text()}`.split('\n').slice(0, -1), written)
})

test('a reader of the mirror that has stopped reading does not keep the master from ending', async (t) => {
  const stuck = new Writable({ highWaterMark: 1, write () {} })
  const { logs, say } = setUp(t, { mirror: 'on', streams: { stdout: stuck, stderr: stuck } })
  logs.start()
  say(10, 'nobody reads')
  await logs.close()
})

test('without holes in files it copies and empties', async (t) => {
  const { folder, logs, say } = setUp(t)
  const written = say(3000, 'e'.repeat(60))
  await once(startArchiver({ folder, maxBytes: MAX_BYTES, maxFiles: 5 }, WITHOUT_HOLES), 'close')
  assert.equal(statSync(liveFile(folder, LOG)).size, 0)
  assert.deepEqual(readFileSync(path.join(folder, 'slot-1.stdout.previous.log'), 'utf8').split('\n').slice(0, -1),
    written)
  say(2, 'after')
  assert.deepEqual(logs.tail({ ...LOG, lines: 5 }), ['0 after', '1 after'])
})

test('does not write through a link that somebody has put there', (t) => {
  const { folder, logs } = setUp(t)
  const target = path.join(tempFolder(), 'target')
  writeFileSync(target, 'not to be touched')
  symlinkSync(target, liveFile(folder, { slot: 5, stream: 'stderr' }))
  assert.throws(() => logs.open({ worker: 5, slot: 5 }), { code: 'ELOOP' })
  assert.equal(readFileSync(target, 'utf8'), 'not to be touched')
})

test('a slow reader of one app holds up no other app; of an app one reads at a time, and of all a few', async (t) => {
  const slow = Array.from({ length: 4 },
    () => ({ logs: setUp(t).logs, disk: Promise.withResolvers() as PromiseWithResolvers<void> }))
  const quick = setUp(t).logs
  const begun: number[] = []
  const read = (index: number) =>
    slow[index].logs.inTurn(async () => {
      begun.push(index)
      await slow[index].disk.promise
    })
  const reading = [read(0), read(1), read(2), read(0)]
  assert.equal(await quick.inTurn(async () => 'at once'), 'at once')
  assert.deepEqual(begun, [0, 1, 2], 'the second reader of the first app waits')
  reading.push(read(3))
  const last = quick.inTurn(async () => {
    begun.push(4)
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(begun, [0, 1, 2, 3])
  for (const { disk } of slow) disk.resolve()
  await Promise.all([...reading, last])
  assert.deepEqual(begun.toSorted(), [0, 0, 1, 2, 3, 4])
})

/** The logs of a slot with one worker, which this process plays. */
function setUp (t: TestContext,
  { mirror = 'off', maxBytes = MAX_BYTES, maxFiles = 5, streams = { stdout: process.stdout, stderr: process.stderr },
    onError = (reason) => assert.fail(reason) }: { mirror?: 'auto' | 'on' | 'off', maxBytes?: number, maxFiles?: number,
      streams?: object, onError?: (reason: string) => void } = {})
{
  const folder = tempFolder()
  const options = { maxBytes, maxFiles, mirror }
  const logs = createLogs({ folder, options, streams: streams as Streams, onError })
  logs.open({ worker: 1, slot: 1 }).close()
  const fd = openSync(liveFile(folder, LOG), 'a')
  t.after(() => closeSync(fd))

  return {
    folder,
    logs,
    fd,

    say (count: number, text: string): string[] {
      const lines = Array.from({ length: count }, (_, index) => `${index} ${text}`)
      for (const line of lines) writeSync(fd, `${line}\n`)
      return lines
    },

    /** Has what is too large moved out, as a master does that begins. */
    async rotate ({ maxFiles = 5 }: { maxFiles?: number } = {}) {
      const [code] = await once(startArchiver({ folder, maxBytes, maxFiles }), 'close')
      assert.equal(code, 0)
    },

    /** Every line of all files. */
    all () {
      const parts = listParts(folder, LOG)
      const live = readFileSync(liveFile(folder, LOG)).subarray(-(endOf(folder, LOG) - (parts.at(-1)?.to ?? 0)))
      return [...parts.map(({ file }) => readFileSync(file, 'utf8')), live.toString()].join('').split('\n').slice(0, -1)
    }
  }
}

/** `flags`: of Node */
function startArchiver (order: Order, flags: string[] = []) {
  return spawn(process.execPath, [...flags, ARCHIVER, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** A stream that keeps what is written. `takesMs`: how long each write takes. */
function createScreen ({ isTTY, takesMs = 0 }: { isTTY: boolean, takesMs?: number }) {
  let text = ''
  const screen = new Writable({ async write (chunk, _encoding, done) {
    if (takesMs > 0) await wait(takesMs)
    text += chunk
    done()
    screen.emit('shown')
  } })
  return Object.assign(screen, { isTTY, text: () => text, async until (isSo: (text: string) => boolean) {
    while (!isSo(text)) await once(screen, 'shown')
  } })
}
