import assert from 'node:assert/strict'
import { appendFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { keptSecretsText, orderOfStart } from '../../../server/cli/app-orders.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import type { AppView } from '../../../server/host/api-apps.ts'

const NOT_READY = { state: 'starting' as const, readyWorkers: 0,
  health: { tone: 'info', text: 'Starting 2 workers', hint: '0 ready.', reasons: [] } }
const USED = ['CLUSTERDECK_RUNTIME_DIR', 'SECRET', 'CLUSTERDECK_WORKERS', 'CLUSTERDECK_TOKEN', 'CLUSTERDECK_HOST_DIR',
  'CLUSTERDECK_APP']

test('start --detach orders the app as the shell has it, and returns once it is ready', async (t) => {
  const { cli, added, env, url } = await startFakeHost(t)
  const cwd = tempFolder()
  const { code, stdout, stderr } = await cli(
    'start app.js -d --name shop --workers 3 --watch --config my.json -- --port 80',
    { cwd, env: { SECRET: 'of the app', CLUSTERDECK_WORKERS: '2', CLUSTERDECK_TOKEN: 'other' } }
  )
  assert.deepEqual([code, stderr], [0, 'shop | is ready\n'])
  assert.match(stdout,
    new RegExp(
      `^NAME +HEALTH +WORKERS +MEMORY +CPU +RESTARTS +UPTIME +APP +ADMIN\nshop +All 2 workers are ready +2/2 .* ${url}/apps/shop\n$`
    ))
  const [{ env: variables, ...order }] = added()
  assert.deepEqual(order, { name: 'shop', cwd, config: path.join(cwd, 'my.json'),
    flags: { entry: 'app.js', name: 'shop', workers: '3', watch: true, args: ['--port', '80'] }, dependsOn: [] })
  assert.deepEqual(USED.map((name) => variables[name]), [env.CLUSTERDECK_RUNTIME_DIR, 'of the app', '2', undefined,
    undefined, undefined])
})

test('what looks like a secret among the variables that a host keeps is named, and what belongs to the session is not kept', () => {
  const orders = [{ DB_PASSWORD: 'x', PORT: '1', KEYBOARD: 'de' }, { DB_PASSWORD: 'y', stripeApiKey: 'z' }].map((env) =>
    orderOfStart({}, { env: { ...env, SSH_CONNECTION: '::1', SHLVL: '2' }, cwd: '/' })
  )
  assert.match(String(keptSecretsText(orders)),
    /on its disk, among them DB_PASSWORD, stripeApiKey; .* by secrets or envFile/)
  assert.deepEqual([orders[0].env?.SSH_CONNECTION, orders[0].env?.SHLVL, orders[0].env?.PORT], [undefined, undefined,
    '1'])
  assert.equal(keptSecretsText([orderOfStart({}, { env: { PORT: '1' }, cwd: '/' })]), null)
})

test('start --detach asks the host over one connection, as the kernel takes milliseconds to say who has it', async (t) => {
  const { cli, connections } = await startFakeHost(t)
  assert.equal((await cli('start app.js -d --name shop')).code, 0)
  assert.equal(connections(), 1)
})

test('start --detach --no-wait returns at once, and --json says what the host does', async (t) => {
  const { cli, whenStarted } = await startFakeHost(t)
  whenStarted('shop', { deck: NOT_READY, view: { state: 'starting' } })
  const { code, stdout, stderr } = await cli('start app.js --detach --no-wait --json --name shop')
  assert.deepEqual([code, stderr, JSON.parse(stdout).map(({ name, state }: AppView) => [name, state])], [0, '', [[
    'shop',
    'starting'
  ]]])
})

test('start --detach says of an app that does not get ready why, and the last lines that it has written', async (t) => {
  const host = await startFakeHost(t)
  host.whenStarted('shop', { deck: NOT_READY })
  const started = host.cli('start app.js -d --name shop --timeout 3s')
  await until(() => host.view('shop')?.state === 'running', 'its start')
  appendFileSync(path.join(host.deck('shop').logs.folder, 'slot-1.stderr.log'), 'waits for a database\n')
  const { code, stdout, stderr } = await started
  assert.deepEqual([code, stderr], [1, 'shop | waits for a database\nclusterdeck: start: shop is not ready\n'])
  assert.match(stdout, /^shop +Starting 2 workers +0\/2 /m)
})

test('start --detach tells at once what the host refuses, and what has failed', async (t) => {
  const { cli, whenStarted, added, url, view } = await startFakeHost(t, { shop: {} })
  assert.deepEqual(await cli('start app.js -d --name shop'), { code: 2, stdout: '',
    stderr: `clusterdeck: name: expected a name that no app of this host has, received "shop" (${
      view('shop')?.cwd
    }); choose one by --name\n` })
  whenStarted('bad', { view: { state: 'failed', reason: 'workers: expected an integer' } })
  const { code, stdout, stderr } = await cli('start app.js -d --name bad')
  assert.deepEqual([code, stderr], [1, 'bad | failed: workers: expected an integer\nclusterdeck: start: bad failed\n'])
  assert.match(stdout, /^bad +failed +- .* workers: expected an integer$/m)
  assert.deepEqual(await cli('start app.js -d --admin-port 9800'), { code: 2, stdout: '',
    stderr:
      `clusterdeck: --admin-port: expected only where this starts the host, which runs already: its page is at ${url}\n` })
  assert.equal(added().length, 2)
})

test('start with the name of an app of the host starts it again, unless there is such a file', async (t) => {
  const { cli, orders, view, whenStarted } = await startFakeHost(t, { shop: { state: 'stopped' }, mail: {},
    bad: { state: 'failed', reason: 'no' } })
  assert.deepEqual(await cli('start shop'), { code: 0, stdout: 'is ready\n', stderr: '' })
  assert.deepEqual(orders(), ['start shop'])
  whenStarted('bad', { view: { state: 'failed', reason: 'still no' } })
  assert.deepEqual(await cli('start bad mail'), { code: 1, stdout: 'mail: is ready\n',
    stderr: 'clusterdeck: bad failed: still no\n' })
  assert.equal((await cli('start mail --no-wait')).stdout, 'running\n')
  assert.match((await cli('start shop mial')).stderr,
    /^clusterdeck: start: expected some of bad, mail, shop, received "mial" \(did you mean "mail"\?\)\n$/)
  const cwd = tempFolder()
  writeFileSync(path.join(cwd, 'shop'), '')
  assert.match((await cli('start shop mail', { cwd })).stderr,
    /^clusterdeck: too many arguments for "start": expected one entry, received "mail" too\. Arguments for the app go after --\.\n$/)
  assert.match((await cli('start nix.js', { cwd })).stderr, /^clusterdeck: entry: expected a file, /)
  assert.equal(view('shop')?.state, 'running')
})

test('start refuses the options of a host where it runs an app in the foreground', async (t) => {
  const { cli } = await startFakeHost(t)
  for (const [line, flag] of [['start app.js --no-wait', '--no-wait'], ['start app.js --timeout 3s', '--timeout'], [
    'start app.js --json',
    '--json'
  ]]) {
    assert.deepEqual(await cli(line), { code: 2, stdout: '',
      stderr: `clusterdeck: ${flag}: expected with --detach or the name of an app of the host, received neither\n` })
  }
})
