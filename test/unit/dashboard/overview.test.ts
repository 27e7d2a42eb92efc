import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeHealth } from '../../../server/words/health.ts'
import { frameModel } from '../../../server/dashboard/frame.ts'
import { withOneSnapshot } from '../../../server/dashboard/one-snapshot.ts'
import { overviewModel } from '../../../server/dashboard/overview.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { toWorkerRow } from '../../../server/dashboard/worker-row.ts'
import { createVitals } from '../../../server/vitals/vitals.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { testStates } from '../../support/golden.ts'
import { seen } from '../../support/seen.ts'
import { anEvent, aRollout, aStatus, aWorker, NOW } from '../../support/snapshots.ts'
import type { OpenCrashes } from '../../../server/words/crash-reasons.ts'
import type { Deck, Status, WorkerRow } from '../../../server/deck.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { Decided, Figures } from '../../../server/api/shapes.ts'
import type { History } from '../../../db/history.ts'
import type { RolloutView } from '../../../server/lifecycle/rollout/record.ts'

const OPERATOR = { operate: true, administer: false, switchDecks: false, name: null, role: 'operator' }
const views = createViews()

/** `health`: what is known besides the workers; `past`: null where the history cannot be read */
type State = Parts<Status> & { health?: Parameters<typeof describeHealth>[1],
  past?: { exits?: Partial<DeckEvent>[], rollouts?: RolloutView[], page?: History['page'] } | null }

function modelOf ({ health, past = {}, ...fields }: State, now = NOW) {
  const status = aStatus(fields)
  const fails = () => {
    throw new Error('disk I/O error')
  }
  const history = fake<History>(
    past
      ? { page: past.page ?? (() => ({ items: past.exits?.map((exit) => anEvent(exit)) ?? [], next: null })),
        rollouts: () => ({ items: past.rollouts ?? [], next: null }) }
      : { page: fails, rollouts: fails }
  )
  const deck = fake<Deck>({ snapshot: () => status, health: (of) => describeHealth(of, health),
    notices: { list: () => [] }, jobs: { building: () => null }, releases: { get: fails, before: fails },
    vitals: createVitals({ now: () => now }) })
  return { ...overviewModel({ params: new URLSearchParams(), deck, history, now: () => now }), can: OPERATOR,
    trouble: frameModel({ deck }).trouble }
}

/**
 * What the overview says of it: its headline, the count in the tab, the workers where they are not as usual, what
 * stands by, and the rollout.
 */
function shown (state: State) {
  const model = modelOf(state)
  const show = (partial: string) => seen(views.render(`partials/${partial}`, model)).split('\n')
  const workers = show('workers')
  const { tone, count } = model.trouble
  const rows = workers.filter((line) => /^\d+ (\[|[A-Z])/.test(line)).map((line) => line.replace(/( –)+$/, ''))
  return [`${show('health').join(' · ')} (${tone}, ${count})`, ...rows.join(' | ') === USUAL ? [] : [rows.join(' | ')],
    ...workers.filter((line) => /^(Standby|Limits)/.test(line)), ...cardOf(show('rollout')),
    model.blocked ? `No rollout can start: ${model.blocked}` : '',
    ...show('recent').filter((line) => line.includes('database'))].filter((line) => line !== '').join('\n')
}

/** One that is short is a line. */
const cardOf = (lines: string[]) => lines.length > 8 ? lines : [lines.join(' | ')]
const USUAL = '1 Ready #1 4001 r1 1 d 03 h 0 | 2 Ready #2 4002 r1 1 d 03 h 0'
const W = (slot: number, fields: Parts<WorkerRow> = {}) => aWorker({ slot, ...fields })
const BACKOFF = { id: null, pid: null, state: 'backoff', restarts: 1 }
const LOOPS = { ...BACKOFF, crashLooping: true }
const HELD = { ...BACKOFF, state: 'held', drifted: true, retryAt: '2026-01-02T03:04:07.678Z' }
const FULL = { problem: 'full (SQLITE_FULL)', since: '2026-01-01T00:00:00.000Z' }
const LOST = { notices: [{ kind: 'master-lost' }] }
const crashes = (open: number, inRelease: number, newInRelease: number, isMore = false) => ({
  crashes: fake<OpenCrashes>({ open, inRelease, newInRelease, isMore, reasons: [] })
})
const figures = (fields: Partial<Figures>) => ({ workers: 1, requests: 1200, errorRate: 0.002, p99Ms: 12, ...fields })
const STEP = { slot: 1, state: 'ready' as const, oldWorker: 1, newWorker: 3, startedAt: '2026-01-02T03:04:01.000Z',
  finishedAt: null }
const PENDING = { ...STEP, state: 'pending' as const, oldWorker: null, newWorker: null, startedAt: null }
/** A verdict by which a deploy has failed. */
const failedBy = (message: string, decided: Decided) =>
  fake<RolloutView['verdicts'][number]>({ at: '2026-01-02T03:04:04.000Z', passed: false, isFinal: false, message,
    decided, canary: figures({}), baseline: figures({}) })
const HELD_DEPLOY = aRollout({ state: 'held', pausedIn: 'canary', reason: '30.0% of the responses are 5xx', crashes: 2,
  verdicts: [
    failedBy('30.0% of the responses are 5xx', { figure: '5xx', unit: 'share', canary: 0.3, baseline: 0.002,
      limit: 0.052, option: 'errorRate' })
  ], pausedAt: '2026-01-02T03:04:04.500Z', strategy: { limits: { crashes: 0, errorRate: 0.05, p99Ratio: 3 } },
  comparison: { at: '2026-01-02T03:04:04.000Z', canary: figures({ errorRate: 0.3, p99Ms: 50 }),
    baseline: figures({ requests: 3400 }) }, steps: [STEP] })
const over = (state: 'failed' | 'rolled-back') => ({
  past: {
    rollouts: [
      aRollout({ state, finishedAt: '2026-01-02T03:04:02.000Z', reason: 'worker 3 crashed', steps: [PENDING] })
    ]
  }
})
const vitals = (ageMs: number) => ({ at: new Date(NOW - ageMs).toISOString(), rssBytes: 2 ** 26, cpuPercent: 91.5,
  requestsPerSecond: 15 })

const STATES: Record<string, State> = { 'all are ready': {},
  'the only worker is ready': { desiredWorkers: 1, workers: [W(1)] },
  'a slot waits for its restart': { workers: [W(1), W(2, BACKOFF)] },
  'a slot restarts': { workers: [W(1), W(2, { id: 9, state: 'starting', restarts: 1 })] },
  'a slot starts for the first time': { workers: [W(1), W(2, { id: 9, state: 'starting' })] },
  'a slot keeps crashing': { workers: [W(1), W(2, LOOPS)] },
  'all slots keep crashing, one is up at this moment': { workers: [W(1, { crashLooping: true }), W(2, LOOPS)],
    readyWorkers: 0 }, 'a slot that keeps crashing is up': { workers: [W(1), W(2, { crashLooping: true })] },
  'no slot is up': { workers: [W(1, BACKOFF), W(2, BACKOFF)] },
  'a worker hangs': { workers: [W(1), W(2, { state: 'unresponsive' })] },
  'slots that crash and hang count once each': { health: crashes(3, 1, 0), history: { problem: 'disk full' },
    workers: [W(1, LOOPS), W(1, { ...LOOPS, id: 3, state: 'starting' }), W(2, { state: 'unresponsive' })] },
  'a slot is held, as its files have changed': { workers: [W(1), W(2, { ...HELD, crashLooping: true })] },
  'all slots are held': { workers: [W(1, HELD), W(2, HELD)] },
  'a worker runs changed files': { workers: [W(1), W(2, { drifted: true })] },
  'a slot without a worker leads to the one that has ended last': { workers: [W(1), W(2, BACKOFF)],
    past: {
      exits: [8, 7, 6].map((worker) => ({ worker, slot: worker === 6 ? 1 : 2, message: `worker ${worker} <b>` }))
    } },
  'an old worker is kept for its connections': {
    workers: [W(1), W(2),
      W(2, { id: 7, state: 'draining', keptUntil: '2026-01-02T05:00:00.000Z',
        holds: { requests: 0, transfers: 1, webSockets: 1204, eventStreams: 0, connections: 0 } })]
  }, 'an old worker drains': { workers: [W(1), W(1, { id: 7, state: 'draining' }), W(2)] },
  'a program has come to its end': { finishedWorkers: 1,
    workers: [W(1),
      W(2, { ...BACKOFF, state: 'finished',
        finished: { at: '2026-01-02T03:00:00.000Z', code: 0, cause: 'finished', succeeded: true } })] },
  'what was reported a second ago': { workers: [W(1, { vitals: vitals(1000) }), W(2)] },
  'what was reported six seconds ago says nothing of now': { workers: [W(1, { vitals: vitals(6000) }), W(2)] },
  'workers stand by': {
    standby: { wanted: 2, ready: 1, problem: null,
      workers: [{ id: 9, pid: 99, state: 'standby', release: 'r1', rssBytes: 50 * 2 ** 20 }, { id: 10, pid: 100,
        state: 'starting', release: 'r1', rssBytes: null }] }
  }, 'no worker can stand by': { standby: { wanted: 1, ready: 0, problem: 'it does not listen', workers: [] } },
  'crashes that nobody knows of': { health: { crashes: null } },
  'crashes of other releases': { health: crashes(2, 0, 0) },
  'a new crash of this release': { health: crashes(3, 2, 1) },
  'new crashes of this release alone': { health: crashes(2, 2, 2) },
  'an open crash of this release': { health: crashes(1, 1, 0) },
  'more crashes than are counted': { health: crashes(200, 100, 0, true) },
  'a crash while a rollout runs, which counts now': { health: crashes(1, 1, 1), rollout: aRollout() },
  'a crash while nobody serves, which counts more': { health: crashes(1, 1, 1), readyWorkers: 0 },
  'a master was lost': { health: LOST },
  'a master was lost and a release rolled back': { health: { notices: [...LOST.notices, { kind: 'rolled-back' }] } },
  'a history that fails is one trouble': { history: { problem: 'disk full' },
    health: { notices: [...LOST.notices, { kind: 'history-degraded' }] } },
  'a job fails': { health: { failingJobs: [{ job: 'nightly', reason: 'nightly exited with code 3' }] } },
  'the history cannot be written': { history: { problem: 'the disk is full' } },
  'the history cannot be written, which the host tells for all of its apps': {
    master: { ...aStatus().master, isShared: true },
    history: FULL
  }, 'the history cannot be written, and nobody serves': { history: FULL, readyWorkers: 0 },
  'the history cannot be read': { past: null }, 'starting': { state: 'starting', readyWorkers: 0, workers: [] },
  'starting, before any worker is wanted': { state: 'starting', desiredWorkers: 0, readyWorkers: 0, workers: [] },
  'stopping, whatever else there is': { state: 'stopping', rollout: aRollout(), readyWorkers: 0 },
  'a deploy prepares': { rollout: aRollout({ state: 'preparing' }) },
  'a deploy rolls': { rollout: aRollout({ steps: [PENDING] }) },
  'a deploy has a canary': { workers: [W(1), W(1, { id: 3, release: 'r2' }), W(2)],
    rollout: aRollout({ state: 'canary', steps: [STEP], canaryEndsAt: '2026-01-02T03:04:35.000Z' }) },
  'a deploy goes on after its canary': { workers: [W(1), W(1, { id: 3, release: 'r2' }), W(2)],
    rollout: aRollout({ steps: [STEP] }) }, 'a deploy rolls back': { rollout: aRollout({ state: 'rolling-back' }) },
  'a deploy is paused': { rollout: aRollout({ state: 'paused', pausedIn: 'rolling' }) },
  'a deploy is held: new beside old, with Abort before all else': { rollout: HELD_DEPLOY,
    past: {
      page: ({ cause, release } = {}) => ({ items: cause === 'crash' && release === 'r1' ? [anEvent()] : [],
        next: null })
    } },
  'a restart of all': { rollout: aRollout({ kind: 'restart', to: 'r1', steps: [PENDING, { ...PENDING, slot: 2 }] }) },
  'a deploy has failed, and never came to a slot': over('failed'),
  'a deploy was rolled back, and never came to a slot': over('rolled-back'),
  'a deploy was rolled back by a figure that the table tells, too': {
    past: {
      rollouts: [
        aRollout({ state: 'rolled-back', finishedAt: '2026-01-02T03:04:02.000Z', reason: 'p50 is 120 ms',
          verdicts: [
            failedBy('p50 is 120 ms', { figure: 'p50', unit: 'ms', canary: 120, baseline: 20, limit: 90,
              option: 'p99Ratio' })
          ] })
      ]
    }
  }, 'an upgrade runs': { upgrade: { startedAt: '2026-01-02T03:04:00.000Z', actor: 'ada', note: null } } }

testStates(import.meta, 'overview', STATES, shown)

test('a held deploy stands still: nothing of its card ticks, and what it asks for is confirmed', () => {
  const render = (now: number) => views.render('partials/rollout', modelOf({ rollout: HELD_DEPLOY }, now))
  assert.equal(render(NOW + 600_000), render(NOW))
  for (const name of ['abort', 'promote'])
    assert.match(render(NOW), new RegExp(`id="rollout-${name}" data-dialog="dialog-${name}" data-fill-id="3"`))
})

test('a canary is drawn beside the old workers, each line by the name of its release', () => {
  const compared = [1, 2, 3].map((second) => ({ at: `2026-01-02T03:04:0${second}.000Z`,
    canary: figures({ p99Ms: 10 * second }), baseline: figures({ errorRate: 0.01 }) })
  )
  const rollout = aRollout({ state: 'canary', steps: [STEP], comparison: compared[2], comparisons: compared })
  const { lines, isQuiet } = modelOf({ rollout }).rollout?.beside ?? { lines: [] }
  assert.deepEqual(lines.map(({ name, labels }) => [name, ...labels.map(({ text }) => text)]), [['5xx', 'r1 1.0%',
    'r2 0.2%'], ['p99', 'r2 30 ms', 'r1 12 ms']])
  assert.equal(isQuiet, false)
  const buttons = views.render('partials/rollout', modelOf({ rollout })).match(/button small (primary|danger)?" type/g)
  assert.deepEqual(buttons, ['button small primary" type', 'button small " type', 'button small danger" type'])
})

test('of a deploy that is over its end is the one recent event, but for what went wrong in it', () => {
  const at = (second: number) => `2026-01-02T03:00:${String(second).padStart(2, '0')}.000Z`
  const all = [{ type: 'config.changed', at: at(30) }, { type: 'rollout.succeeded', rollout: 3, at: at(20),
    detail: { startedAt: at(10) } }, { type: 'worker.exited', cause: 'deploy', at: at(18) }, { type: 'worker.exited',
    cause: 'crash', at: at(16) }, { type: 'worker.ready', at: at(15) }, { type: 'release.created', at: at(11) }, {
    type: 'rollout.started',
    rollout: 3,
    at: at(10)
  }, { type: 'worker.ready', at: at(5) }]
  const shownOf = (state: State) =>
    modelOf({ ...state, past: { page: () => ({ items: all.map((event, id) =>
      anEvent({ id, ...event })
    ), next: null }) } }).recent.events.map(({ type, at: when }) => `${type} ${when.slice(17, 19)}`)
  assert.deepEqual(shownOf({}), ['config.changed 30', 'rollout.succeeded 20', 'worker.exited 16', 'worker.ready 05'])
  // What a running one does, its card shows.
  assert.deepEqual(shownOf({ rollout: aRollout({ startedAt: at(4) }) }).at(-1), 'worker.exited 16')
})

test('a job that went well is no recent event, and one that failed is', () => {
  const asked: unknown[] = []
  modelOf({ past: { page: ({ type } = {}) => {
    asked.push(...[type ?? []].flat())
    return { items: [], next: null }
  } } })
  assert.deepEqual([asked.includes('job.succeeded'), asked.includes('job.failed')], [false, true])
})

test('a canary is counted beside the workers of all slots, by its figure and by the table', () => {
  const rollout = aRollout({ state: 'canary', steps: [STEP] })
  const model = modelOf({ workers: [W(1), W(1, { id: 3, release: 'r2', state: 'starting' }), W(2)], rollout })
  assert.match(seen(views.render('partials/facts', model)), /^Workers 2 \/ 2 ready, 1 canary /)
  assert.match(seen(views.render('partials/workers', model)), /^2 ready · 1 canary$/m)
  assert.match(seen(views.render('partials/facts', modelOf({}))), /^Workers 2 \/ 2 ready Requests/)
})

test('two renderings differ in nothing but time that goes on', () => {
  const at = (now: number) => views.fragment('workers', modelOf({}, now))
  assert.notDeepEqual(at(NOW).parts, at(NOW + 3_600_000).parts)
  assert.equal(at(NOW).still, at(NOW + 3_600_000).still)
})

test('a message can be sent to a worker that hears it', () => {
  const rows = [{}, { state: 'draining' }, { state: 'starting' }, { state: 'unresponsive' }, { state: 'stopping' }, {
    orphan: true
  }, BACKOFF]
  assert.deepEqual(rows.map((fields) => toWorkerRow(aWorker(fields)).canHear), [true, true, false, false, false, false,
    false])
})

test('all that one update renders is of one snapshot and one verdict, and the next update looks again', async () => {
  const asked = { snapshot: 0, health: 0 }
  const deck = withOneSnapshot(
    fake<Deck & { name: string }>({ name: 'shop',
      snapshot: () => ({ app: { name: 'shop' }, desiredWorkers: ++asked.snapshot }), health: ({ desiredWorkers }) => {
        asked.health++
        return { tone: 'ok', problems: desiredWorkers }
      } })
  )
  const page = deck.snapshot()
  const { trouble } = frameModel({ deck })
  assert.equal(deck.health(page).problems, 1)
  assert.deepEqual([trouble.count, asked], [1, { snapshot: 1, health: 1 }])
  // Of another snapshot it is another verdict.
  assert.equal(deck.health(fake<Status>({ desiredWorkers: 7 })).problems, 7)
  await null
  assert.equal(frameModel({ deck }).trouble.count, 2)
  assert.equal(deck.name, 'shop')
})
