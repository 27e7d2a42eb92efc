import assert from 'node:assert/strict'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { ESLint } from 'eslint'

const eslint = new ESLint({ cwd: fileURLToPath(new URL('../../', import.meta.url)) })

/** @param {string} file @param {string} specifier @returns {Promise<string | undefined>} what the linter says about this import */
async function verdict (file, specifier) {
  const [{ messages }] = await eslint.lintText(`import '${specifier}'\n`, { filePath: file })
  return messages.find(({ ruleId }) => ruleId === 'no-restricted-imports')?.message
}

for (const [file, specifier, because] of [
  ['server/lifecycle/pool.js', 'node:fs', 'pure'],
  ['server/lifecycle/pool.js', '../cluster/supervisor.js', 'pure'],
  ['server/lifecycle/rollout/rollout.js', '../../cluster/supervisor.js', 'pure'],
  ['server/lifecycle/pool.js', '../events/stream.js', 'pure'],
  ['workers/boot.js', '../server/errors.js', 'inside the app'],
  ['workers/demo/app.js', 'express', 'inside the app'],
  ['workers/demo/app.js', '../../server/errors.js', 'inside the app'],
  ['workers/protocol.js', './channel.js', 'imports nothing'],
  ['workers/protocol.js', 'node:net', 'imports nothing'],
  ['db/events.js', '../server/app/app.js', 'knows no HTTP'],
  ['db/events.js', '../server/problem.js', 'knows no HTTP'],
  ['db/events.js', 'node:http', 'knows no HTTP'],
  ['server/admin/deck-site.js', '../cluster/supervisor.js', 'through the deck'],
  ['server/api/events.js', '../../db/history.js', 'through the deck'],
  ['server/api/events.js', '../host/master.js', 'through the deck'],
  ['server/dashboard/overview.js', '../cluster/supervisor.js', 'through the deck'],
  ['server/admin/deck-site.js', 'better-sqlite3', 'through the deck'],
  ['server/cluster/supervisor.js', '../admin/deck-site.js', 'who watches'],
  ['server/cluster/supervisor.js', '../../db/history.js', 'who watches'],
  ['server/events/recorder.js', '../cluster/supervisor.js', 'nobody who publishes'],
  ['server/events/recorder.js', '../app/app.js', 'nobody who publishes'],
  ['server/releases/resolve.js', '../admin/deck-site.js', 'nothing of the cluster'],
  ['server/keeper/keeper.js', 'commander', 'only starts masters'],
  ['server/cli/commands.js', '../cluster/supervisor.js', 'admin API alone'],
  ['server/cli/commands.js', '../../db/history.js', 'admin API alone'],
  ['server/library/deck.js', '../cluster/supervisor.js', 'through the deck'],
  ['server/app/app.js', '../host/host.js', 'nothing global'],
  ['server/app/app.js', '../keeper/link.js', 'nothing global'],
  ['server/host/master.js', '../lifecycle/state.js', 'meets its apps'],
  ['server/host/master.js', '../cli.js', 'meets its apps'],
  ['server/deck.js', './cli.js', 'starts the command line']
]) {
  test(`${file} may not import ${specifier}`, async () => {
    assert.match(String(await verdict(file, specifier)), new RegExp(because))
  })
}

for (const [file, specifier, isAllowed] of /** @type {[string, string, boolean][]} */ ([
  ['server/api/endpoint.js', '../admin/guard.js', false],
  ['server/events/recorder.js', '../../db/history.js', false],
  ['server/system/posix.js', '../cluster/sticky-program.js', false],
  ['public/notifications.js', '../server/dashboard/alarms.js', false],
  ['server/fleet/deck-adapter.js', '../deck.js', false],
  ['server/admin/sessions.js', '../api/roles.js', true],
  ['db/events.js', '../server/events/stream.js', true],
  ['public/fleet.js', './format.js', true]
])) {
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
  ['server/lifecycle/pool.js', './rollout/rollout.js'],
  ['server/lifecycle/rollout/rollout.js', '../state.js'],
  ['server/lifecycle/pool.js', '../errors.js'],
  ['workers/boot.js', './protocol.js'],
  ['workers/demo/app.js', 'node:http'],
  ['workers/demo/app.js', './params.js'],
  ['db/events.js', '../server/errors.js'],
  ['db/history.js', './open.js'],
  ['db/open.js', 'better-sqlite3'],
  ['server/admin/deck-site.js', 'express'],
  ['server/api/events.js', '../errors.js'],
  ['server/systemd/service-manager.js', '../health.js'],
  ['server/cluster/supervisor.js', '../lifecycle/pool.js'],
  ['server/cluster/forker.js', '../../workers/protocol.js'],
  ['server/app/app.js', '../../db/history.js'],
  ['server/app/cluster.js', '../cluster/supervisor.js'],
  ['server/host/master.js', '../app/app.js'],
  ['server/command-line.js', './cli/commands.js'],
  ['server/cli/find-master.js', '../errors.js']
]) {
  test(`${file} may import ${specifier}`, async () => {
    assert.equal(await verdict(file, specifier), undefined)
  })
}
