import assert from 'node:assert/strict'
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { configFromOptions, loadConfig, withValues, type Config } from '../../../server/config/config.ts'
import { readConfigFile } from '../../../server/config/file.ts'
import { OPTIONS } from '../../../server/config/options.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'
import { assertRetold } from '../../support/golden.ts'
import type { DeckError } from '../../../server/errors.ts'

const PLACE = tempFolder()
const FILE = 'clusterdeck.config.json'

/** A working folder with these files in it, and a `load` that reads the configuration there. */
function workingFolder (files: Record<string, string> = {}) {
  const cwd = tempFolder()
  writeFiles(cwd, { 'app.js': '', ...files })
  return { cwd,
    load: (flags: Record<string, unknown> = {}, env: Record<string, string> = {}) =>
      loadConfig({ flags: { entry: 'app.js', ...flags }, env, cwd, countCpus: () => 6 }) }
}

/** `…`: the working folder */
const withoutPlace = (text: string) => text.replaceAll(PLACE, '…').replaceAll(dirname(PLACE), '…/..')

/** `given`: flags, variables and at the end the JSON of a config file, as somebody would write them */
async function loadGiven (given: string) {
  const [, line, file = ''] = /^(.*?)(?:(?:^| )(\{".*|\[\]))?$/.exec(given) ?? assert.fail(given)
  const words = line.match(/(?:"(?:\\.|[^"])*"|[^\s"])+/g) ?? []
  const flags: Record<string, unknown> = /"(apps|entry)"/.test(file) ? {} : { entry: 'app.js' }
  const env: Record<string, string> = {}
  for (const [at, word] of words.entries()) {
    const [, name, value] = /^([A-Z_]+)=(.*)/.exec(word) ?? []
    const next = words[at + 1] ?? ''
    const text = next.startsWith('"') ? JSON.parse(next) : next
    if (name) env[name] = value
    else if (word.startsWith('--'))
      flags[OPTIONS.find(({ flag }) => flag === word)?.key ?? word.slice(2)] = /^(--|[A-Z_]+=|$)/.test(next)
        ? 'true'
        : text
  }
  writeFiles(PLACE, { 'app.js': '', 'shop.js': '', 'mail.js': '', ...(file && { [FILE]: file }) })
  return await loadConfig({ flags, env, cwd: PLACE, countCpus: () => 6 }).finally(() =>
    rmSync(join(PLACE, FILE), { force: true })
  )
}

test('without anything set the defaults hold', async () => {
  const { cwd, load } = workingFolder()
  assert.deepEqual(await load(), { runtime: 'node',
    appNode: { file: process.execPath, version: process.versions.node, by: 'command' }, entry: join(cwd, 'app.js'),
    args: [], env: {}, execArgv: [], cwd, workers: 6, dispatch: 'shared',
    sticky: { by: {}, idleMs: 600_000, failoverMs: 2000 }, rebalance: 'on', compileCache: 'off',
    instanceVariable: 'NODE_APP_INSTANCE', portPerSlot: 0, standby: 0, dataDir: join(cwd, '.clusterdeck'),
    admin: { host: '127.0.0.1', port: 9777, allowedHosts: [], sessionTtlMs: 12 * 60 * 60 * 1000, tls: {},
      plainHttp: false, proxyAuth: { from: [], roles: {} } }, start: { first: 'one' },
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
    heartbeat: { everyMs: 60_000 }, logs: { maxBytes: 10 * 1024 * 1024, maxFiles: 5, mirror: 'auto' },
    history: { maxAgeMs: 30 * 24 * 60 * 60 * 1000, maxEvents: 1_000_000 } })
})

test('what a program says comes before the config file that it names; no other file counts', async () => {
  const { cwd } = workingFolder({ 'clusterdeck.config.json': JSON.stringify({ workers: 9, orphanMs: 9 }),
    'other/deck.json': JSON.stringify({ entry: '../app.js', workers: 2, admin: { port: 1111, host: '::1' } }) })
  const alone = await configFromOptions({ entry: 'app.js', workers: undefined, admin: undefined }, { cwd,
    countCpus: () => 6 })
  assert.deepEqual([alone.workers, alone.orphanMs], [6, 60_000])
  const config = await configFromOptions({ workers: 3, admin: { port: 2222 } }, { configFile: 'other/deck.json', cwd })
  assert.deepEqual([config.entry, config.workers, config.admin.port, config.admin.host], [join(cwd, 'app.js'), 3, 2222,
    '::1'])
})

test('every option can be set by flag, by environment and in the file', async () => {
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
    'keeper.hungAfterMs': ['5500', 5500], 'watchdog.stack': ['off', 'off'],
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
    'admin.proxyAuth.from': ['10.0.0.5, uid:0', ['10.0.0.5', 'uid:0']],
    'admin.proxyAuth.roles': ['ops=admin, *=viewer', { ops: 'admin', '*': 'viewer' }],
    'admin.proxyAuth.user': ['Remote-User', 'Remote-User'],
    'admin.proxyAuth.groups': ['Remote-Groups', 'Remote-Groups'],
    'admin.proxyAuth.secret': ['0123456789abcdef', '0123456789abcdef'],
    'admin.proxyAuth.signOutUrl': ['/oauth2/sign_out', '/oauth2/sign_out'],
    'fleet.servers': ['nats://10.0.0.5:4222,tls://b', ['nats://10.0.0.5:4222', 'tls://b']],
    'heartbeat.url': ['https://example.com/ping', 'https://example.com/ping'], 'heartbeat.everyMs': ['15000', 15_000],
    'fleet.name': ['shops', 'shops'], 'fleet.member': ['web-1', 'web-1'],
    'fleet.labels': ['zone=a, disk=ssd', { zone: 'a', disk: 'ssd' }],
    'fleet.accept': ['operate', 'operate'] } as typeof samples
  const [adminProxyAuthFrom, adminProxyAuthRoles] = ['10.0.0.5', 'ops=admin']
  const pairs = { 'sticky.by.header': { dispatch: 'sticky' }, 'sticky.by.cookie': { dispatch: 'sticky' },
    'sticky.by.query': { dispatch: 'sticky' }, 'sticky.by.path': { dispatch: 'sticky' },
    'admin.proxyAuth.from': { adminProxyAuthRoles }, 'admin.proxyAuth.roles': { adminProxyAuthFrom },
    'admin.tls.cert': { adminTlsKey: 'key.pem' }, 'admin.tls.key': { adminTlsCert: 'cert.pem' },
    'fleet.tls.cert': { fleetTlsKey: 'key.pem' }, 'fleet.tls.key': { fleetTlsCert: 'cert.pem' } } as Record<string,
      Record<string, string>>
  const isStart = ({ name }: { name: string }) => name === 'entry' || name === 'script'
  for (const option of OPTIONS.filter(({ kind }) => kind !== 'file')) {
    const { cwd, load } = workingFolder({ 'package.json': '{ "scripts": { "::1": "node app.js" } }' })
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

test('config files are found as .js, .mjs and .json, in this order', async () => {
  const { cwd, load } = workingFolder({ 'clusterdeck.config.json': '{"workers": 3}' })
  assert.equal((await load()).workers, 3)
  writeFileSync(join(cwd, 'clusterdeck.config.mjs'), 'export default { workers: 2 }')
  assert.equal((await load()).workers, 2)
  writeFileSync(join(cwd, 'clusterdeck.config.js'), 'module.exports = { workers: 1 }')
  assert.equal((await load()).workers, 1)
})

test('paths in a config file start from its folder', async () => {
  const secrets = { from: 'file', file: 'secrets.env', format: 'env' }
  const { cwd, load } = workingFolder({ 'deploy/server.js': '',
    'deploy/clusterdeck.json': JSON.stringify({ dataDir: 'data', entry: 'server.js', secrets }) })
  const config = await load({ config: 'deploy/clusterdeck.json', entry: undefined })
  assert.deepEqual([config.dataDir, config.entry], [join(cwd, 'deploy/data'), join(cwd, 'deploy/server.js')])
  assert.deepEqual(config.secrets, { ...secrets, file: join(cwd, 'deploy/secrets.env') })
})

test('what is set counts, and what is wrong is refused with option, expected and received, but no secret', async () => {
  const refusals: string[] = []
  const shown = (config: Config) =>
    OPTIONS.map(({ name, path }) =>
      `${name} ${JSON.stringify(path.reduce<unknown>((object, key) => Object(object)[key], config))}`
    )
  const usual = shown(await loadGiven(''))
  await assertRetold(import.meta, 'config', async (given) => withoutPlace(await told(given)))
  assert.ok(refusals.length > 100)
  assert.doesNotMatch(refusals.join(), /a-secret/)

  async function told (given: string) {
    try {
      return shown(await loadGiven(given)).filter((each) => !usual.includes(each)).join(', ')
    } catch (error) {
      const { code, message } = error as DeckError
      refusals.push(message)
      return `${code}: ${message}`
    }
  }
})

test('a value of a program that says no JSON of itself is refused as any other', async () => {
  const given = { workers: { toJSON () {} } as unknown as number }
  await assert.rejects(configFromOptions(given, { cwd: PLACE }), { code: 'invalid-config',
    message: /^workers: expected .*, received undefined$/ })
})

test('labels of a fleet have a bound in all', async () => {
  const fleetLabels = Array.from({ length: 50 }, (_, index) => `l${index}=${'x'.repeat(200)}`).join()
  await assert.rejects(workingFolder().load({ fleetLabels }), {
    message: /^fleet\.labels: expected at most 8192 bytes in all, received \d+$/
  })
})

test('an editor may begin a config file with a byte order mark, and arguments stay as they are', async () => {
  const { load } = workingFolder({ 'clusterdeck.config.json': '\uFEFF{ "env": { "LEVEL": "info" } }' })
  const { env, args } = await load({ args: ['with space', ''] })
  assert.deepEqual([env, args], [{ LEVEL: 'info' }, ['with space', '']])
})

test('the configuration cannot be changed', async () => {
  const config = await workingFolder().load()
  assert.throws(() => {
    config.restart.intensity.restarts = 99
  }, TypeError)
})

test('a config file of another shell runs in a process with its variables and in its folder, and what it does there stays there', async () => {
  const { cwd } = workingFolder({ 'word.txt': 'word',
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

test('a config file of another shell that never finishes is given up, also where it never lets go', async () => {
  const { cwd } = workingFolder({ 'waits.mjs': 'await new Promise((resolve) => setTimeout(resolve, 60_000))',
    'loops.mjs': 'for (;;);' })
  for (const file of ['waits.mjs', 'loops.mjs']) {
    await assert.rejects(readConfigFile(file, cwd, { apartWith: {}, patienceMs: 300 }), { code: 'invalid-config',
      message: /received: nothing within 300 ms$/ })
  }
})

test('a config file that does not load says why, without a stack', async () => {
  const { load } = workingFolder({ 'broken.json': '{"workers": ', 'secret.json': '{"env":{"PW":hunter2}}',
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

test('the entry defaults to "main" of the package.json', async () => {
  const { cwd, load } = workingFolder({ 'package.json': '{"main": "lib/server.mjs"}', 'lib/server.mjs': '' })
  assert.equal((await load({ entry: undefined })).entry, join(cwd, 'lib/server.mjs'))
})

test('of an entry and a script the one from the stronger source counts; both from one are refused', async () => {
  const { cwd, load } = workingFolder({ 'package.json': '{ "scripts": { "serve": "LEVEL=1 node other.js --own" } }',
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

test('the entry is found as node would find it, and symbolic links stay', async () => {
  const { cwd, load } = workingFolder({ 'lib/index.js': '', 'pkg/package.json': '{"main": "main.cjs"}',
    'pkg/main.cjs': '' })
  symlinkSync('lib', join(cwd, 'current'))
  assert.equal((await load({ entry: 'app' })).entry, join(cwd, 'app.js'))
  assert.equal((await load({ entry: 'lib' })).entry, join(cwd, 'lib/index.js'))
  assert.equal((await load({ entry: 'pkg' })).entry, join(cwd, 'pkg/main.cjs'))
  assert.equal((await load({ entry: 'current/index.js' })).entry, join(cwd, 'current/index.js'))
})

test('an entry that does not exist, or is no file, is one clear error', async () => {
  const { cwd, load } = workingFolder({ 'empty/readme': '' })
  await assert.rejects(load({ entry: 'nix.js' }), { code: 'entry-not-found',
    message: `entry: expected a file, received ${join(cwd, 'nix.js')}, which does not exist` })
  await assert.rejects(load({ entry: 'empty' }), { code: 'entry-not-found', message: /which is none$/ })
  await assert.rejects(load({ entry: undefined }), { code: 'entry-not-found',
    message: /expected a file, or a package\.json with "main"/ })
})

test('a change while another program than Node runs is held against the same, and leaves it what it is', async () => {
  const config = await configFromOptions({ entry: '/bin/sh' }, { cwd: PLACE, countCpus: () => 2 })
  assert.throws(() => withValues(config, { standby: 1 }), { message: /^standby: expected 0 / })
  const { runtime, drain } = withValues(config, { 'drain.deadlineMs': 5 })
  assert.deepEqual([runtime, drain.deadlineMs], ['other', 5])
})
