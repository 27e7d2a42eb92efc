import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNotices } from '../../../server/events/notices.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { appRows, appsModel, healthOf } from '../../../server/host/page-apps.ts'
import type { AppView } from '../../../server/host/api-apps.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'

const NO_NOTICES = createNotices({ history: { page: () => ({ items: [] }) }, events: createEventStream() })

const anApp = (name: string, changes?: Partial<AppView>): AppView => ({ name, state: 'running', reason: null,
  isRetried: false, nextTryAt: null, entry: '/srv/app.js', cwd: '/srv', configFile: null, dataDir: null,
  path: `/apps/${name}`, startedAt: null,
  health: { tone: 'ok', text: 'All 2 workers are ready', hint: 'No open crashes.' }, workers: { ready: 2, desired: 2 },
  cpu: 1, memoryBytes: 1000, requestsPerSecond: 10, p99Ms: 5, restarts: 0, openCrashes: 0, release: 'r1',
  lastDeploy: null, addresses: [], ...changes })

const away = (name: string, state: AppView['state'], reason: string | null = null) =>
  anApp(name, { state, reason, health: null, workers: null, cpu: null, memoryBytes: null, requestsPerSecond: null,
    p99Ms: null, openCrashes: null })

const bad = (name: string) =>
  anApp(name, { health: { tone: 'bad', text: 'No worker serves', hint: '' }, workers: { ready: 0, desired: 2 } })
const warn = (name: string) =>
  anApp(name, { health: { tone: 'warn', text: 'All 2 workers serve; slot 1 keeps crashing', hint: '' } })

const rowsOf = (list: AppView[], can?: Powers) => appRows({ apps: { list: () => list }, can })

const say = (list: AppView[]) => {
  const { tone, text, hint } = healthOf(rowsOf(list))
  return `${tone}: ${text}${hint && ` | ${hint}`}`
}

test('the app that needs help most comes first, one that is stopped last', () => {
  const list = [away('a', 'stopped'), anApp('b'), away('c', 'stopping'), anApp('d', { openCrashes: 1 }),
    away('e', 'starting'), warn('f'), away('g', 'failed', 'no entry'), bad('h'), away('i', 'waiting', 'waits for h')]
  assert.deepEqual(rowsOf(list).map(({ name }) => name), ['g', 'h', 'f', 'e', 'i', 'c', 'd', 'b', 'a'])
  assert.deepEqual(rowsOf(list).map(({ text, hint }) => `${text} ${hint}`.trim()).slice(0, 5), ['Cannot run no entry',
    'No worker serves', 'All 2 workers serve; slot 1 keeps crashing', 'Starting', 'Waiting waits for h'])
})

test('the host says in one sentence how its apps are', () => {
  assert.equal(say([]), 'idle: No apps yet | One of these commands adds the first.')
  assert.equal(say([anApp('shop')]), 'ok: shop is well')
  assert.equal(say([anApp('shop'), anApp('mail'), away('old', 'stopped')]), 'ok: All 2 apps are well | 1 app stopped.')
  assert.equal(say([anApp('shop', { openCrashes: 2 }), anApp('mail')]), 'ok: All 2 apps are well | Open crashes: shop.')
  assert.equal(say([bad('shop')]), 'bad: shop needs attention | shop: No worker serves.')
  assert.equal(say([warn('shop'), anApp('mail')]),
    'warn: 1 of 2 apps needs attention | shop: All 2 workers serve; slot 1 keeps crashing.')
  assert.equal(say([warn('a'), bad('b'), away('c', 'failed'), anApp('d')]),
    'bad: 3 of 4 apps need attention | b, c and a.')
  assert.equal(say([away('mail', 'failed', 'no entry'), away('old', 'stopped')]),
    'bad: 1 of 2 apps needs attention | mail: Cannot run. 1 app stopped.')
  assert.equal(say([away('a', 'starting'), anApp('b')]), 'info: 1 app is changing | a.')
  assert.equal(say([away('a', 'stopped'), away('b', 'stopped')]), 'idle: All 2 apps are stopped')
})

test('figures of all apps are added up, and those that nobody knows are not shown as nothing', () => {
  const model = (list: AppView[]) =>
    appsModel({ apps: { list: () => list, opened: () => null, fleet: () => null, notices: NO_NOTICES },
      params: new URLSearchParams(), now: () => 0 }).totals
  assert.deepEqual(model([anApp('a'), anApp('b', { p99Ms: 50 }), away('c', 'stopped')]), { running: 2,
    requestsPerSecond: 20, p99Ms: 50, cpu: 2, memoryBytes: 2000, openCrashes: 0 })
  assert.deepEqual(model([away('c', 'stopped')]), { running: 0, requestsPerSecond: null, p99Ms: null, cpu: null,
    memoryBytes: null, openCrashes: null })
})

test('a role for some apps has no others in its list, in its words and in its sums', () => {
  const can = { operate: true, administer: false, switchDecks: false, name: 'ci', token: null,
    role: 'operator' as const, apps: ['a'] }
  const model = appsModel({
    apps: { list: () => [anApp('a'), bad('b')], opened: () => null, fleet: () => null, notices: NO_NOTICES },
    can,
    params: new URLSearchParams(),
    now: () => 0
  })
  assert.deepEqual([model.rows.map(({ name }) => name), model.total, model.health.text, model.totals.requestsPerSecond],
    [['a'], 1, 'a is well', 10])
})
