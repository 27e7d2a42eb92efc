import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAppGroup } from '../../../server/cli/app-group.js'
import { until } from '../../support/until.js'

const READY = { state: 'running', readyWorkers: 1, finishedWorkers: 0, desiredWorkers: 1, health: { text: 'The worker is ready', hint: '' } }
const STARTING = { ...READY, state: 'starting', readyWorkers: 0, health: { text: 'Starting 1 worker', hint: '0 ready.' } }

/**
 * Apps without processes, which do what the test says.
 * @param {Record<string, string[]>} dependencies @param {{ running?: string[] }} [before]
 */
function open (dependencies, { running = [] } = {}) {
  const story = /** @type {string[]} */ ([])
  const statuses = /** @type {Map<string, any>} */ (new Map(running.map((name) => [name, READY])))
  const ends = /** @type {Map<string, (end: any) => void>} */ (new Map())
  const apps = Object.entries(dependencies).map(([name, dependsOn]) => ({ name, dependsOn, dataDir: name }))
  const group = createAppGroup(apps, {
    start (name) {
      story.push(`start ${name}`)
      statuses.set(name, STARTING)
      const ended = new Promise((resolve) => { ends.set(name, resolve) })
      return /** @type {any} */ ({ ended, drained: ended, signal: (/** @type {string[]} */ ...signals) => story.push(`${signals.join(' ')} ${name}`) })
    },
    readStatus: async (name) => ({ status: statuses.get(name) ?? null, problem: null }),
    isRunning: async (name) => statuses.has(name),
    stop: async (name) => { story.push(`stop ${name}`); statuses.delete(name) },
    tell: (name, text) => story.push(`${name} ${text}`)
  })
  return {
    group,
    settled: () => Promise.all(group.members.map(({ isReady }) => isReady)),
    story,
    states: () => Object.fromEntries(group.members.map(({ name, state }) => [name, state])),
    ready: (/** @type {string} */ name) => statuses.set(name, READY),
    end (/** @type {string} */ name, end = {}) {
      statuses.delete(name)
      ends.get(name)?.({ code: 0, signal: null, error: null, ...end })
    },
    says: (/** @type {string} */ line) => until(() => story.includes(line), `${line} in ${story}`)
  }
}

test('an app is started once all that it depends on are ready, and the others at once', async () => {
  const { story, says, ready, states, settled } = open({ db: [], api: ['db'], web: ['api', 'db'], cron: [] })
  await says('start cron')
  assert.deepEqual(story.toSorted(), ['api waits for db', 'start cron', 'start db', 'web waits for api, db'])
  ready('db')
  await says('start api')
  assert.equal(story.includes('start web'), false)
  ready('api')
  await says('start web')
  ready('web')
  ready('cron')
  await settled()
  assert.deepEqual(states(), { db: 'ready', api: 'ready', web: 'ready', cron: 'ready' })
})

test('one that runs already is left as it is, is waited for, and is not stopped', async () => {
  const { group, story, says, ready, end, settled } = open({ db: [], api: ['db'] }, { running: ['db'] })
  await says('start api')
  ready('api')
  await settled()
  assert.equal(story[0], 'db already runs')
  const stopped = group.stop()
  await says('SIGTERM api')
  end('api')
  await stopped
  assert.equal(story.some((line) => /^(stop|SIG\w+|start) db$/.test(line)), false)
})

test('what depends on one that fails is not started, and the others are', async () => {
  const { says, ready, end, states, story, settled } = open({ db: [], api: ['db'], web: ['api'], cron: [] })
  await says('start db')
  end('db', { code: 2 })
  await says('web is not started: it depends on api, which was not started')
  assert.ok(story.includes('api is not started: it depends on db, which failed (exit code 2)'))
  ready('cron')
  await settled()
  assert.deepEqual(states(), { db: 'failed', api: 'not started', web: 'not started', cron: 'ready' })
})

test('a stop begins with what depends on others, and what waits is started no more', async () => {
  const { group, story, says, ready, end } = open({ db: [], api: ['db'], stuck: [], after: ['stuck'] })
  await says('start db')
  ready('db')
  await says('start api')
  const stopped = group.stop()
  await says('SIGTERM api')
  assert.equal(story.includes('SIGTERM db'), false)
  end('api')
  await says('SIGTERM db')
  group.kill()
  assert.ok(story.includes('SIGTERM SIGINT stuck'))
  end('db')
  end('stuck', { code: 1 })
  await stopped
  await group.over
  assert.equal(story.some((line) => line.includes('start after')), false)
  assert.ok(story.includes('stuck failed: exit code 1'))
})

test('one whose keeper is gone is waited for, and stopped by itself', async () => {
  const { group, story, says, ready, end } = open({ db: [] })
  await says('start db')
  ready('db')
  await says('db is ready')
  end('db', { code: null, signal: 'SIGKILL' })
  ready('db')
  await group.stop()
  assert.ok(story.includes('stop db'), story.join())
})
