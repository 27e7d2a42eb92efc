import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, linkSync, readdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { constants } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { bindSocket, bindTcp, describeBindError } from '../../../server/cluster/bind-socket.ts'
import { createSockets } from '../../../server/cluster/sockets.ts'
import { socketKey } from '../../../workers/protocol.ts'
import { fakeHandle } from '../../support/socket-handle.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import { fakeKeeper } from '../../support/fake-keeper.ts'
import { listening } from '../../support/listening.ts'
import type { SocketHandle } from '../../../workers/node-internals.d.ts'
import type { Steering } from '../../../server/cluster/steering.ts'

const query = (fields: object = {}) => ({ address: '127.0.0.1', port: 80, addressType: 4, fd: undefined, flags: 0,
  index: 0, ...fields })

function setUp ({ errno = (undefined as number | undefined), wait = false } = {}) {
  const handles: ReturnType<typeof fakeHandle>[] = []
  const errors: Parameters<Parameters<typeof createSockets>[0]['onBindError']>[0][] = []
  const sockets = createSockets({ bind () {
    if (errno !== undefined) return { errno }
    const handle = fakeHandle()
    handles.push(handle)
    return { handle }
  }, unusedGraceMs: 30_000, onBindError (error) {
    errors.push(error)
    return wait
  } })
  return { sockets, handles, errors }
}

test('every worker that asks for an address gets the same handle, and the data of the first', () => {
  const { sockets, handles } = setUp()
  const first = sockets.request(1, { query: query(), data: 'ticket keys' })
  const second = sockets.request(2, { query: query(), data: 'other keys' })
  assert.equal(handles.length, 1)
  assert.equal(second.handle, first.handle)
  assert.equal(second.data, 'ticket keys')
})

test('another address, and a second server of one worker on the same one, are other sockets', () => {
  const { sockets, handles } = setUp()
  for (const each of [query(), query({ index: 1 }), query({ port: 81 }), query({ address: '::1', addressType: 6 })])
    sockets.request(1, { query: each })
  assert.equal(handles.length, 4)
})

test('no descriptor is opened because a worker names it', () => {
  const { sockets, handles } = setUp()
  for (const fields of [{ port: null, fd: 0 }, { port: null, fd: 16 }, { fd: 3 }, { fd: 2 ** 40 }, { port: null, fd: 16,
    addressType: 'udp4' }]) assert.equal(sockets.request(1, { query: query(fields) }).isWorkersOwn, true)
  assert.equal(handles.length, 0)
  for (const fd of [1, 16, 2 ** 31]) assert.notEqual(bindTcp(query({ address: null, port: 0, fd })).handle?.fd, fd)
})

test('a socket outlives every worker that dies, however many', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { sockets, handles } = setUp()
  for (const worker of [1, 2]) sockets.request(worker, { query: query() })
  sockets.forget(1)
  sockets.forget(2)
  t.mock.timers.tick(1_000_000)
  assert.equal(handles[0].isClosed, false)
})

test('a socket that the app itself has closed on every worker is closed after a grace period', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { sockets, handles } = setUp()
  const { key } = sockets.request(1, { query: query() })
  sockets.request(2, { query: query() })
  sockets.establish(1)
  sockets.release(1, key)
  t.mock.timers.tick(1_000_000)
  assert.equal(handles[0].isClosed, false, 'the other worker still has it')
  sockets.release(2, key)
  t.mock.timers.tick(29_999)
  assert.equal(handles[0].isClosed, false)
  t.mock.timers.tick(1)
  assert.equal(handles[0].isClosed, true)
  sockets.request(3, { query: query() })
  assert.equal(handles.length, 2, 'it is bound anew for who asks later')
})

test('a worker that asks within the grace period keeps the socket open', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { sockets, handles } = setUp()
  const { key } = sockets.request(1, { query: query() })
  sockets.establish(1)
  sockets.release(1, key)
  t.mock.timers.tick(20_000)
  sockets.request(2, { query: query() })
  t.mock.timers.tick(1_000_000)
  assert.equal(handles[0].isClosed, false)
})

test('whoever looks for a free port before it is ready leaves it free, for itself and for every other worker', () => {
  const { sockets, handles } = setUp()
  const { key } = sockets.request(1, { query: query({ address: null }) })
  sockets.request(2, { query: query({ address: null }) })
  sockets.release(1, key)
  assert.equal(handles[0].isClosed, false, 'the other one looks too')
  assert.equal(sockets.isContended(1, query()), true, 'and has what covers the next address')
  sockets.release(2, key)
  assert.equal(handles[0].isClosed, true)
  assert.equal(sockets.isContended(1, query()), false)
  assert.ok(sockets.request(1, { query: query() }).handle)
  assert.equal(handles.length, 2)
})

test('what a worker that died while it looked has left behind is in nobody\'s way', () => {
  const { sockets, handles } = setUp()
  sockets.request(1, { query: query({ address: null }) })
  sockets.forget(1)
  assert.equal(sockets.isContended(2, query()), false)
  assert.ok(sockets.request(2, { query: query() }).handle)
  assert.equal(handles[0].isClosed, true)
})

test('an address that the workers of now cover looks free to the next ones, which get none that listens', () => {
  const { sockets, handles } = setUp()
  const { key } = sockets.request(1, { query: query({ address: '0.0.0.0' }) })
  sockets.establish(1)
  assert.equal(sockets.isContended(2, query()), false)
  for (const address of ['127.0.0.1', '::', null])
    assert.equal(sockets.request(2, { query: query({ address }) }).isPlaceholder, true, String(address))
  assert.ok(sockets.request(2, { query: query({ address: '::1' }) }).handle, 'that one is not covered')
  const shared = sockets.request(2, { query: query({ address: '0.0.0.0' }) })
  assert.deepEqual([shared.key, shared.handle], [key, handles[0]], 'the very same address is shared')
  assert.ok(sockets.request(1, { query: query() }).handle, 'the kernel answers the one that has it itself')
})

test('a socket of IPv6 alone covers no address of IPv4, also where a master before has bound it', () => {
  const { handle } = bindSocket(query({ address: '::', port: 0, addressType: 'udp6', flags: 1 })) as {
    handle: SocketHandle
  }
  const keeper = fakeKeeper(
    new Map([[`app ${socketKey(query({ address: '::', addressType: 'udp6' }))}`, { handle, data: {} }]])
  )
  const sockets = createSockets({ keeper, onBindError: () => false, bind: () => ({ handle: fakeHandle() }) })
  sockets.request(1, { query: query({ address: '::', addressType: 6, flags: 1 }) })
  sockets.establish(1)
  for (const addressType of [4, 'udp4'])
    assert.ok(sockets.request(2, { query: query({ address: '0.0.0.0', addressType }) }).handle)
  for (const addressType of [6, 'udp6'])
    assert.ok(sockets.request(2, { query: query({ address: '::1', addressType }) }).isPlaceholder, 'but those of IPv6')
  sockets.close()
})

test('what nobody has any more is closed at once where that is wanted', () => {
  const { sockets, handles } = setUp()
  sockets.request(1, { query: query() })
  sockets.request(2, { query: query({ port: 81 }) })
  for (const worker of [1, 2]) sockets.establish(worker)
  sockets.forget(1)
  sockets.closeUnused()
  assert.deepEqual(handles.map(({ isClosed }) => isClosed), [true, false])
})

test('once closed it closes every socket and gives out no more', () => {
  const { sockets, handles } = setUp()
  sockets.request(1, { query: query() })
  sockets.close()
  assert.equal(handles[0].isClosed, true)
  assert.equal(sockets.request(2, { query: query() }).errno, -constants.errno.ECANCELED)
})

test('a bind that fails is told with the errno, and nothing is kept', () => {
  const { sockets, errors } = setUp({ errno: -constants.errno.EADDRINUSE, wait: true })
  assert.deepEqual(sockets.request(1, { query: query() }), { key: '127.0.0.1:80:4:undefined:0',
    errno: -constants.errno.EADDRINUSE, awaitMaster: true })
  assert.equal(errors.length, 1)
  assert.equal(describeBindError(query(), -constants.errno.EADDRINUSE).message, '127.0.0.1:80 is in use (EADDRINUSE)')
  assert.equal(describeBindError(query({ address: null }), -constants.errno.EACCES).message,
    'port 80 is not permitted (EACCES)')
})

test('a real bind to a port in use says so at once, though the kernel would only at listen()', async (t) => {
  const server = net.createServer()
  const port = await listening(t, server)
  assert.deepEqual(bindSocket(query({ port })), { errno: -constants.errno.EADDRINUSE })
  server.close()
  await once(server, 'close')
  const { handle } = bindSocket(query({ port }))
  assert.ok(handle)
  handle.close()
})

const unixQuery = (file: string) => query({ address: file, port: -1, addressType: -1 })

test('a Unix socket has its own name and a hidden one, and both go with the socket', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const folder = tempFolder()
  const file = path.join(folder, 'app.sock')
  const sockets = createSockets({ onBindError: () => false })
  const { handle } = sockets.request(1, { query: unixQuery(file) })
  assert.ok(handle)
  assert.deepEqual(readdirSync(folder).sort(), ['.app.sock.clusterdeck', 'app.sock'])
  sockets.close()
  assert.deepEqual(readdirSync(folder), [])
})

test('a Unix socket that a killed server has left behind is bound anew; one that is served, and what is no socket, are in use', async () => {
  const folder = tempFolder()
  const [served, left, file] = ['served', 'left', 'file'].map((name) => path.join(folder, name))
  const server = net.createServer().listen(served)
  await once(server, 'listening')
  assert.deepEqual(bindSocket(unixQuery(served)), { errno: -constants.errno.EADDRINUSE })

  linkSync(served, left)
  server.close()
  await once(server, 'close')
  const { handle } = bindSocket(unixQuery(left))
  const next = net.createServer((socket) => socket.end('new')).listen(handle)
  const [answer] = await once(net.connect(left).setEncoding('utf8'), 'data')
  assert.equal(answer, 'new')
  next.close()

  writeFileSync(file, 'kept')
  assert.deepEqual(bindSocket(unixQuery(file)), { errno: -constants.errno.EADDRINUSE })
  assert.equal(statSync(file).size, 4)
})

test('what another master leaves to a keeper is there for the next one, and dropped with the address that nobody asks for', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const [used, unused, ofAdmin] = [fakeHandle(), fakeHandle(), fakeHandle()]
  const keyOf = (port: number) => `app ${socketKey(query({ port }))}`
  const keeper = fakeKeeper(
    new Map([[keyOf(80), { handle: used, data: { data: 'ticket keys' } }], [keyOf(81), { handle: unused, data: {} }], [
      'admin 127.0.0.1:9777',
      { handle: ofAdmin, data: undefined }
    ]])
  )
  const sockets = createSockets({ keeper, onBindError: () => false, bind: () => ({ handle: fakeHandle() }) })
  assert.deepEqual(sockets.request(1, { query: query(), data: 'other keys' }), { key: socketKey(query()), handle: used,
    data: 'ticket keys' })
  sockets.request(1, { query: query({ port: 82 }) })
  assert.deepEqual(keeper.told, [], 'it may only be looking whether the port is free')
  sockets.establish(1)
  assert.deepEqual(keeper.told.splice(0), [`hold ${keyOf(82)}`])

  t.mock.timers.tick(1_000_000)
  assert.equal(unused.isClosed, false, 'its workers may still be starting')
  sockets.expireUnused()
  t.mock.timers.tick(5_000)
  assert.deepEqual([used.isClosed, unused.isClosed, keeper.told], [false, true, [`drop ${keyOf(81)}`]])
  sockets.close()
  assert.equal(ofAdmin.isClosed, false, 'it is not the app\'s')
})

test('a socket that has come without ticket keys, as the service manager keeps it, gets those of the first worker', () => {
  const keeper = fakeKeeper(new Map([[`app ${socketKey(query())}`, { handle: fakeHandle(), data: {} }]]))
  const sockets = createSockets({ keeper, onBindError: () => false })
  for (const worker of [1, 2])
    assert.equal(sockets.request(worker, { query: query(), data: `keys of ${worker}` }).data, 'keys of 1')
})

test('a socket beside that of a program is for whoever asks for its address first, and is freed by no worker that only tests whether it is free', () => {
  const handle = fakeHandle()
  const keeper = fakeKeeper(
    new Map([['given 0', { handle, data: { given: { host: '::', port: 80, isCertain: true } } }]])
  )
  const sockets = createSockets({ keeper, onBindError: () => false,
    bind: () => ({ errno: -constants.errno.EADDRINUSE }) })
  assert.deepEqual(sockets.unclaimed(), [{ host: '::', port: 80, isCertain: true }])
  const asked = query({ address: null })
  const { key, handle: first, keepsFlags } = sockets.request(1, { query: asked })
  assert.deepEqual([first, keepsFlags], [handle, undefined])
  assert.deepEqual(keeper.told, ['drop given 0', `hold app ${key}`])
  sockets.release(1, key)
  assert.equal(sockets.request(1, { query: asked }).handle, handle)
  const second = sockets.request(2, { query: asked })
  assert.deepEqual([second.handle, second.keepsFlags, sockets.unclaimed()], [handle, true, []])
})

for (const succeeds of [true, false]) {
  test(`the path of a program whose place is taken stays whoever removes it, and ${succeeds ? 'is of the app from then on' : 'is that of the program again where this fails, also if the last worker removes it'}`, async (t) => {
    const folder = tempFolder()
    const file = path.join(folder, 'app.sock')
    const program = net.createServer().listen(file)
    t.after(() => program.close())
    await once(program, 'listening')
    const { ino } = statSync(file)
    const handle = fakeHandle()
    const given = { path: file, isCopy: true, isCertain: true }
    const sockets = createSockets({ keeper: fakeKeeper(new Map([['given 0', { handle, data: { given } }]])),
      onBindError: () => false })
    const ask = () => sockets.request(1, { query: unixQuery(file) })
    unlinkSync(file)
    const { handle: first, keepsFlags } = ask()
    assert.deepEqual([first, statSync(file).ino, keepsFlags], [handle, ino, true])
    if (succeeds) {
      sockets.closeUnclaimed()
      assert.equal(ask().keepsFlags, undefined)
    }
    sockets.close()
    if (!succeeds && existsSync(file)) unlinkSync(file)
    sockets.finish()
    assert.deepEqual(readdirSync(folder), succeeds ? [] : ['app.sock'])
    if (!succeeds) assert.equal(statSync(file).ino, ino)
  })
}

test('a worker with a socket of its own is to be told of it only once the keeper cannot lose that, as the next master would not know it', async () => {
  const underWay: { key: string, arrive: () => void }[] = []
  const keeper = { held: new Map(), hold: (key: string) =>
    new Promise((resolve) => {
      underWay.push({ key, arrive: resolve })
    }) as Promise<void>, drop () {}, send () {} }
  const handles = [fakeHandle(), fakeHandle()]
  const own = fake<Steering>({
    bind: () => ({ handle: handles[0], handles: () => handles.slice(0, size),
      member: (number: number) => ({ handle: handles[(size = number) - 1] }), listen: () => 0 }),
    numberFor: (_key: string, { worker }: { worker: number }) => worker,
    look () {}
  })
  let size = 1
  const sockets = createSockets({ keeper, own, onBindError: () => false })
  assert.equal(sockets.request(1, { query: query() }).keeping, undefined,
    'it may only be looking whether the port is free')
  const established = sockets.establish(1)
  underWay[0].arrive()
  await established
  assert.equal(sockets.establish(1), undefined, 'it is kept already')

  const { key, handle, keeping } = sockets.request(2, { query: query() })
  assert.equal(handle, handles[1])
  assert.deepEqual(underWay.map((each) => each.key), [`slot 1 ${key}`, `slot 2 ${key}`])
  let isTold = false
  const told = keeping?.then(() => {
    isTold = true
  })
  await new Promise(setImmediate)
  assert.equal(isTold, false)
  underWay[1].arrive()
  await told
  assert.equal(isTold, true)
})

test('the keeper has the sockets of an address by the order of the kernel: one that takes the place of a dead one is there, and the last place is dropped', () => {
  const handles = [fakeHandle(), fakeHandle(), fakeHandle()]
  const key = socketKey(query())
  // An upgrade that failed has left no second one.
  const keeper = fakeKeeper(
    new Map([1, 3, 4].map((slot, index) => [`slot ${slot} ${key}`, { handle: handles[index] }]))
  )
  const { told } = keeper
  const own = fake<Steering>({ adopt: (_key, adopted) => ({ handles: () => adopted, close () {} }), look () {},
    forget () {} })
  const sockets = createSockets({ keeper, own, onBindError: () => false })
  sockets.look()
  assert.deepEqual(told.splice(0), [`hold slot 2 ${key}`, `hold slot 3 ${key}`, `drop slot 4 ${key}`])
  assert.deepEqual([...keeper.kept.values()].map(({ handle }) => handle), handles.slice(1))
  sockets.look()
  assert.deepEqual(told, [])
  sockets.close()
  assert.deepEqual(told, [1, 2, 3].map((slot) => `drop slot ${slot} ${key}`))
})
