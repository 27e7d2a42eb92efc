import assert from 'node:assert/strict'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { ESLint } from 'eslint'

const eslint = new ESLint({ cwd: fileURLToPath(new URL('../../', import.meta.url)) })

/** @returns what the linter says about this import */
async function verdict (file: string, specifier: string): Promise<string | undefined> {
  const [{ messages }] = await eslint.lintText(`import '${specifier}'\n`, { filePath: file })
  return messages.find(({ ruleId }) => ruleId === 'no-restricted-imports')?.message
}

for (const [file, specifier, because] of [
  ['server/lifecycle/pool.ts', 'node:fs', 'pure'],
  ['server/lifecycle/pool.ts', '../cluster/supervisor.js', 'pure'],
  ['server/lifecycle/rollout/rollout.ts', '../../cluster/supervisor.js', 'pure'],
  ['server/lifecycle/pool.ts', '../events/stream.js', 'pure'],
  ['workers/boot.ts', '../server/errors.ts', 'inside the app'],
  ['workers/demo/app.js', 'express', 'inside the app'],
  ['workers/demo/app.js', '../../server/errors.ts', 'inside the app'],
  ['workers/protocol.ts', './channel.js', 'imports nothing'],
  ['workers/protocol.ts', 'node:net', 'imports nothing'],
  ['db/events.ts', '../server/app/app.ts', 'knows no HTTP'],
  ['db/events.ts', '../server/problem.ts', 'knows no HTTP'],
  ['db/events.ts', 'node:http', 'knows no HTTP'],
  ['server/admin/deck-site.ts', '../cluster/supervisor.js', 'through the deck'],
  ['server/api/events.ts', '../../db/history.ts', 'through the deck'],
  ['server/api/events.ts', '../host/master.js', 'through the deck'],
  ['server/dashboard/overview.ts', '../cluster/supervisor.js', 'through the deck'],
  ['server/admin/deck-site.ts', 'better-sqlite3', 'through the deck'],
  ['server/cluster/supervisor.ts', '../admin/deck-site.js', 'who watches'],
  ['server/cluster/supervisor.ts', '../../db/history.ts', 'who watches'],
  ['server/events/recorder.ts', '../cluster/supervisor.js', 'nobody who publishes'],
  ['server/events/recorder.ts', '../app/app.js', 'nobody who publishes'],
  ['server/releases/resolve.ts', '../admin/deck-site.js', 'nothing of the cluster'],
  ['server/keeper/keeper.ts', 'commander', 'only starts masters'],
  ['server/cli/commands.ts', '../cluster/supervisor.js', 'admin API alone'],
  ['server/cli/commands.ts', '../../db/history.ts', 'admin API alone'],
  ['server/library/deck.ts', '../cluster/supervisor.js', 'through the deck'],
  ['server/app/app.ts', '../host/host.js', 'nothing global'],
  ['server/app/app.ts', '../keeper/link.js', 'nothing global'],
  ['server/host/master.ts', '../lifecycle/state.js', 'meets its apps'],
  ['server/host/master.ts', '../cli.js', 'meets its apps'],
  ['server/deck.ts', './cli.js', 'starts the command line']
]) {
  test(`${file} may not import ${specifier}`, async () => {
    assert.match(String(await verdict(file, specifier)), new RegExp(because))
  })
}

for (const [file, specifier, isAllowed] of [
  ['server/api/endpoint.ts', '../admin/guard.js', false],
  ['server/events/recorder.ts', '../../db/history.ts', false],
  ['server/system/posix.ts', '../cluster/sticky-program.js', false],
  ['public/notifications.ts', '../server/dashboard/alarms.ts', false],
  ['server/fleet/deck-adapter.ts', '../deck.js', false],
  ['server/admin/sessions.ts', '../api/roles.js', true],
  ['db/events.ts', '../server/events/stream.ts', true],
  ['public/fleet.js', './format.js', true]
] as [string, string, boolean][]) {
  test(`${file} ${isAllowed ? 'may' : 'may not'} know a type of ${specifier}`, async () => {
    const [{ messages }] = await eslint.lintText(`/** @typedef {import('${specifier}').Some} Some */\n`, { filePath: file })
    assert.equal(messages.some(({ ruleId }) => ruleId === 'house/types-point-down'), !isAllowed)
  })
}

test('a new room needs a place in the order of types', async () => {
  const [{ messages }] = await eslint.lintText('', { filePath: 'server/new-room/some.js' })
  assert.deepEqual(messages.map(({ message }) => message), ['server/new-room/some.js has no place in ORDER'])
})

for (const [file, specifier] of [
  ['server/lifecycle/pool.ts', './rollout/rollout.js'],
  ['server/lifecycle/rollout/rollout.ts', '../state.js'],
  ['server/lifecycle/pool.ts', '../errors.js'],
  ['workers/boot.ts', './protocol.js'],
  ['workers/demo/app.js', 'node:http'],
  ['workers/demo/app.js', './params.js'],
  ['db/events.ts', '../server/errors.ts'],
  ['db/history.ts', './open.js'],
  ['db/open.ts', 'better-sqlite3'],
  ['server/admin/deck-site.ts', 'express'],
  ['server/api/events.ts', '../errors.js'],
  ['server/systemd/service-manager.ts', '../health.js'],
  ['server/cluster/supervisor.ts', '../lifecycle/pool.js'],
  ['server/cluster/forker.ts', '../../workers/protocol.ts'],
  ['server/app/app.ts', '../../db/history.ts'],
  ['server/app/cluster.ts', '../cluster/supervisor.js'],
  ['server/host/master.ts', '../app/app.js'],
  ['server/command-line.ts', './cli/commands.ts'],
  ['server/cli/find-master.ts', '../errors.js']
]) {
  test(`${file} may import ${specifier}`, async () => {
    assert.equal(await verdict(file, specifier), undefined)
  })
}
