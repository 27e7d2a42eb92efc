import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createSupervisor } from '../../../server/cluster/supervisor.ts'
import { createState, type OperatorInput, type Drift, type Release } from '../../../server/lifecycle/state.ts'
import { NEW_RELEASE, OPTIONS } from '../../support/simulation.ts'
import { servicesOf } from '../../support/cluster.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { keptEvents } from '../../support/event-log.ts'
import type { ToMaster } from '../../../workers/protocol.ts'
import type { Vitals } from '../../../server/vitals/vitals.ts'

type WorkerHooks = Parameters<Parameters<typeof createSupervisor>[1]['fork']>[1]

/** A supervisor of one worker, whose processes are none; it ends with its test. */
function supervised (t: TestContext, release: Partial<Release> = {},
  { options = OPTIONS, changed = ({} as Record<string, Drift>), vitals = (undefined as Parts<Vitals> | undefined) } =
    {})
{
  const calls: unknown[][] = []
  const { events, publish } = keptEvents()
  const processes: { hooks: WorkerHooks, isKilled: boolean }[] = []
  /** What is done, in its order. */
  const steps: string[] = []
  const supervisor = createSupervisor(
    createState({ options, release: { id: 'r1', createdAt: '', entry: '/srv/app.js', path: '/srv', ...release } }),
    servicesOf({ fork: (order, hooks) => {
      const own = { hooks, isKilled: false }
      processes.push(own)
      steps.push(`fork ${order.worker}`)
      const exit = () => hooks.onExit({ code: 0, signal: null, error: null })
      return fake({ identity: { pid: 1000 + order.worker }, tell: ({ type }) =>
        type === 'drain' && hooks.onMessage({ type: 'drained' } as ToMaster), terminate: exit, kill: () => {
          own.isKilled = true
          exit()
        } })
    }, events: { publish: (event) => {
      steps.push(event.type)
      return publish(event)
    } }, crashes: { examine: () => {
      steps.push('examine')
      return { memoryKind: null, stderr: [], said: null, note: null }
    }, record: (event) =>
      event }, ...vitals && { vitals }, drift: { noteLoaded: (...given) =>
        calls.push(['noteLoaded', ...given]), renew: (...given) =>
          calls.push(['renew', ...given]), look: (ids) => {
          calls.push(['look', ...ids])
          steps.push('look')
          return Object.fromEntries(Object.entries(changed).filter(([id]) => [...ids].includes(id)))
        } }, prepare: async ({ release }) => {
        if (release === undefined)
          throw new Error('the configuration is wrong')
        return { ...NEW_RELEASE, id: String(release), createdAt: '' }
      } })
  )
  t.after(async () => {
    supervisor.dispatch({ type: 'stop', actor: 'api' })
    await supervisor.finished
  })
  supervisor.onLoaded((files) => calls.push(['loaded', files]))
  supervisor.start({ workers: 1 })
  calls.length = 0
  return { supervisor, calls, steps, events, processes, changed, last: () => processes.at(-1)!.hooks }
}

test('what workers load goes to the fingerprints of their release; a message that is none goes nowhere', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1e12 })
  const { calls, last } = supervised(t)
  last().onMessage({ type: 'files', files: ['/srv/app.js'] })
  for (const files of [undefined, null, 'app.js', { length: 1 }]) last().onMessage({ type: 'files', files } as ToMaster)
  assert.deepEqual(calls, [['noteLoaded', 'r1', ['/srv/app.js'], { id: 1, forkedAt: 1e12 }], ['loaded', [
    '/srv/app.js'
  ]]])
})

test('no fingerprints are taken where nobody edits', (t) => {
  const { calls, last } = supervised(t, { mode: 'folder' })
  last().onMessage({ type: 'files', files: ['/srv/app.js'] })
  assert.deepEqual(calls, [['loaded', ['/srv/app.js']]])
})

test('a deploy takes fingerprints anew and does not ask for drift; what is about to fork asks, and nothing else', (t) => {
  const { supervisor, calls, last } = supervised(t)
  last().onMessage({ type: 'ready' })
  supervisor.dispatch({ type: 'rollout', kind: 'deploy', release: { ...NEW_RELEASE, id: 'r2', createdAt: '' },
    actor: 'api' })
  assert.deepEqual(calls, [['renew', 'r2', 2]], 'from the next worker on')
  last().onExit({ code: 1, signal: null, error: null })
  assert.equal(calls.length, 1, 'the deploy has failed, and the old worker serves on')
  supervisor.dispatch({ type: 'scale', workers: 1, actor: 'api' })
  assert.equal(calls.length, 1)
  supervisor.dispatch({ type: 'scale', workers: 2, actor: 'api' })
  assert.deepEqual(calls.slice(1), [['look', 'r1']])
})

test('what is gone back to is looked at before its first worker starts', async (t) => {
  const { supervisor, calls, last } = supervised(t)
  last().onMessage({ type: 'ready' })
  supervisor.dispatch({ type: 'rollout', kind: 'rollback', source: { release: 'r7' }, actor: 'api' })
  await new Promise(setImmediate)
  assert.deepEqual(calls.at(-1), ['look', 'r7'])
})

test('what a worker cannot say any more of its end is told by its last report', (t) => {
  const { events, last } = supervised(t, {}, {
    vitals: { accept () {}, began () {}, left () {}, latest: () => null, lastMinute: (worker: number) =>
      worker === 1 ? [{ inFlight: 2, openConnections: 5 }] : [] }
  })
  last().onMessage({ type: 'ready' })
  last().onExit({ code: null, signal: 'SIGKILL', error: null })
  const exit = events.find(({ type }) => type === 'worker.exited')
  assert.equal(exit?.message,
    'worker 1 (slot 1) was ended by SIGKILL, with 2 requests and 5 connections still open, by its last report')
})

const CHANGED: Record<string, Drift> = { r1: { kind: 'code', count: 1, files: ['/srv/app.js'], since: null, by: null } }
const HOLDING = { ...OPTIONS, releases: { onDrift: 'hold' } as const }

test('a deploy that cannot be prepared while a worker is due for recycling forks nothing on changed files', async (t) => {
  const { supervisor, changed, events, processes, last } = supervised(t, {}, { options: HOLDING })
  last().onMessage({ type: 'ready' })
  Object.assign(changed, CHANGED)
  supervisor.dispatch({ type: 'rollout', kind: 'deploy', source: {}, actor: 'api' })
  last().onMessage({ type: 'max-requests' })
  await new Promise(setImmediate)
  assert.deepEqual(events.findLast(({ type }) => type === 'rollout.failed')?.message, 'the configuration is wrong')
  assert.equal(processes.length, 1)
  assert.match(events.at(-1)!.message, /^worker 1 \(slot 1\) is not recycled: files of r1 changed after its deploy/)
})

test('what an operator starts is refused where it would fork on changed files, an upgrade too', (t) => {
  const { supervisor, changed, processes, last } = supervised(t, {}, { options: HOLDING })
  last().onMessage({ type: 'ready' })
  Object.assign(changed, CHANGED)
  const commands: OperatorInput[] = [{ type: 'restart-worker', worker: 1, actor: 'api' }, { type: 'rollout',
    kind: 'restart', actor: 'api' }, { type: 'upgrade', execPath: null, actor: 'api' }]
  for (const command of commands) {
    assert.throws(() => supervisor.dispatch(command), { code: 'drifted' }, command.type)
  }
  assert.equal(processes.length, 1)
})

const KILLED = Object.freeze({ code: null, signal: 'SIGKILL' })

/** `hooks`: of the worker that ends, as its handle calls them */
function end (hooks: WorkerHooks, exit = (KILLED as { code: number | null, signal: string | null }), evidence = {}) {
  hooks.onEnded!(exit)
  hooks.onExit({ ...exit, error: null, ...evidence })
}

test('a lost worker is replaced before anything is read or written for its end, and once', (t) => {
  const { supervisor, steps, last } = supervised(t)
  last().onMessage({ type: 'ready' })
  steps.length = 0
  end(last())
  assert.deepEqual(steps, ['fork 2', 'examine', 'look', 'worker.exited', 'worker.restarted', 'worker.forked'])
  assert.equal(supervisor.snapshot().workers[0].pid, 1002)
})

test('so is one that says that an exception is about to end it', (t) => {
  const { steps, last } = supervised(t)
  last().onMessage({ type: 'ready' })
  steps.length = 0
  last().onMessage({ type: 'crashing', errorName: 'Error', errorMessage: 'no' })
  assert.deepEqual(steps, ['fork 2', 'look', 'worker.draining', 'worker.restarted', 'worker.forked'])
})

test('a worker that was forked for a lost one and is not needed, knowing all, is ended, and its end is not told', (t) => {
  const { supervisor, events, processes, last } = supervised(t, {}, {
    options: { ...OPTIONS, restart: { ...OPTIONS.restart, policy: 'on-failure' } }
  })
  last().onMessage({ type: 'ready' })
  const [first] = processes
  first.hooks.onEnded!({ code: 1, signal: null })
  first.hooks.onExit({ code: 0, signal: null, error: null })
  assert.deepEqual(processes.map(({ isKilled }) => isKilled), [false, true])
  assert.equal(events.at(-1)?.type, 'slot.finished')
  assert.deepEqual(supervisor.snapshot().workers.map(({ id }) => id), [null])
})

test('where changed files keep a slot empty, no worker is forked before they are looked at', (t) => {
  const { changed, events, processes, last } = supervised(t, {}, { options: HOLDING })
  last().onMessage({ type: 'ready' })
  Object.assign(changed, CHANGED)
  end(last())
  assert.equal(processes.length, 1)
  assert.equal(events.at(-1)?.type, 'slot.held')
})
