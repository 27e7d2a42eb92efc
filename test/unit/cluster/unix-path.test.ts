import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync,
  symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { constants } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { createSockets } from '../../../server/cluster/sockets.ts'
import { bindUnixPath } from '../../../server/cluster/unix-path.ts'
import { socketKey } from '../../../workers/protocol.ts'
import { tempFolder } from '../../support/folder.ts'
import { fakeHandle } from '../../support/socket-handle.ts'
import { fakeKeeper } from '../../support/fake-keeper.ts'
import type { HeldSocket } from '../../../server/keeper/link.ts'

const { EADDRINUSE, EACCES } = constants.errno
const HIDDEN = '.app.sock.clusterdeck'
const PATIENCE_MS = 20_000

const query = (file: string, fields: object = {}) => ({ address: file, port: -1, addressType: -1, fd: undefined,
  flags: 0, index: 0, mode: 0o700, ...fields })

/** `held`: by a keeper */
function setUp (held: Map<string, HeldSocket> = new Map()) {
  const folder = tempFolder()
  const file = path.join(folder, 'app.sock')
  const keeper = fakeKeeper(held)
  return { folder, file, sockets: createSockets({ keeper, onBindError: () => false }), kept: keeper.kept }
}

/** Without a turn of this process: somebody else does it. */
function waitUntil (isSo: () => boolean, what: string) {
  const end = Date.now() + PATIENCE_MS
  while (!isSo()) {
    assert.ok(Date.now() < end, what)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  }
}

test('a path that is removed comes back at once, also while the master is busy, as often as it is removed', (t) => {
  const { file, sockets } = setUp()
  t.after(() => sockets.close())
  assert.ok(sockets.request(1, { query: query(file) }).handle)
  const { ino } = statSync(file)
  for (let n = 0; n < 3; n++) {
    unlinkSync(file)
    waitUntil(() => existsSync(file), 'the path to be there again')
    assert.equal(statSync(file).ino, ino)
  }
  renameSync(file, `${file}.old`)
  waitUntil(() => existsSync(file), 'the path to be there again')
})

test('a worker that asks for a path that is removed finds it there, and gets the same socket', (t) => {
  const { folder, file, sockets } = setUp()
  t.after(() => sockets.close())
  const { handle } = sockets.request(1, { query: query(file) })
  unlinkSync(path.join(folder, HIDDEN))
  assert.equal(sockets.request(2, { query: query(file) }).handle, handle)
  assert.deepEqual(readdirSync(folder).sort(), [HIDDEN, 'app.sock'], 'both names are there again')
  unlinkSync(file)
  assert.equal(sockets.request(3, { query: query(file) }).handle, handle)
  assert.ok(existsSync(file))
})

test('where both names are gone, or the folder is another one, the next one who asks gets another socket', (t) => {
  const { folder, file, sockets } = setUp()
  t.after(() => sockets.close())
  const first = sockets.request(1, { query: query(file) }).handle
  for (const name of [HIDDEN, 'app.sock']) unlinkSync(path.join(folder, name))
  const second = sockets.request(2, { query: query(file) }).handle
  assert.ok(second && second !== first)
  assert.ok(existsSync(file))

  const link = path.join(folder, 'current')
  for (const release of ['r1', 'r2']) mkdirSync(path.join(folder, release))
  symlinkSync('r1', link)
  const old = sockets.request(1, { query: query(path.join(link, 'app.sock')) }).handle
  unlinkSync(link)
  symlinkSync('r2', link)
  const next = sockets.request(2, { query: query(path.join(link, 'app.sock')) }).handle
  assert.ok(next && next !== old)
  assert.deepEqual(['r1', 'r2'].map((release) => readdirSync(path.join(folder, release)).length), [0, 2])
})

test('what somebody else has put in its place stays, while the socket is there and afterwards', async (t) => {
  const server = net.createServer()
  t.after(() => server.close())
  const others: Record<string, (place: string) => unknown> = {
    'a server': (place) => once(server.listen(place), 'listening'),
    'a file': (place) => writeFileSync(place, 'kept'),
    'a link': (place) => symlinkSync('/etc/passwd', place)
  }
  for (const [what, put] of Object.entries(others)) {
    const { folder, file, sockets } = setUp()
    const other = path.join(folder, 'other')
    await put(other)
    sockets.request(1, { query: query(file) })
    // In one step, as the path would come back in between.
    renameSync(other, file)
    const { ino } = lstatSync(file)
    assert.equal(sockets.request(2, { query: query(file) }).errno, -EADDRINUSE, what)
    assert.equal(lstatSync(file).ino, ino, what)
    sockets.close()
    assert.deepEqual([readdirSync(folder), lstatSync(file).ino], [['app.sock'], ino], what)
  }
})

test('a folder that is swapped for a link to another one has nothing removed there', () => {
  const { folder, sockets } = setUp()
  const [mine, theirs, link] = ['mine', 'theirs', 'link'].map((name) => path.join(folder, name))
  for (const each of [mine, theirs]) mkdirSync(each)
  symlinkSync(mine, link)
  sockets.request(1, { query: query(path.join(link, 'precious')) })
  assert.equal(readdirSync(mine).length, 2)
  writeFileSync(path.join(theirs, 'precious'), 'kept')
  unlinkSync(link)
  symlinkSync(theirs, link)
  sockets.close()
  assert.equal(readFileSync(path.join(theirs, 'precious'), 'utf8'), 'kept')
  assert.deepEqual(readdirSync(mine), [])
})

for (const [what, swap] of Object.entries({ 'a link to another file': symlinkSync, 'another file': linkSync })) {
  test(`what was just bound, and is ${what} a moment later, gets no permissions and no name`, () => {
    const folder = tempFolder()
    const precious = path.join(folder, 'precious')
    writeFileSync(precious, 'kept', { mode: 0o600 })
    const bound = bindUnixPath(path.join(folder, 'app.sock'), 0o777, (address) => {
      const handle = net._createServerHandle(address, -1, -1)
      rmSync(address)
      swap(precious, address)
      return handle
    })
    assert.equal(bound.errno, -EACCES)
    assert.deepEqual([statSync(precious).mode & 0o777, readFileSync(precious, 'utf8')], [0o600, 'kept'])
    assert.ok(!readdirSync(folder).some((name) => name.includes('app.sock')))
  })
}

test('the next master gives a path its name again, and binds one anew that nothing leads to any more', (t) => {
  const { file, sockets, kept } = setUp()
  sockets.request(1, { query: query(file) })
  sockets.establish(1)
  const key = socketKey(query(file))
  assert.deepEqual([...kept.keys()], [`app ${key}`])
  const { ino } = statSync(file)
  sockets.leave()
  assert.equal(statSync(file).ino, ino)

  const handle = fakeHandle()
  const { data } = kept.get(`app ${key}`)!
  unlinkSync(file)
  const next = setUp(new Map([[`app ${key}`, { handle, data }]])).sockets
  waitUntil(() => existsSync(file), 'the path to be there again')
  assert.equal(statSync(file).ino, ino)
  assert.equal(next.request(2, { query: query(file) }).handle, handle)
  next.close()
  assert.ok(!existsSync(file))

  writeFileSync(file, 'kept')
  const third = setUp(new Map([[`app ${key}`, { handle, data }]])).sockets
  t.after(() => third.close())
  assert.deepEqual(third.names(), [])
  third.close()
  assert.equal(readFileSync(file, 'utf8'), 'kept')
})

test('a second server of one worker on a path is refused, also before the first one listens', (t) => {
  const { file, sockets } = setUp()
  t.after(() => sockets.close())
  const { handle } = sockets.request(1, { query: query(file) })
  const { ino } = statSync(file)
  assert.equal(sockets.request(1, { query: query(file, { index: 1 }) }).errno, -EADDRINUSE)
  assert.equal(statSync(file).ino, ino)
  assert.ok(handle)
})

test('a path may be longer than an address has room for, as one that the app has named from its folder', (t) => {
  const { folder, sockets } = setUp()
  t.after(() => sockets.close())
  const deep = path.join(folder, 'x'.repeat(100), 'y'.repeat(100))
  mkdirSync(deep, { recursive: true })
  assert.ok(sockets.request(1, { query: query(path.join(deep, 'app.sock')) }).handle)
  assert.ok(lstatSync(path.join(deep, 'app.sock')).isSocket())
})
