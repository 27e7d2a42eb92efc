import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createInherited } from '../../../server/cluster/inherited-sockets.ts'
import { createSockets } from '../../../server/cluster/sockets.ts'
import { takeInheritedSockets, type InheritedSocket } from '../../../server/systemd/activated-sockets.ts'
import { fakeKeeper } from '../../support/fake-keeper.ts'
import { rows } from '../../support/rows.ts'
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

// What an app asks for, as address and port, path or descriptor, and which descriptor that finds.
const MATCHES = rows(`
any address finds [::]                                                         | *         3000 | 3
any address finds 0.0.0.0                                                      | *         3001 | 4
0.0.0.0 finds [::], which takes IPv4 as well                                   | 0.0.0.0   3000 | 3
an address of its own finds that address                                       | 127.0.0.1 3002 | 5
any address does not find a socket of one address                              | *         3002 | none
one address does not find a socket of any: it would be reached from elsewhere  | 127.0.0.1 3000 | none
of two on one port the very same address counts more                           | ::        3004 | 8
and the other one too                                                          | 0.0.0.0   3004 | 7
another port finds none                                                        | *         4000 | none
port 0 finds none                                                              | *         0    | none
a path                                                                         | run/app.sock      | 6
a path through a link                                                          | var-run/app.sock  | 6
another path                                                                   | run/other.sock    | none
the second server of a worker on one address finds none                        | *         3000 1  | none
a descriptor by its number                                                     | fd        6    | 6
a descriptor that was not inherited                                            | fd        12   | none
the admin port's is not for the app                                            | 127.0.0.1 3005 | none`)

for (const [what, asked, fd] of MATCHES) {
  test(`an inherited socket is matched: ${what}`, () => {
    const [place, number, index = 0] = asked.split(/ +/)
    const wanted = place === 'fd'
      ? { fd: Number(number) }
      : place.includes('/')
      ? { address: path.join(folder, place), port: -1 }
      : { address: place === '*' ? null : place, port: Number(number), index: Number(index) }
    const found = createInherited({ held: holding(...SOCKETS) }).match(query(wanted))
    assert.equal(String(found?.inherited ?? 'none'), fd)
  })
}

function setUp (held: Map<string, HeldSocket>) {
  const unused: string[][] = []
  const keeper = fakeKeeper(held)
  return { keeper, unused,
    sockets: createSockets({ onBindError: () => false, onUnused: (names) => unused.push(names), keeper,
      unusedGraceMs: 1000 }) }
}

test('one that the app has closed everywhere stays, and is found again', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const held = holding({ host: '::', port: 3000 })
  const { sockets, keeper } = setUp(held)
  const { key, handle } = sockets.request(1, { query: query({ port: 3000 }), data: 'ticket keys' })
  sockets.release(1, key)
  t.mock.timers.tick(1_000_000)
  assert.equal(held.get('inherited 3')?.handle.isClosed, false)
  assert.equal(sockets.request(2, { query: query({ port: 3000 }) }).handle, handle)
  assert.deepEqual([keeper.told, keeper.kept.get(`app ${key}`)?.data], [[`hold app ${key}`], { data: 'ticket keys',
    inherited: 3 }])
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

for (const [what, env, said] of [['another process\'s', { LISTEN_PID: '1', LISTEN_FDS: '1' }, []], ['nobody\'s', {
  LISTEN_FDS: '1'
}, []], ['none', { LISTEN_PID: '7', LISTEN_FDS: '0' }, []], ['a number that is none', { LISTEN_PID: '7',
  LISTEN_FDS: 'many' }, ['LISTEN_FDS: expected a number of descriptors, received "many"']]] as const)
{
  test(`takes nothing where the variables are ${what}, and leaves none of them behind`, () => {
    const lines: string[] = []
    const environment = { ...env, LISTEN_FDNAMES: 'web', OTHER: 'stays' }
    assert.equal(takeInheritedSockets({ env: environment, pid: 7, say: (line) => lines.push(line) }).size, 0)
    assert.deepEqual([environment, lines], [{ OTHER: 'stays' }, said])
  })
}
