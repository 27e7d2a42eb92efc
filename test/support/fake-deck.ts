import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isOneOf } from '../../server/causes.ts'
import { SCHEMA } from '../../server/config/options.ts'
import { createSettings, type NewChange } from '../../server/config/settings.ts'
import { STEERING } from '../../server/config/steering.ts'
import { createCrashService } from '../../server/crashes/crashes.ts'
import { DeckError } from '../../server/errors.ts'
import { createNotices } from '../../server/events/notices.ts'
import { createEventStream, type EventStream } from '../../server/events/stream.ts'
import { createHealth } from '../../server/words/health.ts'
import { strategyOf } from '../../server/lifecycle/rollout/strategy.ts'
import { createOtherDecks } from '../../server/system/other-decks.ts'
import { createMergedProfile } from '../../server/diagnostics/merged-profile.ts'
import { createVitals } from '../../server/vitals/vitals.ts'
import { createLogs } from '../../server/logs/logs.ts'
import { tellSlowSpells } from '../../server/app/slow-spells.ts'
import { createAlerts } from '../../server/alerts/alerts.ts'
import { fake, type Parts } from './fake.ts'
import { createFakeJobs } from './fake-jobs.ts'
import { tempFolder } from './folder.ts'
import type { OpenRequests } from '../../server/api/cluster.ts'
import type { KeptRelease } from '../../server/api/shapes.ts'
import type { MetricHistory } from '../../server/telemetry/metric-history.ts'
import type { Diagnostic, Preview, ShownRelease } from '../../server/api/shapes.ts'
import type { Deck, Status, WorkerRow } from '../../server/deck.ts'
import type { Window } from '../../server/diagnostics/profiling.ts'
import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'
import type { AppFleet } from '../../server/fleet/app-fleet.ts'
import type { RunningDeck } from '../../server/system/running-decks.ts'
import type { Report } from '../../server/doctor/doctor.ts'
import type { History } from '../../db/history.ts'

/** What has been asked of a fake deck. */
type Asked = { type: string, kind?: string, actor?: string, client?: string, note?: string | null, worker?: number,
  workers?: number, order?: Order, [name: string]: unknown }
type Order = Parameters<Deck['send']>[0]
type Answer = Parts<ReturnType<Deck['dispatch']>>
/** `set`: merges these over the snapshot */
type FakeDeck =
  & Omit<Deck, 'fleet'>
  & {
    fleet: AppFleet | null,
    dispatched: Asked[],
    registered: RunningDeck[],
    requests: OpenRequests['items'],
    report: Report,
    anew: NewChange[],
    diagnostics: { items: FakeDiagnostic[] },
    profiling: ReturnType<typeof fakeProfiling>,
    set: (changes: Parts<Status>) => void,
    releases: { items: FakeRelease[] },
    logs: { folder: string },
    alerts: { status: number },
    /** what the app counts; a test may replace its fields */
    metricsOfApp: ReturnType<MetricHistory['list']>,
    jobs: ReturnType<typeof createFakeJobs>,
    vitals: ReturnType<typeof createVitals>
  }
type FakeRelease = KeptRelease & { [Name in 'changed' | 'git']: NonNullable<KeptRelease[Name]> }
/** `file`: of its own */
type FakeDiagnostic = Diagnostic & { file?: string }

/**
 * A deck without processes, for tests of the admin side. Its cluster changes only when the test says so, by
 * `deck.set(...)`. `history`: a real one over a real database file, see db/; `wall`: by which its parts say when
 * something happened.
 */
export function createFakeDeck (
  { history, now = Date.now, wall = Date.now }: { history: History, now?: () => number, wall?: () => number }
): FakeDeck {
  const events = createEventStream({ lastId: history.lastEventId(), now: wall })
  events.subscribe((event) => history.record(event))
  const vitals = createVitals({ store: history.vitals, now, ...tellSlowSpells(events) })
  events.subscribe(vitals.count)
  /** every command that was dispatched, oldest first */
  const dispatched: Asked[] = []
  /** what each worker has in flight */
  const requests: OpenRequests['items'] = []
  /** of this machine */
  const registered: RunningDeck[] = []
  const logs = fakeLogs()
  const settings = createSettings({ ...SCHEMA.parse({}), entry: '/srv/app/app.js', cwd: '/srv/app',
    dataDir: '/srv/app/.clusterdeck', workers: 2 }, { key: 'key' })
  const crashes = createCrashService({ store: history.crashes, events, release: () => state.release.id,
    releases: () => releases.items, now: wall })
  const notices = createNotices({ history, events })
  const release = { id: 'r1', entry: '/srv/app/app.js', path: '/srv/app', createdAt: '2026-01-01T00:00:00.000Z' }
  const releases = fakeReleases(release)
  let state = fakeSnapshot(release)

  const effects: Record<string, (command: Asked) => Answer> = { rollout: fakeRollout,
    'restart-worker': (command) => fakeRollout({ ...command, kind: 'restart' }), scale ({ workers, actor }) {
    state.desiredWorkers = Number(workers)
    events.publish({ type: 'scale.changed', actor, detail: { to: workers } })
    return { desiredWorkers: state.desiredWorkers }
  }, upgrade ({ actor, note = null }) {
    state.upgrade = { startedAt: new Date().toISOString(), actor: String(actor), note }
    return state.upgrade
  }, 'kill-worker': () => ({}), 'end-connections': () => ({}),
    ...Object.fromEntries(STEERING.map((type) => [type, () => structuredClone(state.rollout)])), stop () {
    state.state = 'stopping'
    return { state: 'stopping' }
  } }

  const jobs = createFakeJobs({ history, events })
  const metricsOfApp: ReturnType<MetricHistory['list']> = { times: [], releases: [], metrics: [] }
  const deck: FakeDeck = fake({
    events,
    history,
    vitals,
    appMetrics: { read: async () => ({ metrics: [], leftOut: 0 }) },
    metricHistory: { isEmpty: () => metricsOfApp.metrics.length === 0, list: () => metricsOfApp },
    metricsOfApp,
    logs,
    alerts: fakeAlerts(events, { store: history.alerts, time: wall, app: () => state.app.name }),
    jobs,
    releases,
    crashes,
    notices,
    registered,
    fleet: null,
    others: createOtherDecks({ isOwn: ({ dataDir }) => dataDir === settings.current.dataDir, list: () => registered,
      now }),
    health: createHealth({ history, crashes, notices, jobs }),
    dispatched,
    diagnostics: fakeDiagnostics({ dispatched, workerOf }),
    profiling: fakeProfiling(),
    settings,
    configure ({ wanted, actor }: { wanted: Record<string, unknown>, actor: string }) {
      const { config, changes } = settings.plan(wanted)
      dispatched.push({ type: 'configure', wanted, actor })
      settings.adopt(config)
      events.publish({ type: 'config.changed', actor, detail: { changes } })
    },
    isStopFirst: () => settings.current.rollout.order === 'stop-first',
    /** What was configured anew; a test may change it. */
    anew: [],
    configuredAnew: async () => deck.anew,
    snapshot: () => structuredClone({ ...state, workers: state.workers.map(withTime), lastEventId: events.lastId }),
    status () {
      const snapshot = deck.snapshot()
      return { ...snapshot, health: deck.health(snapshot), notices: notices.list() }
    },
    set (changes) {
      state = { ...state, ...changes as Partial<Status> }
    },
    async stored () {},
    dispatch (command: Asked) {
      if (state.rollout && command.type !== 'stop' && !isOneOf(STEERING, command.type)) {
        throw new DeckError('rollout-running', `rollout ${state.rollout.id} (${state.rollout.kind}) is running`, {
          details: { rollout: state.rollout.id }
        })
      }
      dispatched.push(command)
      return effects[command.type](command)
    },
    send (order: Order) {
      if (order.worker && !workerOf(order.worker))
        throw new DeckError('not-found', `No worker ${order.worker} is alive`)
      dispatched.push({ type: 'message', order })
      return { workers: order.worker ? [order.worker] : [1, 2] }
    },
    async openRequests (worker: number) {
      if (!workerOf(worker)) throw new DeckError('not-found', `No worker ${worker} is alive`)
      return { items: requests, total: requests.length }
    },
    requests,
    /** What the checks have found; a test may change it. */
    report: fakeReport(),
    examine: async () => deck.report,
    async move (to) {
      dispatched.push({ type: 'move', ...to })
      return { name: 'shop' }
    },
    deploy: async (command) => deck.dispatch({ type: 'rollout', kind: 'deploy', ...command }),
    async deployCommit (command) {
      dispatched.push({ type: 'deploy-commit', ...command })
      return jobs.runSteps({ name: `deploy --git ${command.git}`, git: command.git, option: 'hooks.build.timeoutMs',
        timeoutMs: 60_000, actor: command.actor, steps: async () => ({ release: 'r1', rollout: 1 }) })
    },
    preview: async (wanted) => fakePreview(wanted, state)
  })
  return deck

  function workerOf (id: number) {
    return state.workers.find((worker) => worker.id === id)
  }

  /** Vitals are of this moment, unless the test has said of which. */
  function withTime (worker: WorkerRow) {
    return { ...worker, vitals: worker.vitals && { ...{ at: new Date(now()).toISOString() }, ...worker.vitals } }
  }

  function fakeRollout ({ kind = 'restart', actor, note = null }: Asked) {
    const rollout = fake<RolloutView>({ id: 1, kind: kind as RolloutView['kind'], state: 'rolling', from: 'r1',
      to: kind === 'deploy' ? 'r2' : 'r1', actor: String(actor), note, startedAt: new Date().toISOString(),
      finishedAt: null, done: false, reason: null, progress: { total: 2, replaced: 0 },
      steps: state.workers.map((worker) => ({ slot: worker.slot, state: 'pending' as const, oldWorker: worker.id,
        newWorker: null, startedAt: null, finishedAt: null })
      ) })
    state.rollout = rollout
    events.publish({ type: 'rollout.started', rollout: 1, actor, detail: structuredClone(rollout) })
    return structuredClone(state.rollout)
  }
}

/** One that is done, and whatever a test adds to `items`; what is started goes on until a test ends it. */
function fakeDiagnostics (
  { dispatched, workerOf }: { dispatched: Asked[], workerOf: (id: number) => WorkerRow | undefined }
) {
  const done: Diagnostic = { id: 1, kind: 'heap-statistics', worker: 1, slot: 1, pid: 4001, release: 'r1',
    state: 'done', durationMs: null, actor: 'token', startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: '2026-01-01T00:00:01.000Z', bytes: 2, error: null, warning: null }
  /** newest first */
  const items: FakeDiagnostic[] = [done]
  const about = ({ file, ...item }: FakeDiagnostic): Diagnostic => item
  return { items, list: () => items.map(about),
    get: (id: number) => items.filter((item) => item.id === id).map(about)[0] ?? null, file (id: number) {
    const item = items.find((one) => one.id === id)
    return item?.state === 'done'
      ? { file: item.file ?? fileURLToPath(import.meta.url), name: `${id}-worker-${item.worker}.json` }
      : null
  }, start (order: Parameters<Deck['diagnostics']['start']>[0]) {
    const worker = workerOf(order.worker)
    if (!worker) throw new DeckError('not-found', `No worker ${order.worker} is alive`)
    dispatched.push({ type: 'diagnose', ...order })
    const item: Diagnostic = { ...done, durationMs: null, ...order, id: items[0].id + 1, slot: worker.slot,
      pid: Number(worker.pid), state: 'running', startedAt: new Date().toISOString(), finishedAt: null, bytes: null }
    items.unshift(item)
    return about(item)
  }, remove (id: number) {
    const place = items.findIndex((item) => item.id === id)
    if (place === -1) throw new DeckError('not-found', `Diagnostics ${id} do not exist`)
    items.splice(place, 1)
  } }
}

/** Slices of which each has one busy function of the app. */
function fakeProfiling () {
  /** newest first */
  const items: { at: number, worker: number, slot: number, release: string, name: string, busy: string, file?: string,
    ms: number }[] = []
  const frame = (functionName: string, url = '') => ({ functionName, scriptId: '0', url, lineNumber: 0,
    columnNumber: 0 })
  return { items, isOn: () => items.length > 0,
    list: ({ since = 0, until = Infinity, worker, release }: Window = {}) =>
      items.filter((each) =>
        each.at >= since && each.at < until && (worker ?? each.worker) === each.worker &&
        (release ?? each.release) === each.release
      ), async read (window: Window) {
    const slices = this.list(window)
    const merged = createMergedProfile()
    for (const { busy, ms, file = `/srv/app/${busy}.js` } of slices)
      merged.add({
        nodes: [{ id: 1, callFrame: frame('(root)'), children: [2, 3] }, { id: 2, callFrame: frame('(idle)') }, { id: 3,
          callFrame: frame(busy, `file://${file}`) }],
        samples: [2, 3],
        timeDeltas: [0, 1000 * (5000 - ms)],
        startTime: 0,
        endTime: 5_000_000
      }, { from: null, to: null })
    return { profile: merged.profile(), slices }
  } }
}

/** Real files, which the workers of two slots could write; nothing rotates them. */
function fakeLogs () {
  const folder = path.join(tempFolder(), 'logs')
  const options = { maxBytes: 1e6, maxFiles: 5, mirror: 'off' } as const
  const logs = createLogs({ folder, options, streams: { stdout: process.stdout, stderr: process.stderr } })
  for (const slot of [1, 2]) logs.open({ worker: slot, slot }).close()
  return Object.assign(logs, { folder })
}

/** Two, whose receivers answer with `status`; nothing is sent anywhere. `store`: of those that are added. */
function fakeAlerts (events: EventStream,
  { store, time, app }: { store: History['alerts'], time: () => number, app: () => string })
{
  const secret = 'known to the receiver alone'
  const alerts = createAlerts({
    configured: [{ kind: 'webhook', url: 'https://example.com/hook?token=hidden', secret }, { kind: 'slack',
      name: 'ops', url: 'https://hooks.example.com/T0A/B0B', events: ['scale.*'] }],
    store,
    events,
    deck: () => ({ host: 'web-1', app: app(), url: null, entry: '/srv/app/app.js', pid: 4000, version: '0.1.0' }),
    log: { warn () {} }
  }, { time, fetch: async () => new Response(null, { status: all.status }) })
  const all = Object.assign(alerts, { status: 204 })
  return all
}

function fakePreview ({ kind, release = 'r2' }: Parameters<Deck['preview']>[0],
  { rollout, desiredWorkers }: Status): Preview
{
  return { kind, from: 'r1',
    release: { id: release, isNew: true, mode: 'live', entry: '/srv/app/app.js', path: '/srv/app', cwd: '/srv/app',
      source: null, package: { name: 'told', version: '1.2.4' }, git: null, arguments: 0, nodeOptions: 2,
      hooks: ['beforeDeploy'] }, build: null,
    changed: { from: 'r1', environment: ['LEVEL'], arguments: false, package: true, commit: false, lockFile: false,
      mode: false, folder: false, entry: false },
    commits: {
      added: {
        items: [{ commit: '89'.repeat(20), at: '2026-01-01T00:00:00.000Z', author: 'Ada', subject: 'Faster totals' }],
        hasMore: true
      },
      removed: { items: [], hasMore: false }
    }, files: { added: 1, changed: 30, removed: 0, items: [{ name: 'views/<b>.html', change: 'changed' }] },
    options: [{ name: 'workers', from: 2, to: 4, takesEffect: 'start' }, { name: 'env', from: null, to: null,
      takesEffect: 'deploy' }],
    plan: { workers: desiredWorkers, text: '2 workers, one at a time; if one fails, it rolls back',
      strategy: strategyOf(kind, desiredWorkers), extraWorkers: 1, extraBytes: 64 * 2 ** 20 },
    last: [{ rollout: 1, state: 'succeeded', release: 'r1', startedAt: '2026-01-01T00:00:00.000Z', tookMs: 4200 }],
    warnings: ['r1 runs from the same folder'],
    refusals: rollout
      ? [{ code: 'rollout-running', message: `rollout ${rollout.id} (${rollout.kind}) is running` }]
      : [] }
}

/** One of each severity. */
function fakeReport (): Report {
  return { checkedAt: '2026-01-01T00:00:00.000Z', isRunning: true, problems: 2,
    items: [{ id: 'drain', severity: 'error', title: '1 replaced worker has cut off requests',
      why: 'They took longer than a worker has to finish them.',
      mend: [{ how: 'flags', text: '--drain-deadline-ms 120000', where: 'clusterdeck start',
        sets: { name: 'drain.deadlineMs', value: 120_000 } }] }, { id: 'in-place', severity: 'warning',
      title: 'Releases run in place', why: 'A rollback cannot bring the code back.',
      mend: [{ how: 'option', text: 'releases: { mode: \'folder\' }', where: '/srv/app/clusterdeck.config.mjs' }] }, {
      id: 'clock',
      severity: 'unknown',
      title: 'Whether the clock is synchronized is not known here',
      why: '',
      mend: []
    }, { id: 'readiness', severity: 'info', title: 'No health path is asked', why: '',
      mend: [{ how: 'code', text: 'Give the app a path such as /health, and set ready.path to it', where: null }] }, {
      id: 'keeper',
      severity: 'ok',
      title: 'A keeper holds the sockets',
      why: '',
      mend: []
    }] }
}

function fakeReleases (release: ShownRelease) {
  const git = { commit: '0123456789abcdef0123456789abcdef01234567', branch: 'main', isDirty: true, author: 'Ada',
    subject: 'Faster totals' }
  const known: FakeRelease = { ...release, mode: 'live', cwd: '/srv/app', source: null, createdBy: 'system', note: null,
    package: { name: 'told', version: '1.2.3' }, git, lockFile: null,
    environment: { digest: 'sha256:00', names: ['LEVEL'] },
    changed: { from: 'r0', environment: ['LEVEL'], arguments: false, package: true, commit: false, lockFile: false,
      mode: false, folder: false, entry: false }, outcome: 'succeeded', rollout: null, deployedAt: release.createdAt,
    servedAt: release.createdAt, setback: null, isLastGood: false, inUse: true, changedInPlace: null }
  /** newest first; a test may put others in front */
  const items: FakeRelease[] = [known]
  return { items, list: () => ({ items: [...items], next: null }), get,
    refs:
      async () => [{ name: 'main', kind: 'branch' as const, commit: git.commit, at: release.createdAt,
        subject: git.subject }], before (id: string) {
    const found = items.find((each) => each.id !== id && each.servedAt !== null)
    if (!found) throw new DeckError('not-found', `No release other than ${id}`)
    return found.id
  }, async compare (from: string, to: string, { withFiles = false } = {}) {
    return { changed: { ...get(to).changed, from: get(from).id },
      commits: { added: { items: [], hasMore: false },
        removed: { items: [{ commit: '89'.repeat(20), at: release.createdAt, author: 'Ada', subject: 'Slower totals' }],
          hasMore: true } },
      files: withFiles
        ? { added: 0, changed: 1, removed: 0, items: [{ name: 'app.js', change: 'changed' as const }] }
        : null }
  } }

  function get (id: string) {
    const found = items.find((each) => each.id === id)
    if (!found) throw new DeckError('not-found', `Release ${id} does not exist`)
    return found
  }
}

function fakeSnapshot (release: ShownRelease) {
  const worker = (slot: number) => ({ id: slot, slot, logSlot: slot, pid: 4000 + slot, state: 'ready', release: 'r1',
    startedAt: '2026-01-01T00:00:00.000Z', readyAt: '2026-01-01T00:00:00.300Z', restarts: 0, crashLooping: false,
    retryAt: null, holds: null, keptUntil: null, finished: null,
    vitals: { rssBytes: 64 * 1024 * 1024, cpuPercent: 12.5 } })
  return fake<Status>({ state: 'running',
    master: { pid: 4000, version: '0.1.0', nodeVersion: 'v26.99.0', startedAt: '2026-01-01T00:00:00.000Z',
      rssBytes: 50 * 1024 * 1024, isShared: false },
    app: { name: 'app', entry: '/srv/app/app.js', program: null, cwd: '/srv/app', addresses: ['http://localhost:3000'],
      ownSockets: null }, limits: { memoryBytes: 0, cpus: 0, problem: null }, dispatch: 'shared', stickyBy: null,
    isEven: true, desiredWorkers: 2, readyWorkers: 2, finishedWorkers: 0, nextRestartAt: null, release, rollout: null,
    upgrade: null, lastEventId: 0, workers: [worker(1), worker(2)],
    standby: { wanted: 0, ready: 0, problem: null, workers: [] } })
}
