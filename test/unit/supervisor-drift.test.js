import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor } from '../../server/cluster/supervisor.js'
import { createState } from '../../server/lifecycle/state.js'
import { NEW_RELEASE, OPTIONS } from '../support/simulation.js'

/** A supervisor of one worker, whose processes are none; it ends with its test. */
function supervised (/** @type {import('node:test').TestContext} */ t, /** @type {Record<string, any>} */ release = {}) {
  /** @type {any[]} */
  const calls = []
  /** @type {any[]} */
  const processes = []
  const time = Date.now()
  const supervisor = createSupervisor(createState({ options: OPTIONS, release: { entry: '/srv/app.js', path: '/srv', ...release }, time }), {
    fork: /** @type {any} */ (/** @type {any} */ order, /** @type {any} */ hooks) => {
      processes.push({ order, hooks })
      const exit = () => hooks.onExit({ code: 0, signal: null, error: null })
      return { identity: { pid: 1000 + order.worker }, tell: (/** @type {any} */ { type }) => type === 'drain' && hooks.onMessage({ type: 'drained' }), terminate: exit, kill: exit }
    },
    events: { publish: (event) => /** @type {any} */ (event) },
    time: () => time,
    drift: {
      noteLoaded: (...given) => calls.push(['noteLoaded', ...given]),
      renew: (...given) => calls.push(['renew', ...given]),
      look: (ids) => { calls.push(['look', ...new Set(ids)]); return {} }
    },
    onLoaded: (files) => calls.push(['loaded', files]),
    prepare: async ({ release }) => ({ ...NEW_RELEASE, id: String(release), createdAt: '' })
  })
  t.after(async () => {
    supervisor.dispatch({ type: 'stop', actor: 'api' })
    await supervisor.finished
  })
  supervisor.start({ workers: 1 })
  return { supervisor, calls, processes, time, last: () => processes.at(-1).hooks }
}

test('what workers load goes to the fingerprints of their release; a message that is none goes nowhere', (t) => {
  const { calls, time, last } = supervised(t)
  last().onMessage({ type: 'files', files: ['/srv/app.js'] })
  for (const files of [undefined, null, 'app.js', { length: 1 }]) last().onMessage({ type: 'files', files })
  assert.deepEqual(calls, [['noteLoaded', 'r1', ['/srv/app.js'], { forkedAt: time }], ['loaded', ['/srv/app.js']]])
})

test('no fingerprints are taken where nobody edits', (t) => {
  const { calls, last } = supervised(t, { mode: 'snapshot' })
  last().onMessage({ type: 'files', files: ['/srv/app.js'] })
  assert.deepEqual(calls, [['loaded', ['/srv/app.js']]])
})

test('a deploy takes fingerprints anew and does not ask for drift; what may replace a worker asks', (t) => {
  const { supervisor, calls, time, last } = supervised(t)
  last().onMessage({ type: 'ready' })
  calls.length = 0
  supervisor.dispatch({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
  assert.deepEqual(calls, [['renew', 'r2', time]])
  last().onExit({ code: 1, signal: null, error: null })
  assert.deepEqual(calls.slice(1), [['look', 'r1', 'r2']])
  calls.length = 0
  supervisor.dispatch({ type: 'scale', workers: 1, actor: 'api' })
  assert.deepEqual(calls, [['look', 'r1']])
})

test('what is gone back to is looked at before its first worker starts', async (t) => {
  const { supervisor, calls, last } = supervised(t)
  last().onMessage({ type: 'ready' })
  calls.length = 0
  supervisor.dispatch({ type: 'rollout', kind: 'rollback', source: { release: 'r7' }, actor: 'api' })
  await new Promise(setImmediate)
  assert.deepEqual(calls.at(-1), ['look', 'r1', 'r7'])
})
