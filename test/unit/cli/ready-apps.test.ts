import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { followApps, toFollowed } from '../../../server/cli/ready-apps.ts'
import { DeckError } from '../../../server/errors.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import type { ApiClient } from '../../../server/cli/api-client.ts'
import type { AppView } from '../../../server/host/api-apps.ts'

const READY = { state: 'running', readyWorkers: 1, finishedWorkers: 0, desiredWorkers: 1,
  health: { text: 'The worker is ready', hint: '' } }
const STARTING = { ...READY, state: 'starting', readyWorkers: 0,
  health: { text: 'Starting 1 worker', hint: '0 ready.' } }

/** A host whose apps do what the test says. `dependencies`: by name. */
function open (dependencies: Record<string, string[]>, how?: Partial<Parameters<typeof followApps>[1]>) {
  const story = [] as string[]
  const time = new AbortController()
  const views: Map<string, Pick<AppView, 'name' | 'reason'> & { state: string, isRetried?: boolean }> = new Map(
    Object.keys(dependencies).map((
      name
    ) => [name, { name, state: dependencies[name].length > 0 ? 'waiting' : 'starting', reason: null }])
  )
  const statuses: Map<string, object | null> = new Map()
  let isGone = false
  let asked = 0
  const host: Pick<ApiClient, 'get'> = fake({ async get (path: string) {
    if (isGone) asked++
    if (isGone) throw new DeckError('no-master', 'nobody answers')
    if (path === '/apps') return { items: [...views.values()] }
    const status = statuses.get(path.split('/')[2])
    if (!status) throw new DeckError('app-not-running', 'it is starting')
    return status
  } })
  const apps = Object.entries(dependencies).map(([name, dependsOn]) => toFollowed({ name }, dependsOn))
  return {
    story,
    apps,
    time,
    over: followApps(apps, { host, signal: time.signal, tell: ({ name }, text) => {
      story.push(`${name} ${text}`)
    }, explainAfterMs: 50, ...how }),
    set (name: string, state: string, status: object | null = null, reason: string | null = null,
      isRetried: boolean = false)
    {
      views.set(name, { name, state, reason, isRetried })
      statuses.set(name, status)
    },
    /** It answers no more. Returns how often it was asked since. */
    leave (): () => number {
      isGone = true
      return () => asked
    },
    states: () => Object.fromEntries(apps.map(({ name, state }) => [name, state])),
    says: (line: string) => until(() => story.includes(line), `${line} in ${story.join('; ')}`)
  }
}

test('each app is told once it is ready, and for what it waits until then', async () => {
  const { story, says, set, over, states } = open({ db: [], api: ['db'], web: ['api', 'db'] })
  await says('web waits for api, db')
  set('db', 'running', STARTING)
  await says('web still waits for api (waiting), db (Starting 1 worker. 0 ready)')
  set('db', 'running', READY)
  set('api', 'starting')
  await says('db is ready')
  assert.equal(story.includes('api is ready'), false)
  set('api', 'running', READY)
  await says('api is ready')
  set('web', 'running', { ...READY, readyWorkers: 0, finishedWorkers: 1 })
  await over
  assert.deepEqual(states(), { db: 'ready', api: 'ready', web: 'ready' })
})

test('of apps that became ready at once, each is told after those that it depends on', async () => {
  const { story, says, set, over } = open({ db: [], api: ['db'] })
  await says('api waits for db')
  set('db', 'running', setImmediate(READY))
  set('api', 'running', READY)
  await over
  assert.deepEqual(story, ['api waits for db', 'db is ready', 'api is ready'])
})

test('what fails ends the wait for what depends on it, and for nothing else', async () => {
  const { story, says, set, over, states } = open({ db: [], api: ['db'], web: ['api'], cron: [] })
  await says('api waits for db')
  set('db', 'failed', null, 'workers: expected an integer')
  await says('web is not started: it depends on api, which was not started')
  // As the host itself says it.
  set('api', 'failed', null, 'it depends on db, which failed')
  set('cron', 'running', READY)
  await over
  assert.ok(story.includes('db failed: workers: expected an integer'))
  assert.ok(story.includes('api is not started: it depends on db, which failed (workers: expected an integer)'))
  assert.deepEqual(states(), { db: 'failed', api: 'not started', web: 'not started', cron: 'ready' })
})

test('what the host lets fail, because another one has, was not started', async () => {
  const { set, over, apps } = open({ db: [], api: ['db'] })
  set('db', 'stopped')
  set('api', 'failed', null, 'it depends on db, which is stopped')
  await over
  assert.deepEqual(apps.map(({ state, reason }) => [state, reason]), [['stopped', null], ['not started',
    'it depends on db, which was stopped']])
})

test('once the time is up, each that is not ready has a reason', async () => {
  const { says, set, over, apps, time } = open({ stuck: [], after: ['stuck'], young: [] })
  await says('after waits for stuck')
  set('stuck', 'running', STARTING)
  await says('after still waits for stuck (Starting 1 worker. 0 ready)')
  time.abort()
  await over
  assert.deepEqual(apps.map(({ state, reason }) => [state, reason]), [['starting', 'Starting 1 worker. 0 ready'], [
    'waiting',
    'it depends on stuck, which is not ready (Starting 1 worker. 0 ready)'
  ], ['starting', 'its workers are not started yet']])
})

test('those that are to be followed to their end are: what stops, fails or comes back by itself', async () => {
  const { story, says, set, over, states } = open({ db: [], api: ['db'], cron: [], job: [] }, { toTheEnd: true })
  for (const name of ['db', 'cron', 'job']) set(name, 'running', READY)
  await says('db is ready')
  set('api', 'running', READY)
  await says('api is ready')
  set('cron', 'failed', null, 'its part of this host failed', true)
  set('job', 'stopped')
  await says('job stopped')
  set('db', 'failed', null, 'port 80 is in use')
  // It is ready, so it fails by itself and not for want of the other.
  set('api', 'failed', null, 'its entry is gone')
  await says('api failed: its entry is gone')
  assert.equal(states().cron, 'ready')
  set('cron', 'stopping', READY)
  set('cron', 'stopped')
  await over
  assert.deepEqual(states(), { db: 'failed', api: 'failed', cron: 'stopped', job: 'stopped' })
  assert.equal(story.filter((line) => line.startsWith('cron')).join(), 'cron is ready,cron stopped')
})

test('where the host is gone, all that were followed have ended, and where nobody answers for a while, none has', async () => {
  let end: { state: 'failed', reason: string } | null = null
  const { says, set, over, states, leave } = open({ db: [], api: ['db'] }, { toTheEnd: true, howHostEnded: () => end })
  set('db', 'running', READY)
  await says('db is ready')
  const asked = leave()
  await until(() => asked() > 2, 'some looks')
  assert.equal(states().db, 'ready')
  end = { state: 'failed', reason: 'the host has ended without stopping it' }
  await over
  assert.deepEqual(states(), { db: 'failed', api: 'failed' })
})
