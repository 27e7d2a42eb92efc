import assert from 'node:assert/strict'
import test from 'node:test'
import { complaintsAbout } from '../../build/rooms.ts'

for (const [file, specifier, because] of [['server/lifecycle/pool.ts', 'node:fs', 'pure'], ['server/lifecycle/pool.ts',
  '../cluster/supervisor.ts', 'pure'], ['server/lifecycle/rollout/rollout.ts', '../../cluster/supervisor.ts', 'pure'], [
  'server/lifecycle/pool.ts',
  '../events/stream.ts',
  'pure'
], ['workers/boot.ts', '../server/errors.ts', 'inside the app'], ['workers/demo/app.js', 'express', 'inside the app'], [
  'workers/demo/app.js',
  '../../server/errors.ts',
  'inside the app'
], ['workers/protocol.ts', './channel.ts', 'imports nothing'], ['workers/protocol.ts', 'node:net', 'imports nothing'], [
  'db/events.ts',
  '../server/app/app.ts',
  'knows no HTTP'
], ['db/events.ts', '../server/problem.ts', 'knows no HTTP'], ['db/events.ts', 'node:http', 'knows no HTTP'], [
  'server/admin/deck-site.ts',
  '../cluster/supervisor.ts',
  'through the deck'
], ['server/api/events.ts', '../../db/history.ts', 'through the deck'], ['server/api/events.ts', '../host/master.ts',
  'through the deck'], ['server/dashboard/overview.ts', '../cluster/supervisor.ts', 'through the deck'], [
  'server/admin/deck-site.ts',
  'better-sqlite3',
  'through the deck'
], ['server/cluster/supervisor.ts', '../admin/deck-site.ts', 'who watches'], ['server/cluster/supervisor.ts',
  '../../db/history.ts', 'who watches'], ['server/events/recorder.ts', '../cluster/supervisor.ts',
  'nobody who publishes'], ['server/events/recorder.ts', '../app/app.ts', 'nobody who publishes'], [
  'server/releases/resolve.ts',
  '../admin/deck-site.ts',
  'nothing of the cluster'
], ['server/keeper/keeper.ts', 'commander', 'only starts masters'], ['server/cli/commands.ts',
  '../cluster/supervisor.ts', 'admin API alone'], ['server/cli/commands.ts', '../../db/history.ts', 'admin API alone'],
  ['server/cli/commands.ts', '../host/master.ts', 'admin API alone'], ['server/library/deck.ts',
  '../cluster/supervisor.ts', 'through the deck'], ['server/app/app.ts', '../host/host.ts', 'nothing global'], [
  'server/app/app.ts',
  '../keeper/link.ts',
  'nothing global'
], ['server/host/master.ts', '../lifecycle/state.ts', 'meets its apps'], ['server/host/master.ts', '../cli.js',
  'meets its apps'], ['server/deck.ts', './cli.js', 'is above']])
{
  test(`${file} may not import ${specifier}`, () => {
    for (const text of [`import '${specifier}'`, `export * from '${specifier}'`,
      `const some = await import('${specifier}')`])
    {
      assert.match(complaintsAbout(file, text).join(), new RegExp(`^${file} may not .*${specifier}: .*${because}`),
        text)
    }
  })
}

for (const [file, specifier, isAllowed] of [['server/api/endpoint.ts', '../admin/guard.ts', false], [
  'server/events/recorder.ts',
  '../../db/history.ts',
  false
], ['server/system/posix.ts', '../cluster/sticky-program.ts', false], ['public/notifications.ts',
  '../server/dashboard/alarms.ts', false], ['server/fleet/deck-adapter.ts', '../deck.ts', false], [
  'server/admin/sessions.ts',
  '../api/roles.ts',
  true
], ['db/events.ts', '../server/events/stream.ts', true], ['public/fleet.ts', './format.ts', true]] as [string, string,
  boolean][])
{
  test(`${file} ${isAllowed ? 'may' : 'may not'} know a type of ${specifier}`, () => {
    for (const text of [`import type { Some } from '${specifier}'`, `export type { Some } from '${specifier}'`,
      `type Some = typeof import('${specifier}')`])
    {
      assert.equal(complaintsAbout(file, text).length, isAllowed ? 0 : 1, text)
    }
  })
}

test('a new room needs a place in the order of types', () => {
  assert.deepEqual(complaintsAbout('server/new-room/some.ts', ''), ['server/new-room/some.ts has no place in ORDER'])
})

for (const [file, specifier] of [['server/lifecycle/pool.ts', './rollout/rollout.ts'], [
  'server/lifecycle/rollout/rollout.ts',
  '../state.ts'
], ['server/lifecycle/pool.ts', '../errors.ts'], ['workers/boot.ts', './protocol.ts'], ['workers/demo/app.js',
  'node:http'], ['workers/demo/app.js', './params.ts'], ['db/events.ts', '../server/errors.ts'], ['db/history.ts',
  './open.ts'], ['db/open.ts', 'better-sqlite3'], ['server/admin/deck-site.ts', 'express'], ['server/api/events.ts',
  '../errors.ts'], ['server/systemd/service-manager.ts', '../health.ts'], ['server/cluster/supervisor.ts',
  '../lifecycle/pool.ts'], ['server/cluster/forker.ts', '../../workers/protocol.ts'], ['server/app/app.ts',
  '../../db/history.ts'], ['server/app/cluster.ts', '../cluster/supervisor.ts'], ['server/host/master.ts',
  '../app/app.ts'], ['server/command-line.ts', './cli/commands.ts'], ['server/cli/find-master.ts', '../errors.ts'], [
  'server/cli/start.ts',
  '../host/master.ts'
]]) {
  test(`${file} may import ${specifier}`, () => {
    assert.deepEqual(complaintsAbout(file, `import '${specifier}'`), [])
  })
}
