import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findHost } from '../../../server/cli/host.ts'
import { ensureHost, splitFlags } from '../../../server/cli/host-start.ts'
import { isAlive } from '../../../server/system/process-identity.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import type { Terminal } from '../../../server/cli/program.ts'

const SCRIPT = fileURLToPath(new URL('../../fixtures/plays-a-host.js', import.meta.url))

/** A folder for a host that does not run yet. */
function openFolder (t: TestContext) {
  const folder = path.join(tempFolder(), 'state', 'clusterdeck')
  let told = ''
  const env: Record<string, string | undefined> = { ...process.env, CLUSTERDECK_HOST_DIR: folder,
    NODE_OPTIONS: '--require=of-the-app', PORT: '3000', NODE_ENV: 'test', CLUSTERDECK_WORKERS: '4',
    CLUSTERDECK_ADMIN_PORT: '9800', CLUSTERDECK_TOKEN: 'secret', SECRET_OF_SHELL: 'kept' }
  const seen = () => JSON.parse(readFileSync(path.join(folder, 'seen.json'), 'utf8'))
  t.after(() => {
    const { pid } = seen()
    if (isAlive({ pid, startTime: null })) process.kill(pid)
  })
  return {
    folder,
    env,
    seen,
    told: () => told,
    /** What is there before. */
    write (name: string, content: string = '') {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true, mode: 0o700 })
      writeFileSync(path.join(folder, name), content, { mode: 0o600 })
    },
    ensure: (
      { ofHost = [], signal = AbortSignal.timeout(60_000), killed }: { ofHost?: string[], signal?: AbortSignal,
        killed?: AbortSignal } = {}
    ) =>
      ensureHost({ ofHost, timeoutMs: 60_000, signal, killed,
        terminal: fake({ env, script: SCRIPT, stderr: { write: (text: string) => {
          told += text
        } } }) })
  }
}

test('a host that does not run is started in its own folder and session, without what is meant for the app, and is found the next time', async (t) => {
  const { folder, env, seen, ensure, told } = openFolder(t)
  const { master: host, child } = await ensure({ ofHost: ['--admin-port', '9801'] })
  assert.deepEqual([host.token, host.dataDir, told()], ['token', folder,
    `clusterdeck: the host is started: ${host.url}\n`])
  const { command, flags, cwd, env: own } = seen()
  assert.deepEqual([command, flags, cwd], ['host', ['--admin-port', '9801'], folder])
  assert.deepEqual(
    ['NODE_OPTIONS', 'PORT', 'NODE_ENV', 'CLUSTERDECK_WORKERS', 'CLUSTERDECK_TOKEN'].filter((name) =>
      own[name] !== undefined
    ),
    []
  )
  assert.deepEqual([own.CLUSTERDECK_ADMIN_PORT, own.CLUSTERDECK_HOST_DIR, own.CLUSTERDECK_RUNTIME_DIR, own.PWD,
    own.SECRET_OF_SHELL], ['9800', folder, env.CLUSTERDECK_RUNTIME_DIR, folder, 'kept'])
  const { pid } = host.recipient!.processes[0]
  assert.equal(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[3], String(pid),
    'it leads a session')
  assert.equal(child?.pid, pid)
  assert.deepEqual(await ensure(), { master: host, child: null })
  await assert.rejects(ensure({ ofHost: ['--fleet', 'nats://x'] }), { code: 'usage',
    message: `--fleet: expected only where this starts the host, which runs already: its page is at ${host.url}` })
})

test('a host that ends at once is told with its exit code and its last lines, those of this start alone', async (t) => {
  const { write, ensure } = openFolder(t)
  write('logs/host.log', 'of an earlier one\n')
  write('fails')
  await assert.rejects(ensure(), { code: 'start-failed',
    message:
      'the host has ended before its page was there (exit code 2): clusterdeck: --admin-port: expected an integer' })
})

test('a host whose page does not come is told once the time is up, and goes on', async (t) => {
  const { folder, write, ensure, seen } = openFolder(t)
  write('hangs')
  const time = new AbortController()
  const failed = assert.rejects(ensure({ signal: time.signal }), { code: 'timed-out',
    message: 'the page of the host was not there within 1 min (--timeout); it goes on: it never says where it is' })
  await until(() => /says/.test(readFileSync(path.join(folder, 'logs', 'host.log'), 'utf8')), 'what it says')
  time.abort()
  await failed
  assert.ok(isAlive({ pid: seen().pid, startTime: null }))
})

test('a host that starts is ended at once where that is wanted', async (t) => {
  const { folder, write, ensure, seen } = openFolder(t)
  write('hangs')
  const killed = new AbortController()
  const failed = assert.rejects(ensure({ killed: killed.signal }), { code: 'start-failed',
    message: /^the host has ended before its page was there \(killed by SIG(TERM|INT)\)/ })
  await until(() => existsSync(path.join(folder, 'seen.json')), 'its start')
  killed.abort()
  await failed
  assert.equal(isAlive({ pid: seen().pid, startTime: null }), false)
})

test('of two that are started at the same time, the other one is waited for', async (t) => {
  const { folder, env, write, ensure, seen } = openFolder(t)
  write('loses')
  const found = ensure()
  await until(() => existsSync(path.join(folder, 'seen.json')) && !isAlive({ pid: seen().pid, startTime: null }),
    'its end')
  const other = await startFakeHost(t)
  for (const name of ['admin.token', 'master.json']) write(name, readFileSync(path.join(other.folder, name), 'utf8'))
  assert.deepEqual([(await found).master.url, (await found).child], [other.url, null])
  assert.equal(findHost(env)?.url, other.url)
})

test('flags are split into those of the app and those of the host, whose paths hold everywhere', async () => {
  assert.deepEqual(
    await splitFlags({ workers: '4', adminPort: '9800', adminTlsCert: 'cert.pem', adminPlainHttp: true, fleetName: 'eu',
      keeper: false, entry: undefined, watch: true }, '/srv/shop'),
    { flags: { workers: '4', watch: true },
      ofHost: ['--admin-port', '9800', '--admin-tls-cert', '/srv/shop/cert.pem', '--admin-plain-http', '--fleet-name',
        'eu', '--no-keeper'] }
  )
})

test('a folder for the host that cannot be made is refused, also where the system makes none at all', {
  skip: process.platform !== 'linux' && 'needs /proc'
}, async () => {
  const terminal = fake<Terminal>({ env: { CLUSTERDECK_HOST_DIR: '/proc/nothing/below' }, script: SCRIPT,
    stderr: { write () {} } })
  await assert.rejects(ensureHost({ ofHost: [], timeoutMs: 60_000, signal: AbortSignal.timeout(60_000), terminal }), {
    code: 'data-dir-unusable',
    message: '/proc/nothing/below: expected a folder for the host, received ENOENT'
  })
})
