import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { numberWithUnit, saidValue } from '../../../public/setting-value.ts'
import { settingsModel, settingsPageModel } from '../../../server/config/page.ts'
import { loadSchema } from '../../../server/config/config.ts'
import { DeckError } from '../../../server/errors.ts'
import { createSettings, type NewChange } from '../../../server/config/settings.ts'
import { OPTIONS, SCHEMA } from '../../../server/config/options.ts'
import { fake } from '../../support/fake.ts'
import type { Unit } from '../../../server/config/units.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'

await loadSchema()

function asked (
  { runtime = 'node', wanted = {}, search = '', desiredWorkers = 2, anew = () => [] }: { runtime?: 'node' | 'other',
    wanted?: Record<string, unknown>, search?: string, desiredWorkers?: number, anew?: () => NewChange[] } = {}
) {
  const settings = createSettings({ ...SCHEMA.parse({}), runtime, entry: '/srv/app.js', cwd: '/srv',
    dataDir: '/srv/.clusterdeck', workers: 2 }, { key: 'key' })
  const { config, changes } = settings.plan(wanted)
  settings.adopt(config)
  const events = [{ id: 7, at: '2026-01-01T00:00:00.000Z', actor: 'ben', detail: { changes } }]
  return fake<Parameters<typeof settingsModel>[0] & { can: Powers }>({
    deck: { settings, snapshot: () => ({ desiredWorkers }), configuredAnew: async () => anew() },
    history: { page: () => ({ items: events }) },
    params: new URLSearchParams(search),
    now: () => 0,
    can: { operate: true }
  })
}

function shownIn (model: ReturnType<typeof settingsModel>) {
  return model.groups.flatMap(({ settings }) => settings)
}

describe('the page of the settings', () => {
  test('shows every option once, each in a group', () => {
    const names = shownIn(settingsModel(asked())).map(({ name }) => name)
    assert.deepEqual(names.toSorted(), OPTIONS.map(({ name }) => name).toSorted())
  })

  test('shows what is changed before all groups', () => {
    const { groups } = settingsModel(asked({ wanted: { 'rollout.surge': 2, 'logs.maxFiles': 9 } }))
    const [first, ...others] = groups.map(({ id, settings }) => [id, settings.map(({ name }) => name)] as const)
    assert.deepEqual(first, ['changed', ['rollout.surge', 'logs.maxFiles']])
    assert.ok(!others.some(([, names]) => names.includes('rollout.surge')))
    assert.equal(settingsModel(asked()).groups[0].id, 'workers')
  })

  test('finds options by words of their names, descriptions and values, as they are typed and as they are said', () => {
    for (const [q, name] of [['deadline drain', 'drain.deadlineMs'], ['CERTIFICATE chain', 'admin.tls.cert'], [
      'ready.timeoutMs 30000',
      'ready.timeoutMs'
    ], ['admin 12 h', 'admin.sessionTtlMs']]) {
      assert.ok(shownIn(settingsModel(asked({ search: `q=${q}` }))).some((setting) => setting.name === name), q)
    }
    assert.deepEqual(settingsModel(asked({ search: 'q=nowhere' })).groups, [])
  })

  test('finds options by words of people who do not know ours', () => {
    for (const [q, name] of [['RAM', 'limits.memoryBytes'], ['instances', 'workers'], ['timeouts', 'ready.timeoutMs'], [
      'health check',
      'ready.path'
    ], ['graceful shutdown', 'drain.deadlineMs'], ['ssl', 'admin.tls.cert'], ['slack', 'alerts'], ['log rotation',
      'logs.maxFiles']])
      assert.ok(shownIn(settingsModel(asked({ search: `q=${q}` }))).some((setting) => setting.name === name), q)
    assert.deepEqual(settingsModel(asked({ search: 'q=constructor' })).groups, [])
  })

  test('shows on demand what is changed alone, and says of how many options', () => {
    const wanted = { 'rollout.surge': 2, 'logs.maxFiles': 9 }
    const { tabs, groups, canonicalUrl } = settingsModel(asked({ wanted, search: 'show=changed' }))
    assert.deepEqual(groups.map(({ id, settings }) => [id, settings.length]), [['changed', 2]])
    assert.deepEqual(tabs.map(({ label, url, isCurrent, count }) => [label, url, isCurrent, count]), [['All',
      '/settings', false, OPTIONS.length], ['Changed', '/settings?show=changed', true, 2]])
    assert.equal(canonicalUrl, '/settings?show=changed')
    const found = settingsModel(asked({ wanted, search: 'show=changed&q=surge' }))
    assert.deepEqual(shownIn(found).map(({ name }) => name), ['rollout.surge'])
    assert.equal(found.tabs[0].url, '/settings?q=surge')
    assert.throws(() => settingsModel(asked({ search: 'show=some' })), { code: 'invalid-query' })
  })

  test('shows what somebody has changed beside what is configured, by whom, and when a change takes effect', () => {
    const model = settingsModel(asked({ wanted: { 'recycle.maxRssBytes': 512 * 1024 ** 2 } }))
    const [{ name, said, value, configured, changed, effect }, ...others] = model.groups[0].settings
    assert.deepEqual([name, said, value, configured?.said, changed?.actor, changed?.id, effect, others], [
      'recycle.maxRssBytes',
      '512 MB',
      '536870912',
      'never',
      'ben',
      7,
      'at once',
      []
    ])
    const effects = new Map(shownIn(settingsModel(asked())).map((setting) => [setting.name, setting.effect]))
    assert.deepEqual(['rollout.surge', 'env', 'dispatch'].map((each) => effects.get(each)), ['with the next rollout',
      'with the next deploy', 'with the next start or upgrade'])
  })

  test('marks what means nothing for the program that runs, and offers no change of it', () => {
    const unusedBy = (runtime: 'node' | 'other') =>
      shownIn(settingsModel(asked({ runtime }))).filter(({ isUsed }) => !isUsed)
    assert.deepEqual(unusedBy('node').map(({ name }) => name), ['stop.signal'])
    assert.deepEqual(
      ['dispatch', 'drain.longLivedMs', 'execArgv', 'orphanMs', 'rebalance', 'standby', 'sticky.by.header',
        'sticky.idleMs', 'watchdog.stack'].filter((wanted) => !unusedBy('other').some(({ name }) => name === wanted)),
      []
    )
    assert.ok(unusedBy('other').every(({ canChange }) => !canChange))
  })

  test('says values in words, and what each option is about in one line', () => {
    const all = new Map(
      shownIn(settingsModel(asked({ wanted: { 'rollout.limits.errorRate': 0.125 } }))).map((each) => [each.name, each])
    )
    for (const [name, said] of [['rollout.limits.errorRate', '12.5 %'], ['rollout.limits.p99Ratio', '3 times'], [
      'limits.memoryBytes',
      'no limit'
    ], ['rollout.limits.readyTimeoutMs', 'as ready.timeoutMs'], ['drain.longLivedMs', '4 h'], ['admin.plainHttp',
      'off'], ['fleet.labels', 'none'], ['restart.policy', 'always'], ['standby', 'none']])
      assert.equal(all.get(name)?.said, said, name)
    const lacking = [...all.values()].filter(({ value, said }) => value === '0' && said === '0' || said === '{}')
    assert.deepEqual(lacking.map(({ name }) => name), [], 'a 0 says what it means')
    assert.equal(all.get('dispatch')?.short, 'Who gets a connection')
    assert.ok([...all.values()].every(({ short }) => /^[^;]{4,220}$/.test(short)))
  })

  test('says the times of a cron expression in words', () => {
    const cron = shownIn(settingsModel(asked({ wanted: { 'restart.cron': '0 4 * * *' } }))).find(({ name }) =>
      name === 'restart.cron'
    )
    assert.deepEqual([cron?.value, cron?.said], ['0 4 * * *', 'every day at 04:00'])
  })

  test('says how many workers run where that is not what is configured', () => {
    const runsOf = (desiredWorkers: number) =>
      shownIn(settingsModel(asked({ desiredWorkers }))).find(({ name }) => name === 'workers')?.runs
    assert.deepEqual([runsOf(2), runsOf(6)], [null, 6])
  })

  test('lists what was configured since it was read, and says if it cannot be read', async () => {
    const changed = await settingsPageModel(
      asked({
        anew:
          () => [{ name: 'ready.timeoutMs', from: 30_000, to: 90_000, takesEffect: 'now' }, { name: 'env', from: null,
            to: null, takesEffect: 'deploy' }]
      })
    )
    assert.deepEqual(changed.anew.map(({ name, from, to, isSecret }) => [name, from, to, isSecret]), [[
      'ready.timeoutMs',
      '30 s',
      '1 min 30 s',
      false
    ], ['env', 'not set', 'not set', true]])
    const broken = await settingsPageModel(asked({ anew: () => {
      throw new DeckError('invalid-config', 'the file is no JSON')
    } }))
    assert.deepEqual([broken.anew, broken.unreadable], [[], 'the file is no JSON'])
    const viewer = await settingsPageModel({ ...asked({ anew: () => assert.fail('read for a viewer') }),
      can: fake({ operate: false }) })
    assert.deepEqual(viewer.anew, [])
  })

  test('says numbers as people do, exactly', () => {
    const said = [[250, 'ms', '250 ms'], [30_000, 'ms', '30 s'], [90_500, 'ms', '1 min 30 s 500 ms'], [2_592_000_000,
      'ms', '30 d'], [0, 'ms', '0 ms'], [10 * 1024 ** 2, 'bytes', '10 MB'], [1_000_000, null, '1,000,000'], [5, null,
      null], [[], null, 'none'], [['200-399'], null, '200-399'], ['auto', null, null]] as [unknown,
        'ms' | 'bytes' | null, string | null][]
    for (const [value, unit, text] of said) assert.equal(saidValue(value, unit), text)
  })

  test('reads numbers as people write them, and what it has said itself', () => {
    const typed = [['5 min', 'ms', 300_000], ['1.5h', 'ms', 5_400_000], ['1 min 30 s 500 ms', 'ms', 90_500], ['2 Days',
      'ms', 172_800_000], ['300 MB', 'bytes', 300 * 1024 ** 2], ['64kib', 'bytes', 65_536], ['0.5 g', 'bytes', 2 ** 29],
      ['5 %', 'share', 0.05], ['12.5%', 'share', 0.125], ['3 times', 'times', 3], ['5 MB', 'ms', null], ['5 min',
      'bytes', null], ['5', 'ms', null], ['-5 min', 'ms', null], ['5 min or so', 'ms', null], ['5 s', null, null], ['',
      'ms', null]] as [string, Unit | null, number | null][]
    for (const [text, unit, value] of typed) assert.equal(numberWithUnit(text, unit), value, text)
    for (const ms of [1, 90_500, 2_592_000_000]) assert.equal(numberWithUnit(String(saidValue(ms, 'ms')), 'ms'), ms)
  })
})
