import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'

function folderWith (apps: object) {
  const cwd = tempFolder()
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify({ apps }))
  return cwd
}

test('up --detach orders each app after those that it depends on, with what the shell has, but for what names one of them', async (t) => {
  const { cli, added } = await startFakeHost(t)
  const cwd = folderWith({ mail: { entry: 'mail.js', dependsOn: ['shop'] }, shop: { entry: 'shop.js' } })
  // Here each has a folder of its own, so that the host takes it for another app.
  const { code, stderr } = await cli('up shop --detach', { cwd,
    env: { SECRET: 'of the app', CLUSTERDECK_NAME: 'x', CLUSTERDECK_APP: 'y', CLUSTERDECK_WORKERS: '2' } })
  assert.deepEqual([code, stderr], [0, 'shop | is ready\n'])
  const [{ env, ...order }] = added()
  assert.deepEqual(order, { app: 'shop', config: path.join(cwd, 'clusterdeck.config.json'), cwd, flags: {},
    dependsOn: [] })
  assert.deepEqual([env.SECRET, env.CLUSTERDECK_WORKERS, env.CLUSTERDECK_NAME, env.CLUSTERDECK_APP, env.PWD], [
    'of the app',
    '2',
    undefined,
    undefined,
    cwd
  ])
  await cli('up mail --detach --no-wait', { cwd })
  assert.deepEqual(added().map(({ app, dependsOn }) => [app, dependsOn]), [['shop', []], ['shop', []], ['mail', [
    'shop'
  ]]])
})

test('what the host refuses stops none of the others, but those that depend on it', async (t) => {
  const { cli, added } = await startFakeHost(t, { db: {} })
  const cwd = folderWith({ db: { entry: 'db.js' }, api: { entry: 'api.js', dependsOn: ['db'] },
    cron: { entry: 'cron.js' } })
  const { code, stdout, stderr } = await cli('up -d', { cwd })
  assert.equal(code, 1)
  assert.match(stderr,
    /^db {3}\| failed: name: expected a name that no app of this host has, received "db" \(.*\); choose one by --name\napi {2}\| is not started: it depends on db, which failed \(name: .*\)\ncron \| is ready\nclusterdeck: up: db failed, api was not started\n$/)
  assert.match(stdout, /^db +failed .*\napi +not started .*\ncron +All 2 workers are ready /m)
  assert.deepEqual(added().map(({ app }) => app), ['db', 'cron'])
})

test('down stops apps of the host by the host, which remembers it, and ends the host only by --all', async (t) => {
  const host = await startFakeHost(t)
  const cwd = folderWith({ shop: { entry: 'shop.js', dataDir: 'data' }, mail: { entry: 'mail.js' } })
  host.put('shop', { cwd, dataDir: path.join(cwd, 'data') })
  host.put('other')
  assert.deepEqual(await host.cli('down', { cwd }), { code: 0,
    stdout: 'NAME  STATE\nshop  stopped\nmail  not running\n', stderr: '' })
  assert.deepEqual(host.orders(), ['stop shop'])
  for (const [line, other] of [['down shop --all', 'apps'], ['down --all --config x.json', '--config']]) {
    assert.deepEqual(await host.cli(line, { cwd }), { code: 2, stdout: '',
      stderr: `clusterdeck: down: expected either ${other} or --all, received both\n` })
  }
  const process = spawn('sleep', ['60'])
  t.after(() => process.kill())
  host.playFor(process)
  assert.deepEqual(await host.cli('down --all', { cwd }), { code: 0, stdout: 'the host has ended, with other\n',
    stderr: '' })
  assert.deepEqual(host.orders(), ['stop shop', 'stop-host'])
  assert.deepEqual(await host.cli('down --all', { cwd }), { code: 5, stdout: '',
    stderr: 'clusterdeck: no host of this user runs\n' })
})
