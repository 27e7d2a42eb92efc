import { fileURLToPath } from 'node:url'
import { createCrashService } from '../../server/crashes/crashes.js'
import { DeckError } from '../../server/errors.js'
import { createEventStream } from '../../server/events/stream.js'
import { createVitals } from '../../server/vitals/vitals.js'
import { createLogs } from '../../server/logs/logs.js'
import { createWebhooks } from '../../server/webhooks/webhooks.js'
import { tempFolder } from './folder.js'

/**
 * A deck without processes, for tests of the admin side. Its cluster changes only when the test says so, by `deck.set(...)`.
 * @param {{ history: any, now?: () => number }} parts  `history`: a real one over a real database file, see db/
 * @returns {import('../../server/deck.js').Deck & { dispatched: any[], set: (changes: any) => void, logs: { folder: string }, webhooks: { status: number }, vitals: ReturnType<typeof createVitals> }}
 */
export function createFakeDeck ({ history, now = Date.now }) {
  const events = createEventStream({ lastId: history.lastEventId() })
  events.subscribe((event) => history.record(event))
  const vitals = createVitals({ now })
  vitals.keepIn({ store: history.vitals })
  events.subscribe(vitals.count)
  /** @type {any[]} every command that was dispatched, oldest first */
  const dispatched = []
  const logs = fakeLogs()
  const release = { id: 'r1', entry: '/srv/app/app.js', path: '/srv/app', createdAt: '2026-01-01T00:00:00.000Z' }
  let state = fakeSnapshot(release)

  /** @type {Record<string, (command: any) => any>} */
  const effects = {
    rollout: fakeRollout,
    'restart-worker': (command) => fakeRollout({ ...command, kind: 'restart' }),
    scale (command) {
      state.desiredWorkers = command.workers
      events.publish({ type: 'scale.changed', actor: command.actor, detail: { to: command.workers } })
      return { desiredWorkers: command.workers }
    },
    upgrade (command) {
      state.upgrade = { startedAt: new Date().toISOString(), actor: command.actor, note: command.note }
      return state.upgrade
    },
    'kill-worker': () => ({}),
    stop () {
      state.state = 'stopping'
      return { state: 'stopping' }
    }
  }

  return /** @type {any} */ ({
    events,
    history,
    vitals,
    logs,
    webhooks: fakeWebhooks(events),
    releases: fakeReleases(release),
    crashes: createCrashService({ store: history.crashes, events, release: () => state.release.id }),
    dispatched,
    diagnostics: fakeDiagnostics(dispatched),
    snapshot: () => structuredClone({ ...state, lastEventId: events.lastId }),
    /** @param {any} changes merged over the snapshot */
    set (changes) { state = { ...state, ...changes } },
    /** @param {any} command */
    dispatch (command) {
      if (state.rollout && command.type !== 'stop') {
        throw new DeckError('rollout-running', `rollout ${state.rollout.id} (${state.rollout.kind}) is running`,
          { details: { rollout: state.rollout.id } })
      }
      dispatched.push(command)
      return effects[command.type](command)
    },
    /** @param {any} order */
    send (order) {
      if (order.worker > 2) throw new DeckError('not-found', `No worker ${order.worker} is alive`)
      dispatched.push({ type: 'message', order })
      return { workers: order.worker ? [order.worker] : [1, 2] }
    },
    /** @param {any} command */
    async deploy (command) { return this.dispatch({ type: 'rollout', kind: 'deploy', ...command }) }
  })

  function fakeRollout (/** @type {any} */ command) {
    const kind = command.kind ?? 'restart'
    state.rollout = {
      id: 1,
      kind,
      state: 'rolling',
      from: 'r1',
      to: kind === 'deploy' ? 'r2' : 'r1',
      actor: command.actor,
      note: command.note ?? null,
      startedAt: new Date().toISOString(),
      finishedAt: null,
      done: false,
      reason: null,
      progress: { total: 2, replaced: 0 },
      steps: state.workers.map((/** @type {any} */ worker) => ({
        slot: worker.slot, state: 'pending', oldWorker: worker.id, newWorker: null, startedAt: null, finishedAt: null
      }))
    }
    events.publish({ type: 'rollout.started', rollout: 1, actor: command.actor, detail: structuredClone(state.rollout) })
    return structuredClone(state.rollout)
  }
}

/** One that is done, and what is started is only noted. @param {any[]} dispatched */
function fakeDiagnostics (dispatched) {
  const done = { id: 1, kind: 'heap-statistics', worker: 1, slot: 1, pid: 4001, release: 'r1', state: 'done', durationMs: null, actor: 'token', startedAt: '2026-01-01T00:00:00.000Z', finishedAt: '2026-01-01T00:00:01.000Z', bytes: 2, error: null, warning: null }
  return {
    list: () => [done],
    get: (/** @type {number} */ id) => id === 1 ? done : null,
    file: (/** @type {number} */ id) => id === 1 ? { file: fileURLToPath(import.meta.url), name: '1-worker-1.json' } : null,
    start (/** @type {any} */ order) {
      if (order.worker > 2) throw new DeckError('not-found', `No worker ${order.worker} is alive`)
      dispatched.push({ type: 'diagnose', ...order })
      return { ...done, ...order, id: 2, state: 'running' }
    },
    remove (/** @type {number} */ id) {
      if (id !== 1) throw new DeckError('not-found', `Diagnostics ${id} do not exist`)
    }
  }
}

/** Real files, which the workers of two slots could write; nothing rotates them. */
function fakeLogs () {
  const folder = tempFolder()
  const options = /** @type {const} */ ({ maxBytes: 1e6, maxFiles: 5, mirror: 'off' })
  const logs = createLogs({ folder, options, streams: { stdout: process.stdout, stderr: process.stderr } })
  for (const slot of [1, 2]) logs.open({ worker: slot, slot }).close()
  return Object.assign(logs, { folder })
}

/**
 * Two, whose receivers answer with `status`; nothing is sent anywhere.
 * @param {import('../../server/events/stream.js').EventStream} events
 */
function fakeWebhooks (events) {
  const secret = 'known to the receiver alone'
  const webhooks = createWebhooks({
    targets: [{ url: 'https://example.com/hook?token=hidden', secret }, { url: 'https://example.com/T0A/B0B', events: ['scale.*'], secret }],
    events,
    deck: { app: '/srv/app/app.js', pid: 4000, version: '0.1.0' },
    log: { warn () {} }
  }, { fetch: async () => new Response(null, { status: fake.status }) })
  const fake = Object.assign(webhooks, { status: 204 })
  return fake
}

function fakeReleases (/** @type {any} */ release) {
  const known = {
    ...release,
    mode: 'live',
    cwd: '/srv/app',
    source: null,
    createdBy: 'system',
    note: null,
    package: { name: 'told', version: '1.2.3' },
    git: { commit: '0123456789abcdef0123456789abcdef01234567', branch: 'main', isDirty: true },
    lockFile: null,
    environment: { digest: 'sha256:00', names: ['LEVEL'] },
    changed: { from: 'r0', environment: ['LEVEL'], arguments: false, package: true, commit: false, lockFile: false, mode: false, folder: false, entry: false },
    outcome: 'succeeded',
    rollout: null,
    deployedAt: release.createdAt,
    inUse: true
  }
  return {
    list: () => ({ items: [known], next: null }),
    get (/** @type {string} */ id) {
      if (id !== release.id) throw new DeckError('not-found', `Release ${id} does not exist`)
      return known
    }
  }
}

function fakeSnapshot (/** @type {any} */ release) {
  const worker = (/** @type {number} */ slot) => ({
    id: slot,
    slot,
    pid: 4000 + slot,
    state: 'ready',
    release: 'r1',
    startedAt: '2026-01-01T00:00:00.000Z',
    readyAt: '2026-01-01T00:00:00.300Z',
    restarts: 0,
    crashLooping: false,
    retryAt: null,
    vitals: { rssBytes: 64 * 1024 * 1024, cpuPercent: 12.5, at: '2026-01-01T00:00:10.000Z' }
  })
  return {
    state: 'running',
    master: { pid: 4000, version: '0.1.0', nodeVersion: 'v20.20.2', startedAt: '2026-01-01T00:00:00.000Z', rssBytes: 50 * 1024 * 1024 },
    app: { entry: '/srv/app/app.js', cwd: '/srv/app', addresses: ['http://localhost:3000'] },
    dispatch: 'shared',
    desiredWorkers: 2,
    readyWorkers: 2,
    release,
    rollout: /** @type {any} */ (null),
    upgrade: /** @type {any} */ (null),
    lastEventId: 0,
    workers: [worker(1), worker(2)]
  }
}
