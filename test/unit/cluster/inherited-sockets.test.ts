import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createInherited } from '../../../server/cluster/inherited-sockets.ts'
import { createSockets } from '../../../server/cluster/sockets.ts'
import { takeInheritedSockets, type InheritedSocket } from '../../../server/systemd/activated-sockets.ts'
import { fakeHandle } from '../../support/socket-handle.ts'
import { tempFolder } from '../../support/folder.ts'
import type { HeldSocket, KeptData } from '../../../server/keeper/link.ts'
import type { SocketQuery } from '../../../workers/protocol.ts'

const query = (fields: Partial<SocketQuery>): SocketQuery => ({ address: null, port: null, addressType: 4,
  fd: undefined, flags: 0, index: 0, ...fields })

/** `sockets`: the first one is descriptor 3 */
function holding (...sockets: Partial<InheritedSocket>[]) {
  const held: Map<string, { handle: ReturnType<typeof fakeHandle>, data: KeptData | InheritedSocket }> = new Map()
  for (const [index, data] of sockets.entries())
    held.set(`inherited ${index + 3}`, { handle: fakeHandle(), data: { fd: index + 3, name: 'web', ...data } })
  return held
}

const folder = tempFolder()
mkdirSync(path.join(folder, 'run'))
symlinkSync('run', path.join(folder, 'var-run'))
const SOCKETS = [{ host: '::', port: 3000 }, { host: '0.0.0.0', port: 3001 }, { host: '127.0.0.1', port: 3002 }, {
  path: path.join(folder, 'run', 'app.sock')
}, { host: '0.0.0.0', port: 3004 }, { host: '::', port: 3004 }, { host: '127.0.0.1', port: 3005, name: 'admin' }, {
  path: null
}]

for (const [what, asked, fd] of [['any address finds [::]', { port: 3000 }, 3], ['any address finds 0.0.0.0', {
  port: 3001
}, 4], ['0.0.0.0 finds [::], which takes IPv4 as well', { address: '0.0.0.0', port: 3000 }, 3], [
  'an address of its own finds that address',
  { address: '127.0.0.1', port: 3002 },
  5
], ['any address does not find a socket of one address', { port: 3002 }, null], [
  'one address does not find a socket of any: it would be reached from elsewhere',
  { address: '127.0.0.1', port: 3000 },
  null
], ['of two on one port the very same address counts more', { address: '::', port: 3004 }, 8], ['and the other one too',
  { address: '0.0.0.0', port: 3004 }, 7], ['another port finds none', { port: 4000 }, null], ['port 0 finds none', {
  port: 0
}, null], ['a path', { address: path.join(folder, 'run', 'app.sock'), port: -1 }, 6], ['a path through a link', {
  address: path.join(folder, 'var-run', 'app.sock'),
  port: -1
}, 6], ['another path', { address: path.join(folder, 'run', 'other.sock'), port: -1 }, null], [
  'the second server of a worker on one address finds none',
  { port: 3000, index: 1 },
  null
], ['a descriptor by its number', { fd: 6 }, 6], ['a descriptor that was not inherited', { fd: 12 }, null], [
  'the admin port\'s is not for the app',
  { address: '127.0.0.1', port: 3005 },
  null
]] as [string, Partial<SocketQuery>, number | null][]) {
  test(`an inherited socket is matched: ${what}`, () => {
    assert.equal(createInherited({ held: holding(...SOCKETS) }).match(query(asked))?.inherited ?? null, fd)
  })
}

function setUp (held: Map<string, HeldSocket>) {
  const told: unknown[] = []
  const unused: string[][] = []
  const keeper = { held, hold: (key: string, _: unknown, data: unknown) => {
    told.push(['hold', key, data])
  }, drop: (key: string) => told.push(['drop', key]), send () {} }
  return { told, unused,
    sockets: createSockets({ onBindError: () => false, onUnused: (names) => unused.push(names), keeper,
      unusedGraceMs: 1000 }) }
}

test('one that the app has closed everywhere stays, and is found again', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const held = holding({ host: '::', port: 3000 })
  const { sockets, told } = setUp(held)
  const { key, handle } = sockets.request(1, { query: query({ port: 3000 }), data: 'ticket keys' })
  sockets.release(1, key)
  t.mock.timers.tick(1_000_000)
  assert.equal(held.get('inherited 3')?.handle.isClosed, false)
  assert.equal(sockets.request(2, { query: query({ port: 3000 }) }).handle, handle)
  assert.deepEqual(told, [['hold', `app ${key}`, { data: 'ticket keys', inherited: 3 }]])
})

test('the next master knows which of them is in use, with the data of the first server', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const held = holding({ host: '::', port: 3000 }, { host: '::', port: 3001, name: 'unknown' })
  const copy = fakeHandle()
  held.set('app null:3000:4:undefined:0', { handle: copy, data: { data: 'ticket keys', inherited: 3 } })
  const { sockets, unused } = setUp(held)
  sockets.expireUnused()
  assert.deepEqual(unused, [['[::]:3001']])
  t.mock.timers.tick(1_000_000)
  assert.equal(copy.isClosed, false)
  assert.deepEqual(sockets.request(1, { query: query({ port: 3000 }) }), { key: 'null:3000:4:undefined:0', handle: copy,
    data: 'ticket keys' })
  sockets.close()
  assert.deepEqual(
    [copy, ...['inherited 3', 'inherited 4'].map((key) => held.get(key)?.handle)].map((handle) => handle?.isClosed),
    [true, true, true]
  )
})

for (const [what, env, lines] of [['another process\'s', { LISTEN_PID: '1', LISTEN_FDS: '1' }, []], ['nobody\'s', {
  LISTEN_FDS: '1'
}, []], ['a number that is none', { LISTEN_PID: '7', LISTEN_FDS: 'many' }, [
  /^LISTEN_FDS: expected a number of descriptors, received "many"$/
]], ['none', { LISTEN_PID: '7', LISTEN_FDS: '0' }, []]] as [string, Record<string, string>, RegExp[]][]) {
  test(`takes nothing where the variables are ${what}, and leaves none of them behind`, () => {
    const said: string[] = []
    const environment = { ...env, LISTEN_FDNAMES: 'web', OTHER: 'stays' }
    assert.equal(takeInheritedSockets({ env: environment, pid: 7, say: (line) => said.push(line) }).size, 0)
    assert.deepEqual(environment, { OTHER: 'stays' })
    assert.equal(said.length, lines.length)
    for (const [index, line] of lines.entries()) assert.match(said[index], line)
  })
}
