import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { bindHint, rightsHint } from '../../../server/cluster/bind-hint.ts'
import { tempFolder } from '../../support/folder.ts'

const first = process.platform === 'linux'
  ? Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'))
  : 1024

test('a program that says its port is taken is told who has it, or that it has found its other copies', () => {
  const refused = { errno: -98, inWords: () => ':80 is in use: nginx has it' }
  for (const why of ['Timeout(\'Port 80 not free on 127.0.0.1.\')', 'Port 80 is in use on ::.',
    '[Errno 98] Address already in use', 'listen EADDRINUSE: address already in use :::80'])
  {
    assert.equal(bindHint(why, { refused, hasOthers: true }), ':80 is in use: nginx has it', why)
    assert.match(String(bindHint(why, { refused: null, hasOthers: true })),
      /other copies of it serve: it may have looked by itself/, why)
    assert.equal(bindHint(why, { refused: null, hasOthers: false }), null, why)
    assert.equal(bindHint(why, { refused: null, note: 'it may not be looked into', hasOthers: true }),
      'it may not be looked into', why)
  }
  assert.equal(bindHint('no module named shop', { refused, hasOthers: true }), null)
})

test('a program of which only one may run is told how, where another copy of it runs', () => {
  for (const why of ['Error: Another instance is already running (pid 7)', 'lock file data/app.lock exists',
    'SQLITE_BUSY: database is locked', 'could not acquire lock'])
  {
    assert.match(String(bindHint(why, { refused: null, hasOthers: true })),
      /--workers 1 and --rollout-order stop-first/, why)
    assert.equal(bindHint(why, { refused: null, hasOthers: false }), null, why)
  }
})

test('a program that may not have its port is told so, whatever it says itself', () => {
  assert.equal(bindHint('', { refused: { errno: -13, inWords: () => ':80 is not permitted' }, hasOthers: false }),
    ':80 is not permitted')
})

test(
  'a port that only some may bind is told with the ways to it, and a capability of the program with why it does not count',
  { skip: first < 2 && 'everybody may bind all ports here' },
  () => {
    const file = path.join(tempFolder(), 'server')
    writeFileSync(file, '')
    assert.match(rightsHint({ port: first - 1 }, file),
      new RegExp(
        `^: the master binds it, and may not bind ports below ${first}\\. .*CAP_NET_BIND_SERVICE in AmbientCapabilities=.*ip_unprivileged_port_start=${
          first - 1
        }"$`
      ))
    for (const port of [first, 0, -1, null]) assert.equal(rightsHint({ port }, file), '')
    if (spawnSync('setcap', ['cap_net_bind_service=+ep', file]).status === 0)
      assert.match(rightsHint({ port: first - 1 }, file),
        /\. The capability of \S+server does not count: .*\(no_new_privs\)$/)
  }
)
