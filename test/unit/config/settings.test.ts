import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { configFromOptions, loadConfig } from '../../../server/config/config.ts'
import { OPTIONS } from '../../../server/config/options.ts'
import { createSettings, type Settings } from '../../../server/config/settings.ts'
import { tempFolder } from '../../support/folder.ts'
import { DeckError } from '../../../server/errors.ts'

const SECRET = 'a secret of its own'

async function configure (file: Record<string, unknown> = {}, flags: Record<string, unknown> = {},
  env: Record<string, string> = {})
{
  const cwd = tempFolder()
  writeFileSync(join(cwd, 'app.js'), '')
  writeFileSync(join(cwd, 'clusterdeck.config.json'), JSON.stringify(file))
  const config = await loadConfig({ flags: { entry: 'app.js', ...flags }, env, cwd, countCpus: () => 6 })
  return { cwd, config, settings: createSettings(config, { key: 'key' }) }
}

function change (settings: Settings, wanted: Record<string, unknown>) {
  const { config, changes } = settings.plan(wanted)
  settings.adopt(config)
  return changes
}

function find (settings: Settings, name: string) {
  const setting = settings.list().find((each) => each.name === name)
  assert.ok(setting, name)
  return setting
}

describe('settings', () => {
  test('take a number with its unit, and refuse another unit', async () => {
    const { settings } = await configure()
    assert.deepEqual(change(settings, { 'drain.deadlineMs': '5 min', 'recycle.maxRssBytes': '300 MB' }), [{
      name: 'drain.deadlineMs',
      from: 30_000,
      to: 300_000
    }, { name: 'recycle.maxRssBytes', from: 0, to: 300 * 1024 ** 2 }])
    assert.throws(() => settings.plan({ 'recycle.maxRssBytes': '5 min' }), { code: 'invalid-config',
      message: /^recycle\.maxRssBytes: expected 0 or .* such as "512 MB", received "5 min"$/ })
  })

  test('take standby workers while the cluster runs, but not where none can be held', async () => {
    const { settings } = await configure()
    assert.deepEqual(change(settings, { standby: 2 }), [{ name: 'standby', from: 0, to: 2 }])
    const { settings: stopFirst } = await configure({ rollout: { order: 'stop-first' } })
    assert.throws(() => stopFirst.plan({ standby: 1 }), { code: 'invalid-config',
      message: /^standby: expected 0 with rollout\.order "stop-first", .*, received 1$/ })
  })

  test('say of every option where its value comes from', async () => {
    const { cwd, settings } = await configure({ drain: { deadlineMs: 1 }, ready: { path: '/health' } }, {
      stopTermGraceMs: '2'
    }, { CLUSTERDECK_CRASH_GRACE_MS: '3', CLUSTERDECK_DRAIN_IDLE_GRACE_MS: '4' })
    const origins = settings.list().filter(({ source }) => source !== 'default').map((
      { name, value, source, from }
    ) => [name, value, source, from])
    const file = join(cwd, 'clusterdeck.config.json')
    assert.deepEqual(origins, [['entry', join(cwd, 'app.js'), 'flag', 'entry'], ['ready.path', '/health', 'file', file],
      ['drain.idleGraceMs', 4, 'environment', 'CLUSTERDECK_DRAIN_IDLE_GRACE_MS'], ['drain.deadlineMs', 1, 'file', file],
      ['stop.termGraceMs', 2, 'flag', '--stop-term-grace-ms'], ['crash.graceMs', 3, 'environment',
      'CLUSTERDECK_CRASH_GRACE_MS']])
    assert.deepEqual(settings.list().map(({ name }) => name), OPTIONS.map(({ name }) => name))
    change(settings, { 'drain.deadlineMs': 10 })
    const { source, from, value, default: fallback } = find(settings, 'drain.deadlineMs')
    assert.deepEqual([source, from, value, fallback], ['operator', null, 10, 30_000])
    const program = createSettings(await configFromOptions({ entry: 'app.js', orphanMs: 5 }, { cwd }), { key: 'key' })
    assert.deepEqual([find(program, 'orphanMs').source, find(program, 'orphanMs').value], ['program', 5])
  })

  test('never show what may be a secret', async () => {
    const hook = { kind: 'webhook', url: 'https://example.com/hook', secret: SECRET } as const
    const { settings } = await configure({ env: { PASSWORD: SECRET }, args: [SECRET], execArgv: [`--title=${SECRET}`],
      alerts: [hook], heartbeat: { url: `https://example.com/ping/${SECRET}` },
      secrets: { from: 'command', command: ['vault', SECRET] }, hooks: { onCrash: { command: ['mail', SECRET] } },
      jobs: { nightly: { command: `mail ${SECRET}` } } })
    assert.ok(!JSON.stringify(settings.list()).includes(SECRET))
    assert.deepEqual(
      settings.list().filter(({ isSecret }) => isSecret).map(({ name, value, source }) => [name, value, source]),
      [['args', null, 'file'], ['execArgv', null, 'file'], ['env', null, 'file'], ['secrets', null, 'file'], [
        'admin.proxyAuth.secret',
        null,
        'default'
      ], ['hooks.build', null, 'default'], ['hooks.beforeStart', null, 'default'], ['hooks.beforeDeploy', null,
        'default'], ['hooks.afterDeploy', null, 'default'], ['hooks.onCrash', null, 'file'], ['jobs', null, 'file'], [
        'alerts',
        null,
        'file'
      ], ['heartbeat.url', null, 'file'], ['fleet.servers', null, 'default'], ['fleet.token', null, 'default']]
    )
  })

  test('have one digest as long as the values are the same, and another one after each change', async () => {
    const { config, settings } = await configure()
    const first = settings.digest()
    assert.deepEqual(change(settings, { 'drain.deadlineMs': 10 }), [{ name: 'drain.deadlineMs', from: 30_000, to: 10 }])
    assert.notEqual(settings.digest(), first)
    change(settings, { 'drain.deadlineMs': 30_000 })
    assert.equal(settings.digest(), first)
    assert.equal(find(settings, 'drain.deadlineMs').source, 'default', 'a change that was taken back is none')
    assert.notEqual(createSettings(config, { key: 'other' }).digest(), first,
      'a short secret cannot be guessed from it')
  })

  test('tell what is configured anew, and when that counts', async () => {
    const { settings, config } = await configure({ workers: 2, args: ['a'], rollout: { surge: 2 } })
    const { config: next } = await configure({ workers: 3, args: ['b'], secrets: { from: 'systemd-creds' },
      rollout: { surge: 3 }, releases: { shared: ['.env'], keep: 5 } })
    const same = { ...next, entry: config.entry, cwd: config.cwd, dataDir: config.dataDir }
    const expected = [{ name: 'args', from: null, to: null, takesEffect: 'deploy' }, { name: 'secrets', from: null,
      to: null, takesEffect: 'deploy' }, { name: 'workers', from: 2, to: 3, takesEffect: 'start' }, {
      name: 'rollout.surge',
      from: 2,
      to: 3,
      takesEffect: 'now'
    }, { name: 'releases.shared', from: [], to: ['.env'], takesEffect: 'deploy' }, { name: 'releases.keep', from: 10,
      to: 5, takesEffect: 'start' }]
    assert.deepEqual(settings.changesIn(same, config), expected)
    change(settings, { 'rollout.surge': 3 })
    assert.deepEqual(settings.changesIn(same, config), expected,
      'an operator has changed what runs, and not the configuration')
    assert.deepEqual(settings.changesIn(same, same).map(({ name }) => name), ['workers', 'rollout.surge',
      'releases.keep'], 'a deploy has read the others')
  })

  test('refuse all of a change where one part is wrong, in the words of a start', async () => {
    const { settings } = await configure()
    const before = settings.list()
    const refusals = [[{ 'drain.idleGraceMs': 1, 'drain.deadlineMs': '10 MB' }, 'invalid-config',
      /^drain\.deadlineMs: expected an integer from 0 to 2147483647, or .* "30 s", received "10 MB"$/], [{
      'drain.deadlineMs': null
    }, 'invalid-config', /received null$/], [{ 'drain.idleGraceMs': 1, dispatch: 'sticky' }, 'not-possible',
      /^dispatch can only be set at a start$/], [{ workers: 3 }, 'not-possible',
      /^workers can only be set at a start; PUT \/api\/v1\/scale/], [{ 'drain.deadlinMs': 1 }, 'unknown-option',
      /^unknown option "drain\.deadlinMs" \(did you mean "drain\.deadlineMs"\?\)$/], [{ drain: { deadlineMs: 1 } },
      'unknown-option', /^drain: expected the name of one option, such as "drain\.idleGraceMs"/], [
      JSON.parse('{"__proto__": 1}'),
      'unknown-option',
      /__proto__/
    ]] as [Record<string, unknown>, string, RegExp][]
    for (const [wanted, code, message] of refusals) {
      assert.throws(() => settings.plan(wanted), (error: DeckError) => {
        assert.equal(error.code, code)
        assert.match(error.message, message)
        return true
      })
    }
    assert.deepEqual(settings.list(), before)
  })

  test('go on with the changes of the master before, but for what was configured anew or is not valid any more', async () => {
    const before = await configure({ rollout: { surge: 2 } })
    change(before.settings, { 'drain.deadlineMs': 10, 'stop.termGraceMs': 20, 'rollout.surge': '25%' })
    const memory = JSON.parse(JSON.stringify(before.settings.memory()))
    const { settings } = await configure({ rollout: { surge: 3 } })
    settings.restore([...memory, { name: 'drain.idleGraceMs', value: -1, configured: 5000 }, { name: 'of.yesterday',
      value: 1, configured: 1 }, { name: 'dispatch', value: 'sticky', configured: 'shared' }])
    const { drain, stop, rollout, dispatch } = settings.current
    assert.deepEqual([drain.idleGraceMs, drain.deadlineMs, stop.termGraceMs, rollout.surge, dispatch], [5000, 10, 20, 3,
      'shared'])
    assert.deepEqual(settings.memory().map(({ name }) => name), ['drain.deadlineMs', 'stop.termGraceMs'])
  })
})
