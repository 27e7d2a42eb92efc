import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { configFromOptions, loadConfig } from '../../../server/config/config.ts'
import { readConfigFile } from '../../../server/config/file.ts'
import { OPTIONS } from '../../../server/config/options.ts'
import { DeckError } from '../../../server/errors.ts'
import type { TestContext } from 'node:test'

/** A working folder with these files in it, and a `load` that reads the configuration there. */
function workingFolder (t: TestContext, files: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(tmpdir(), 'clusterdeck-config-'))
  t.after(() => rmSync(cwd, { recursive: true }))
  for (const [name, text] of Object.entries({ 'app.js': '', ...files })) {
    mkdirSync(join(cwd, name, '..'), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return { cwd,
    load: (flags: Record<string, unknown> = {}, env: Record<string, string> = {}) =>
      loadConfig({ flags: { entry: 'app.js', ...flags }, env, cwd, countCpus: () => 6 }) }
}

test('without anything set the defaults hold', async (t) => {
  const { cwd, load } = workingFolder(t)
  assert.deepEqual(await load(), { runtime: 'node',
    appNode: { file: process.execPath, version: process.versions.node, by: 'command' }, entry: join(cwd, 'app.js'),
    args: [], env: {}, execArgv: [], cwd, workers: 6, dispatch: 'shared',
    sticky: { by: {}, idleMs: 600_000, failoverMs: 2000 }, rebalance: 'on', compileCache: 'off',
    instanceVariable: 'NODE_APP_INSTANCE', portPerSlot: 0, standby: 0, dataDir: join(cwd, '.clusterdeck'),
    admin: { host: '127.0.0.1', port: 9777, allowedHosts: [], sessionTtlMs: 12 * 60 * 60 * 1000, tls: {},
      plainHttp: false }, start: { first: 'one' },
    ready: { signal: 'auto', timeoutMs: 30_000, addresses: 'same', status: ['200-399'], intervalMs: 100,
      probeTimeoutMs: 5000, warmup: [], warmupRounds: 1 },
    drain: { idleGraceMs: 5000, deadlineMs: 30_000, stalledMs: 10_000, longLivedMs: 14_400_000, maxOldWorkers: 'auto',
      spreadMs: 30_000 }, stop: { termGraceMs: 5000, message: 'object', signal: 'SIGTERM' }, crash: { graceMs: 1000 },
    releases: { mode: 'auto', shared: [], exclude: [], keep: 10, onDrift: 'mark' }, orphanMs: 60_000,
    keeper: { giveUpAfter: 0, hungAfterMs: 10_000 },
    restart: { policy: 'always', minDelayMs: 100, maxDelayMs: 30_000, resetAfterMs: 60_000,
      intensity: { restarts: 5, windowMs: 60_000 } },
    rollout: { order: 'start-first', surge: 1, minReadyMs: 0, canary: { workers: 0, durationMs: 30_000 },
      limits: { crashes: 0, errorRate: 0.05, p99Ratio: 3, slowerMs: 50, warmupMs: 5000, minRequests: 50,
        readyTimeoutMs: 0 }, progressDeadlineMs: 600_000, onFailure: 'rollback', guardMs: 300_000 },
    watchdog: { timeoutMs: 10_000, stack: 'on' }, limits: { memoryBytes: 0, cpus: 0 },
    recycle: { maxRssBytes: 0, maxAgeMs: 0, maxRequests: 0 },
    telemetry: { appMetrics: 'on', routes: 'on', otlp: 'on', journald: 'off', workerOutput: 'off' }, hooks: {},
    jobs: {}, watch: false, fleet: { servers: [], name: 'default', labels: {}, accept: 'read', tls: {} },
    diagnostics: { leaks: 'on', profiling: 'off', maxFiles: 20, maxBytes: 1024 ** 3 }, alerts: [],
    logs: { maxBytes: 10 * 1024 * 1024, maxFiles: 5, mirror: 'auto' },
    history: { maxAgeMs: 30 * 24 * 60 * 60 * 1000, maxEvents: 1_000_000 } })
})

test('flags come before the environment, that before the file, that before the defaults', async (t) => {
  const { load } = workingFolder(t, {
    'clusterdeck.config.json': JSON.stringify({ workers: 2, dispatch: 'sticky', admin: { port: 1111, host: '::1' } })
  })
  const config = await load({ workers: '4' }, { CLUSTERDECK_WORKERS: '3', CLUSTERDECK_ADMIN_PORT: '2222' })
  assert.deepEqual([config.workers, config.admin.port, config.admin.host, config.dispatch, config.ready.signal], [4,
    2222, '::1', 'sticky', 'auto'])
})

test('what a program says comes before the config file that it names; no other file counts', async (t) => {
  const { cwd } = workingFolder(t, { 'clusterdeck.config.json': JSON.stringify({ workers: 9, orphanMs: 9 }),
    'other/deck.json': JSON.stringify({ entry: '../app.js', workers: 2, admin: { port: 1111, host: '::1' } }) })
  const alone = await configFromOptions({ entry: 'app.js', workers: undefined, admin: undefined }, { cwd,
    countCpus: () => 6 })
  assert.deepEqual([alone.workers, alone.orphanMs], [6, 60_000])
  const config = await configFromOptions({ workers: 3, admin: { port: 2222 } }, { configFile: 'other/deck.json', cwd })
  assert.deepEqual([config.entry, config.workers, config.admin.port, config.admin.host], [join(cwd, 'app.js'), 3, 2222,
    '::1'])
})

test('every option can be set by flag, by environment and in the file', async (t) => {
  const samples: Record<string, [string, unknown]> = { integer: ['1234', 1234], text: ['::1', '::1'],
    list: ['a', ['a']], switch: ['true', true] }
  const special = { workers: ['7', 7], node: [process.execPath, process.execPath], standby: ['2', 2],
    compileCache: ['on', 'on'], instanceVariable: ['INSTANCE_ID', 'INSTANCE_ID'], dispatch: ['sticky', 'sticky'],
    'sticky.by.header': ['x-id', 'x-id'], 'sticky.by.cookie': ['sid', 'sid'], 'sticky.by.query': ['sid', 'sid'],
    'sticky.by.path': ['/sockjs/:server/:session', '/sockjs/:server/:session'], name: ['shop', 'shop'],
    'start.first': ['all', 'all'], 'ready.signal': ['online', 'online'], 'ready.addresses': ['any', 'any'],
    'stop.message': ['text', 'text'], 'stop.signal': ['SIGQUIT', 'SIGQUIT'], rebalance: ['off', 'off'],
    'ready.path': ['/health?deep=1', '/health?deep=1'], 'ready.status': ['200-299,304', ['200-299', '304']],
    'ready.warmup': ['/a,b /c', ['/a,b', '/c']], 'watchdog.timeoutMs': ['2500', 2500],
    'keeper.hungAfterMs': ['2500', 2500], 'watchdog.stack': ['off', 'off'],
    'limits.memoryBytes': ['67108864', 67108864], 'limits.cpus': ['1.5', 1.5],
    'recycle.maxRssBytes': ['67108864', 67108864], 'diagnostics.maxBytes': ['2097152', 2097152],
    'diagnostics.leaks': ['off', 'off'], 'diagnostics.profiling': ['on', 'on'], 'logs.maxBytes': ['123456', 123456],
    'logs.maxFiles': ['7', 7], 'logs.mirror': ['on', 'on'], 'telemetry.appMetrics': ['off', 'off'],
    'telemetry.routes': ['off', 'off'], 'telemetry.otlp': ['off', 'off'], 'telemetry.journald': ['on', 'on'],
    'telemetry.syslog': ['udp://10.0.0.5:514', 'udp://10.0.0.5:514'], 'telemetry.workerOutput': ['on', 'on'],
    'rollout.surge': ['25%', '25%'], 'rollout.order': ['stop-first', 'stop-first'],
    'restart.policy': ['never', 'never'], 'restart.cron': ['0 4 * * *', '0 4 * * *'],
    'rollout.canary.workers': ['2', 2], 'rollout.limits.errorRate': ['0.25', 0.25],
    'rollout.limits.p99Ratio': ['1.5', 1.5], 'rollout.onFailure': ['hold', 'hold'],
    'releases.mode': ['folder', 'folder'], 'releases.keep': ['50', 50], 'releases.onDrift': ['hold', 'hold'],
    'admin.basePath': ['/deck', '/deck'], 'admin.publicUrl': ['https://ops.example.com', 'https://ops.example.com'],
    'fleet.servers': ['nats://10.0.0.5:4222,tls://b', ['nats://10.0.0.5:4222', 'tls://b']],
    'fleet.name': ['shops', 'shops'], 'fleet.member': ['web-1', 'web-1'],
    'fleet.labels': ['zone=a, disk=ssd', { zone: 'a', disk: 'ssd' }],
    'fleet.accept': ['operate', 'operate'] } as typeof samples
  const pairs = { 'sticky.by.header': { dispatch: 'sticky' }, 'sticky.by.cookie': { dispatch: 'sticky' },
    'sticky.by.query': { dispatch: 'sticky' }, 'sticky.by.path': { dispatch: 'sticky' },
    'admin.tls.cert': { adminTlsKey: 'key.pem' }, 'admin.tls.key': { adminTlsCert: 'cert.pem' },
    'fleet.tls.cert': { fleetTlsKey: 'key.pem' }, 'fleet.tls.key': { fleetTlsCert: 'cert.pem' } } as Record<string,
      Record<string, string>>
  const isStart = ({ name }: { name: string }) => name === 'entry' || name === 'script'
  for (const option of OPTIONS.filter(({ kind }) => kind !== 'file')) {
    const { cwd, load } = workingFolder(t, { 'package.json': '{ "scripts": { "::1": "node app.js" } }' })
    const others = { ...pairs[option.name], ...(isStart(option) ? { entry: undefined } : {}),
      ...(option.name === 'stop.signal' && { entry: '/bin/sh' }) }
    const [text, value] = option.kind === 'path'
      ? ['app.js', join(cwd, 'app.js')]
      : special[option.name] ?? samples[option.kind]
    const inFile = option.path.reduceRight<unknown>((inner, key) => ({ [key]: inner }),
      option.kind === 'path' ? 'app.js' : value)
    writeFileSync(join(cwd, 'other.json'), JSON.stringify(inFile))
    const read = (config: object) => option.path.reduce<unknown>((object, key) => Object(object)[key], config)
    assert.deepEqual(read(await load({ ...others, [option.key]: text })), value, option.flag)
    assert.deepEqual(
      read(await loadConfig({ flags: { entry: 'app.js', ...others }, env: { [option.env]: text }, cwd })),
      value,
      option.env
    )
    assert.deepEqual(
      read(await loadConfig({ flags: { config: 'other.json', entry: 'app.js', ...others }, env: {}, cwd })),
      value,
      `${option.name} in a file`
    )
  }
})

test('the names of flags and variables follow from the place in the file', () => {
  const named = Object.fromEntries(OPTIONS.map(({ name, flag, env }) => [name, [flag, env]]))
  assert.deepEqual(named['ready.timeoutMs'], ['--ready-timeout-ms', 'CLUSTERDECK_READY_TIMEOUT_MS'])
  assert.deepEqual(named['admin.port'], ['--admin-port', 'CLUSTERDECK_ADMIN_PORT'])
  assert.deepEqual(named.dataDir, ['--data-dir', 'CLUSTERDECK_DATA_DIR'])
  // CLUSTERDECK_NODE names the Node of clusterdeck itself.
  assert.deepEqual(named.node, ['--node', 'CLUSTERDECK_APP_NODE'])
  assert.deepEqual(named['fleet.servers'], ['--fleet', 'CLUSTERDECK_FLEET'])
})

test('what a fleet needs is checked at the start, and no secret is shown', async (t) => {
  for (const [flags, message] of [[{ fleet: 'http://user:hidden@host' },
    /^--fleet: expected a list of addresses such as "nats:.*; wrong is fleet\.servers\[0\]$/], [{
    fleet: 'nats://user:hidden@host'
  }, /^--fleet: expected a list of addresses/], [{ fleet: 'nats://a,b:99999' },
    /^--fleet: expected a list of addresses such as "nats:.*; wrong is fleet\.servers\[1\]$/], [{ fleetName: 'a.b' },
    /^--fleet-name: expected a name of letters.*received "a\.b"$/], [{ fleetMember: '-x' },
    /^--fleet-member: expected a name/], [{ fleetLabels: 'zone' },
    /^--fleet-labels: expected labels and their values such as zone=a,disk=ssd, received "zone"$/], [{
    fleetLabels: Array.from({ length: 50 }, (_, index) => `l${index}=${'x'.repeat(200)}`).join()
  }, /^fleet\.labels: expected at most 8192 bytes in all, received \d+$/], [{ fleetAccept: 'all' },
    /^--fleet-accept: expected .*"read".*received "all"$/], [{ fleetTlsCert: 'app.js' },
    /^fleet\.tls\.key: expected a file, as fleet\.tls\.cert is set, received nothing$/], [{ fleetToken: 'hidden',
    fleetCredentials: 'app.js' },
    /^fleet\.token: expected either fleet\.token or fleet\.credentials, received both$/]] as [Record<string, string>,
      RegExp][])
  {
    await assert.rejects(workingFolder(t).load(flags), (error: DeckError) => {
      assert.match(error.message, message)
      assert.doesNotMatch(error.message, /hidden/)
      return error.code === 'invalid-config'
    })
  }
})

test('config files are found as .js, .mjs and .json, in this order', async (t) => {
  const { cwd, load } = workingFolder(t, { 'clusterdeck.config.json': '{"workers": 3}' })
  assert.equal((await load()).workers, 3)
  writeFileSync(join(cwd, 'clusterdeck.config.mjs'), 'export default { workers: 2 }')
  assert.equal((await load()).workers, 2)
  writeFileSync(join(cwd, 'clusterdeck.config.js'), 'module.exports = { workers: 1 }')
  assert.equal((await load()).workers, 1)
})

test('alerts are set in the file alone, and a wrong one is refused without showing its secret', async (t) => {
  const secret = 'a secret of its own'
  const hook = { kind: 'webhook', url: 'https://example.com/hook', events: ['worker.*', 'worker.exited:hung'], secret }
  const write = (alerts: unknown) => workingFolder(t, { 'clusterdeck.config.json': JSON.stringify({ alerts }) })
  assert.deepEqual((await write([hook]).load()).alerts, [hook])
  assert.deepEqual((await workingFolder(t).load({}, { CLUSTERDECK_ALERTS: '[]' })).alerts, [])
  for (const [wrong, place] of [[[{ ...hook, url: 'ftp://example.com' }], /wrong is alerts\[0\]\.url$/], [[{ ...hook,
    url: 'https://user:pass@example.com' }], /wrong is alerts\[0\]\.url$/], [[hook, { ...hook, secret: 'short' }],
    /wrong is alerts\[1\]\.secret$/], [[{ ...hook, events: ['Worker exited'] }], /wrong is alerts\[0\]\.events\[0\]$/],
    [[{ ...hook, events: ['worker.*', 'wroker.*'] }],
      /wrong is alerts\[0\]\.events\[1\]: expected a type of events such as worker\.\* \(did you mean "worker\.\*"\?\)$/],
    [[{ ...hook, evnts: ['*'] }], /wrong is alerts\[0\]: unknown "evnts"$/], [{ ...hook }, /wrong is alerts$/]] as [
      unknown,
      RegExp
    ][])
  {
    await assert.rejects(write(wrong).load(), (error: DeckError) => {
      assert.equal(error.code, 'invalid-config')
      assert.match(error.message, place)
      assert.match(error.message, /expected a list of alerts/)
      assert.doesNotMatch(error.message, /a secret|short/)
      return true
    })
  }
})

test('hooks are set in the file alone, as words for a program, and a wrong one is refused without showing it', async (t) => {
  const write = (hooks: unknown) => workingFolder(t, { 'clusterdeck.config.json': JSON.stringify({ hooks }) })
  const { hooks } = await write({ beforeDeploy: { command: ['npm', 'run', 'migrate'] },
    onCrash: { command: ['true'], timeoutMs: 100 } }).load()
  assert.deepEqual(hooks, { beforeDeploy: { command: ['npm', 'run', 'migrate'], timeoutMs: 300_000 },
    onCrash: { command: ['true'], timeoutMs: 100 } })
  assert.deepEqual((await workingFolder(t).load({}, { CLUSTERDECK_HOOKS_ON_CRASH: '{"command":["true"]}' })).hooks, {})
  await assert.rejects(workingFolder(t).load({ hooksOnCrash: 'true' }), /unknown option "hooksOnCrash"/)
  for (const [wrong, place] of [[{ command: 'echo a secret' }, /wrong is hooks\.onCrash\.command$/], [{ command: [] },
    /wrong is hooks\.onCrash\.command$/], [{ command: ['', 'a secret'] }, /wrong is hooks\.onCrash\.command$/], [{
    command: ['a secret\0']
  }, /wrong is hooks\.onCrash\.command\[0\]$/], [{ command: ['true'], timeoutMs: 99 },
    /wrong is hooks\.onCrash\.timeoutMs$/], [{ command: ['true'], shell: true },
    /wrong is hooks\.onCrash: unknown "shell"$/], ['echo a secret', /wrong is hooks\.onCrash$/]] as [unknown, RegExp][])
  {
    await assert.rejects(write({ onCrash: wrong }).load(), (error: DeckError) => {
      assert.equal(error.code, 'invalid-config')
      assert.match(error.message, place)
      assert.match(error.message, /^hooks\.onCrash in .+: expected an object \{ command: \["npm"/)
      assert.doesNotMatch(error.message, /a secret/)
      return true
    })
  }
  await assert.rejects(write({ afterCrash: { command: ['true'] } }).load(), /unknown option "hooks\.afterCrash"/)
})

test('secrets are set in the file alone, their file starts from its folder, and a wrong one is refused without showing it', async (t) => {
  const write = (secrets: unknown) =>
    workingFolder(t, { 'below/clusterdeck.json': JSON.stringify({ entry: '../app.js', secrets }), 'app.js': '' })
  const load = (secrets: unknown) => write(secrets).load({ config: 'below/clusterdeck.json', entry: undefined })
  assert.deepEqual((await load({ from: 'command', command: ['sops', 'decrypt', 'a.json'] })).secrets, { from: 'command',
    command: ['sops', 'decrypt', 'a.json'], format: 'json', timeoutMs: 20_000 })
  const { secrets, cwd } = await load({ from: 'file', file: 'secrets.env', format: 'env' })
  assert.deepEqual(secrets, { from: 'file', file: join(cwd, 'below/secrets.env'), format: 'env' })
  assert.deepEqual((await load({ from: 'systemd-creds' })).secrets, { from: 'systemd-creds' })
  assert.equal((await workingFolder(t).load({}, { CLUSTERDECK_SECRETS: '{"from":"systemd-creds"}' })).secrets,
    undefined)
  await assert.rejects(workingFolder(t).load({ secrets: '{"from":"systemd-creds"}' }), /unknown option "secrets"/)
  for (const [wrong, place] of [[{ from: 'a secret' }, /wrong is secrets\.from$/], [{ command: ['a secret'] },
    /wrong is secrets\.from$/], [{ from: 'command', command: 'echo a secret' }, /wrong is secrets\.command$/], [{
    from: 'command',
    command: ['', 'a secret']
  }, /wrong is secrets\.command$/], [{ from: 'command', command: ['true'], timeoutMs: 99 },
    /wrong is secrets\.timeoutMs$/], [{ from: 'command', command: ['true'], format: 'yaml' },
    /wrong is secrets\.format$/], [{ from: 'command', command: ['true'], values: { A: 'a secret' } },
    /wrong is secrets: unknown "values"$/], [{ from: 'file' }, /wrong is secrets\.file$/], ['a secret',
    /wrong is secrets$/]] as [unknown, RegExp][])
  {
    await assert.rejects(load(wrong), (error: DeckError) => {
      assert.equal(error.code, 'invalid-config')
      assert.match(error.message, place)
      assert.match(error.message, /^secrets in .+: expected one of \{ from: "command"/)
      assert.doesNotMatch(error.message, /a secret/)
      return true
    })
  }
})

test('paths in a config file start from its folder', async (t) => {
  const { cwd, load } = workingFolder(t, { 'deploy/clusterdeck.json': '{"dataDir": "data", "entry": "server.js"}',
    'deploy/server.js': '' })
  const config = await load({ config: 'deploy/clusterdeck.json', entry: undefined })
  assert.deepEqual([config.dataDir, config.entry], [join(cwd, 'deploy/data'), join(cwd, 'deploy/server.js')])
})

test('statuses may be written as one, as a range, and as a list of both', async (t) => {
  const { cwd, load } = workingFolder(t)
  for (const [status, expected] of [[204, ['204']], ['200-299', ['200-299']], ['200, 301-308', ['200', '301-308']], [[
    200,
    '404'
  ], ['200', '404']]] as [unknown, string[]][]) {
    writeFileSync(join(cwd, 'clusterdeck.config.json'), JSON.stringify({ ready: { status } }))
    assert.deepEqual((await load()).ready.status, expected)
  }
  for (const status of ['299-200', '20', '600', [], [[200]], { from: 200 }, '200-', '']) {
    writeFileSync(join(cwd, 'clusterdeck.config.json'), JSON.stringify({ ready: { status } }))
    await assert.rejects(load(), { code: 'invalid-config',
      message: `ready.status in ${
        join(cwd, 'clusterdeck.config.json')
      }: expected HTTP statuses such as 200, "200-399" or a list of them, received ${JSON.stringify(status)}` })
  }
})

test('a path of the app is one that a request can have', async (t) => {
  const { load } = workingFolder(t)
  for (const wrong of ['health', 'http://app/health', '/with space', '/line\r\nX-Header: 1', '/#part', '/über']) {
    await assert.rejects(load({ readyPath: wrong }), { code: 'invalid-config',
      message: `--ready-path: expected a path such as "/health", received ${JSON.stringify(wrong)}` })
  }
  await assert.rejects(load({ readyWarmup: '/a b' }), {
    message: '--ready-warmup: expected a list of paths such as "/health", received ["/a","b"]'
  })
})

test('a variable that is empty is not set', async (t) => {
  assert.equal((await workingFolder(t).load({}, { CLUSTERDECK_WORKERS: '', CLUSTERDECK_CONFIG: '' })).workers, 6)
})

test('lists are separated by commas or, for arguments, by spaces', async (t) => {
  const config = await workingFolder(t).load({ adminAllowedHosts: 'a.example, b.example',
    execArgv: '--max-old-space-size=64  --no-warnings', args: ['with space', ''] })
  assert.deepEqual([config.admin.allowedHosts, config.execArgv, config.args], [['a.example', 'b.example'], [
    '--max-old-space-size=64',
    '--no-warnings'
  ], ['with space', '']])
})

test('the configuration cannot be changed', async (t) => {
  const config = await workingFolder(t).load()
  assert.throws(() => {
    config.restart.intensity.restarts = 99
  }, TypeError)
})

for (const [name, { flags, env, file }, message] of [['a flag of the wrong type', { flags: { workers: 'many' } },
  /^--workers: expected an integer from 1 to 256 or "max", received "many"$/], ['a flag out of range', {
  flags: { adminPort: '65536' }
}, /^--admin-port: expected an integer from 0 to 65535, received 65536$/], ['a flag that is no whole number', {
  flags: { readyTimeoutMs: '1.5' }
}, /^--ready-timeout-ms: expected an integer from 0 to 2147483647, received 1.5$/], ['watching what nobody edits', {
  flags: { watch: 'true', releasesMode: 'folder' }
}, /^--watch: expected releases\.mode "live" \(--releases-mode live\), .*, received releases\.mode "folder"$/], [
  'no workers at all',
  { flags: { workers: '0' } },
  /^--workers: expected an integer from 1 /
], ['a variable of the wrong type', { env: { CLUSTERDECK_ADMIN_PORT: 'http' } },
  /^CLUSTERDECK_ADMIN_PORT: expected an integer from 0 to 65535, received "http"$/], ['a choice that is none', {
  env: { CLUSTERDECK_DISPATCH: 'round-robin' }
}, /^CLUSTERDECK_DISPATCH: expected one of "shared", "sticky", received "round-robin"$/], [
  'a syslog that is no address',
  { env: { CLUSTERDECK_TELEMETRY_SYSLOG: 'tcp://a' } },
  /^CLUSTERDECK_TELEMETRY_SYSLOG: expected "local" or an address such as "udp:.*received "tcp:\/\/a"$/
], ['a syslog at a port that there is not', { env: { CLUSTERDECK_TELEMETRY_SYSLOG: 'udp://a:99999' } },
  /^CLUSTERDECK_TELEMETRY_SYSLOG: expected "local" or an address such as "udp:.*received "udp:\/\/a:99999"$/], [
  'a standby where no two may live side by side',
  { flags: { rolloutOrder: 'stop-first', standby: '1' } },
  /^--standby: expected 0 with rollout\.order "stop-first", as a standby worker runs beside those of the slots, received 1$/
], ['a standby for a job', { flags: { restartPolicy: 'never', standby: '1' } },
  /^--standby: expected 0 with restart\.policy "never", as a standby worker would do the work of a job early, received 1$/],
  ['a canary where no two may live side by side', { flags: { rolloutOrder: 'stop-first' },
    file: { rollout: { canary: { workers: 2 } } } },
    /^rollout\.canary\.workers in .*: expected 0 with rollout\.order "stop-first", as a canary serves beside all old workers, received 2$/],
  ['a time that is none', { flags: { restartCron: '61 4 * * *' } },
    /^--restart-cron: expected a cron expression of 5 fields, or 6 with seconds first, such as "0 4 \* \* \*", or "", received "61 4 \* \* \*"$/],
  ['a time that never comes', { flags: { restartCron: '0 4 30 2 *' } },
    /^--restart-cron: expected a cron expression .*, received "0 4 30 2 \*"$/], ['a time with too few fields', {
  env: { CLUSTERDECK_RESTART_CRON: '@daily' }
}, /^CLUSTERDECK_RESTART_CRON: expected a cron expression .*, received "@daily"$/], ['sessions without sticky', {
  flags: { stickyByHeader: 'mcp-session-id' }
}, /^--sticky-by-header: expected dispatch "sticky" with it, received dispatch "shared"$/], [
  'a header that has no name',
  { flags: { dispatch: 'sticky', stickyByHeader: 'a b' } },
  /^--sticky-by-header: expected the name of a header such as "mcp-session-id", received "a b"$/
], ['an option of the wrong type in the file', { file: { restart: { intensity: { restarts: 'x' } } } },
  /^restart\.intensity\.restarts in .*clusterdeck\.config\.json: expected an integer from 1 to 10000, received "x"$/], [
  'an argument that is none, and may be a secret',
  { file: { args: '--password hush' } },
  /^args in .*: expected a list of texts; wrong is args$/
], ['null in the file', { file: { workers: null } }, /^workers in .*: expected .*, received null$/], [
  'a value where a group belongs',
  { file: { admin: 9777 } },
  /^admin in .*: expected an object, received 9777$/
], ['a group where a value belongs', { file: { workers: { n: 3 } } }, /^workers in .*: expected .*, received {"n":3}$/],
  ['a list in place of the options', { file: [] },
    /clusterdeck\.config\.json: expected an object of options, received a list$/]] as [string,
    { flags?: Record<string, string>, env?: Record<string, string>, file?: unknown }, RegExp][])
{
  test(`${name} is refused with option, expected and received`, async (t) => {
    const { load } = workingFolder(t, file ? { 'clusterdeck.config.json': JSON.stringify(file) } : {})
    await assert.rejects(load(flags, env), { name: 'DeckError', code: 'invalid-config', message })
  })
}

for (const [name, { flags, env, file }, message] of [['flag', { flags: { wrokers: '3' } },
  /^unknown option "wrokers" \(did you mean "workers"\?\)$/], ['variable', { env: { CLUSTERDECK_WORKRES: '3' } },
  /^unknown option "CLUSTERDECK_WORKRES" in the environment \(did you mean "CLUSTERDECK_WORKERS"\?\)$/], ['key', {
  file: { dispach: 'shared' }
}, /^unknown option "dispach" in .*\.json \(did you mean "dispatch"\?\)$/], ['key of a group', {
  file: { admin: { prot: 1 } }
}, /^unknown option "admin\.prot" in .*\.json \(did you mean "admin\.port"\?\)$/], ['group', {
  file: { redy: { timeoutMs: 1 } }
}, /^unknown option "redy" in .*\.json \(did you mean "ready"\?\)$/], ['flat key', { file: { adminPort: 1 } },
  /^unknown option "adminPort" in .*\.json \(did you mean "admin\.port"\?\)$/]] as [string,
    { flags?: Record<string, string>, env?: Record<string, string>, file?: unknown }, RegExp][])
{
  test(`an unknown ${name} is refused with the nearest right name`, async (t) => {
    const { load } = workingFolder(t, file ? { 'clusterdeck.config.json': JSON.stringify(file) } : {})
    await assert.rejects(load(flags, env), { name: 'DeckError', code: 'unknown-option', message })
  })
}

test('variables of workers, of the commands and of others are no mistake', async (t) => {
  await workingFolder(t).load({}, { CLUSTERDECK_SLOT: '1', CLUSTERDECK_RELEASE: 'r1', CLUSTERDECK_TOKEN: 'x',
    CLUSTERDECK_TOKEN_FILE: 'x', CLUSTERDECK_URL: 'x', CLUSTERDECK_SOMETHING_ELSE: '1' })
})

test('a config file of another shell runs in a process with its variables and in its folder, and what it does there stays there', async (t) => {
  const { cwd } = workingFolder(t, { 'word.txt': 'word',
    'tells.mjs':
      'import { readFileSync } from "node:fs"\nprocess.env.SET = "by-the-file"\nexport default { name: [process.env.HERE, process.env.SET, process.env.HOME ?? "none", readFileSync("word.txt")].join("-"), args: process.argv.slice(3) }',
    'throws.mjs': 'throw new Error("no database\\nat line 2")', 'gives.mjs': 'export default { name: () => {} }',
    'ends.mjs': 'process.exit(0)', 'broken.json': '{' })
  const load = (config: string) =>
    loadConfig({ flags: { entry: 'app.js', config }, env: { PATH: process.env.PATH, HERE: 'here' }, cwd,
      isApart: true })
  assert.equal((await load('tells.mjs')).name, 'here-by-the-file-none-word')
  assert.equal(process.env.SET, undefined)
  for (const [file, reason] of [['throws.mjs', 'no database$'], ['gives.mjs', '.*could not be cloned'], ['ends.mjs',
    'it ended the process$'], ['broken.json', 'no JSON']])
  {
    await assert.rejects(load(file), { code: 'invalid-config',
      message: new RegExp(`${file}: expected a config file that loads, received: ${reason}`) })
  }
})

test('a config file of another shell that never finishes is given up, also where it never lets go', async (t) => {
  const { cwd } = workingFolder(t, { 'waits.mjs': 'await new Promise((resolve) => setTimeout(resolve, 60_000))',
    'loops.mjs': 'for (;;);' })
  for (const file of ['waits.mjs', 'loops.mjs']) {
    await assert.rejects(readConfigFile(file, cwd, { apartWith: {}, patienceMs: 300 }), { code: 'invalid-config',
      message: /received: nothing within 300 ms$/ })
  }
})

test('a config file that does not load says why, without a stack', async (t) => {
  const { load } = workingFolder(t, { 'broken.json': '{"workers": ', 'secret.json': '{"env":{"PW":hunter2}}',
    'throws.mjs': 'throw new Error("no database\\nat line 2")' })
  await assert.rejects(load({ config: 'broken.json' }), { code: 'invalid-config',
    message: /broken\.json: expected a config file that loads, received: .*JSON/ })
  await assert.rejects(load({ config: 'secret.json' }),
    ({ message }) => /received: no JSON/.test(message) && !message.includes('hunter2'))
  await assert.rejects(load({ config: 'throws.mjs' }), { code: 'invalid-config',
    message: /throws\.mjs: expected a config file that loads, received: no database$/ })
  await assert.rejects(load({ config: 'absent.json' }), { code: 'invalid-config',
    message: /^config: expected a file, received .*absent\.json, which does not exist$/ })
})

test('an admin port that others reach in plain text is refused unless that is said twice', async (t) => {
  const { load } = workingFolder(t)
  for (const adminHost of ['0.0.0.0', '::', '10.0.0.7', 'ops.example.com', '128.0.0.1', '127.evil.example']) {
    await assert.rejects(load({ adminHost }), { code: 'invalid-config',
      message:
        /^admin\.host: expected an address of this machine alone, such as 127\.0\.0\.1, received ".*set admin\.tls, or admin\.publicUrl to the https address/ })
    await assert.rejects(load({ adminHost, adminPublicUrl: 'http://ops.example.com' }), { code: 'invalid-config' })
    for (const more of [{ adminPlainHttp: true }, { adminPublicUrl: 'https://ops.example.com' }, {
      adminTlsCert: 'cert.pem',
      adminTlsKey: 'key.pem'
    }]) await load({ adminHost, ...more })
  }
  for (const adminHost of ['127.0.0.1', '127.8.9.10', 'localhost', '::1', '[::1]']) await load({ adminHost })
})

test('where a proxy shows the admin page is said by its address, by its path or by both alike', async (t) => {
  const { load } = workingFolder(t)
  const basePath = async (flags: Record<string, string>) => (await load(flags)).admin.basePath
  assert.equal(await basePath({ adminPublicUrl: 'https://ops.example.com/deck/' }), '/deck')
  assert.equal(await basePath({ adminPublicUrl: 'https://ops.example.com/' }), undefined)
  assert.equal(await basePath({ adminBasePath: '/a/b' }), '/a/b')
  assert.equal(await basePath({ adminBasePath: '/deck', adminPublicUrl: 'https://ops.example.com/deck' }), '/deck')
  await assert.rejects(load({ adminBasePath: '/other', adminPublicUrl: 'https://ops.example.com/deck' }), {
    code: 'invalid-config',
    message: 'admin.basePath: expected "/deck", the path of admin.publicUrl, received "/other"'
  })
  for (const adminBasePath of ['deck', '/deck/', '/', '/a b', '/"onload=', '//evil.example'])
    await assert.rejects(load({ adminBasePath }), { code: 'invalid-config' }, adminBasePath)
  for (const adminPublicUrl of ['ops.example.com', 'ftp://ops.example.com', 'https://me:secret@ops.example.com',
    'https://ops.example.com/?a', 'https://ops.example.com/"x'])
    await assert.rejects(load({ adminPublicUrl }), { code: 'invalid-config' }, adminPublicUrl)
  await assert.rejects(load({ adminTlsCert: 'cert.pem' }), { code: 'invalid-config',
    message: 'admin.tls.key: expected a file, as admin.tls.cert is set, received nothing' })
})

test('the entry defaults to "main" of the package.json', async (t) => {
  const { cwd, load } = workingFolder(t, { 'package.json': '{"main": "lib/server.mjs"}', 'lib/server.mjs': '' })
  assert.equal((await load({ entry: undefined })).entry, join(cwd, 'lib/server.mjs'))
})

test('of an entry and a script the one from the stronger source counts; both from one are refused', async (t) => {
  const { cwd, load } = workingFolder(t, { 'package.json': '{ "scripts": { "serve": "LEVEL=1 node other.js --own" } }',
    'other.js': '', 'clusterdeck.config.json': '{ "script": "serve", "args": ["more"], "env": { "LEVEL": "2" } }' })
  const byFile = await load({ entry: undefined })
  assert.deepEqual([byFile.entry, byFile.args, byFile.env.LEVEL, byFile.script], [join(cwd, 'other.js'), ['--own',
    'more'], '2', 'serve'])
  assert.equal(byFile.launch?.said, 'script serve more → LEVEL=… node other.js --own more')
  const byFlag = await load()
  assert.deepEqual([byFlag.entry, byFlag.args, byFlag.script, byFlag.launch], [join(cwd, 'app.js'), ['more'], undefined,
    undefined])
  assert.equal((await load({ entry: undefined }, { CLUSTERDECK_ENTRY: 'app.js' })).entry, join(cwd, 'app.js'))
  await assert.rejects(load({ script: 'serve' }), { code: 'invalid-config',
    message: '--script: expected either entry or script, received both' })
})

test('the entry is found as node would find it, and symbolic links stay', async (t) => {
  const { cwd, load } = workingFolder(t, { 'lib/index.js': '', 'pkg/package.json': '{"main": "main.cjs"}',
    'pkg/main.cjs': '' })
  symlinkSync('lib', join(cwd, 'current'))
  assert.equal((await load({ entry: 'app' })).entry, join(cwd, 'app.js'))
  assert.equal((await load({ entry: 'lib' })).entry, join(cwd, 'lib/index.js'))
  assert.equal((await load({ entry: 'pkg' })).entry, join(cwd, 'pkg/main.cjs'))
  assert.equal((await load({ entry: 'current/index.js' })).entry, join(cwd, 'current/index.js'))
})

test('an entry that does not exist, or is no file, is one clear error', async (t) => {
  const { cwd, load } = workingFolder(t, { 'empty/readme': '' })
  await assert.rejects(load({ entry: 'nix.js' }), { code: 'entry-not-found',
    message: `entry: expected a file, received ${join(cwd, 'nix.js')}, which does not exist` })
  await assert.rejects(load({ entry: 'empty' }), { code: 'entry-not-found', message: /which is none$/ })
  await assert.rejects(load({ entry: undefined }), { code: 'entry-not-found',
    message: /expected a file, or a package\.json with "main"/ })
})

test('variables for workers are texts or null, and what is wrong with one is told without its value', async (t) => {
  const files = {
    'clusterdeck.config.json': JSON.stringify({ env: { LEVEL: 'info', DEBUG: null }, envFile: 'app.env' })
  }
  const { cwd, load } = workingFolder(t, files)
  const { env, envFile } = await load()
  writeFileSync(join(cwd, 'clusterdeck.config.json'), `\uFEFF${files['clusterdeck.config.json']}`)
  assert.deepEqual((await load()).env, env, 'an editor may begin the file with a byte order mark')
  assert.deepEqual([env, envFile], [{ LEVEL: 'info', DEBUG: null }, join(cwd, 'app.env')])
  for (const wrong of [{ PORT: 31337 }, { 'A=B': 'hunter2' }, { '': 'hunter2' }, { A: 'hunter2\0' }, ['hunter2'],
    'hunter2'])
  {
    writeFileSync(join(cwd, 'clusterdeck.config.json'), JSON.stringify({ env: wrong }))
    await assert.rejects(load(), ({ code, message }) =>
      code === 'invalid-config' && /^env in .*expected an object of texts/.test(message) &&
      !/hunter2|31337/.test(message), JSON.stringify(wrong))
  }
})

test('the repository of deploys is a folder or an address, and no address is a command or has a password', async (t) => {
  const { cwd, load } = workingFolder(t)
  const git = async (value: string) => (await load({ releasesGit: value })).releases.git
  assert.equal(await git('../shop.git'), join(cwd, '..', 'shop.git'))
  for (const address of ['https://git.example.com/shop.git', 'ssh://git@example.com:22/shop',
    'git@example.com:shop.git', 'example.com:shop', 'file:///srv/shop.git']) assert.equal(await git(address), address)
  for (const wrong of ['ext::sh -c id', 'ext::ssh://x/y', 'https://ada:secret@example.com/x', 'rsync://example.com/x',
    'a@b:-x', 'x\ny', 'https://example.com/x?token=secret', 'ada:secret@example.com:x', 'git://secret@example.com/x'])
  {
    await assert.rejects(git(wrong), { code: 'invalid-config',
      message: /expected a folder, or an address(?!.*secret)/ }, wrong)
  }
})
