import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rolloutPageModel } from '../../../server/rollouts/page.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { DeckError } from '../../../server/errors.ts'
import { after, rolledBackDeploy } from '../../support/rollouts.ts'
import { fake } from '../../support/fake.ts'
import { testStates } from '../../support/golden.ts'
import { seen } from '../../support/seen.ts'
import type { Client } from '../../../server/lifecycle/state.ts'
import type { Comparison, Figures } from '../../../server/api/shapes.ts'
import type { RolloutView } from '../../../server/lifecycle/rollout/record.ts'
import type { Seen } from '../../support/event-log.ts'

const views = createViews()
const OPERATOR = { operate: true, administer: false, name: null, role: 'operator' }
type Model = Seen<ReturnType<typeof rolloutPageModel>>

function look (rollout: RolloutView,
  { durations = [], isRunning = false, second = 100, releases = [], runtime = 'node' }: { durations?: number[],
    isRunning?: boolean, second?: number, releases?: { id: string }[], runtime?: 'node' | 'other' } = {}): Model
{
  const history = { rollout: () => isRunning ? null : rollout, rolloutDurations: () => durations,
    page: () => ({ items: [], next: null }) }
  const get = (id: string) => {
    const found = releases.find((release) => release.id === id)
    if (!found) throw new DeckError('not-found', id)
    return found
  }
  const deck = {
    snapshot: () => ({ state: 'running' as const, rollout: isRunning ? rollout : null, workers: [],
      release: { id: 'r1', runtime } }),
    releases: { get }
  }
  return rolloutPageModel(
    fake({ deck, history, id: String(rollout.id), now: () => Date.parse(after(second)) })
  ) as Model
}

const { steps, timeline, comparisons, verdicts } = rolledBackDeploy()
const silent = (figures: Figures) => ({ ...figures, requests: 0, errorRate: null, p99Ms: null })
const sides = ({ canary, baseline }: Pick<Comparison, 'canary' | 'baseline'>) => ({ canary: silent(canary),
  baseline: silent(baseline) })
const SILENCED = comparisons.map((each) => ({ ...each, ...sides(each) }))
const UNCOUNTED = { comparison: SILENCED.at(-1), comparisons: SILENCED,
  verdicts: [{ ...verdicts[0], ...sides(verdicts[0]), passed: null, message: 'it has run for too short a time' }] }
const WITHOUT_CANARY = steps.map((step) => ({ ...step, isCanary: false }))
const SLOW = 'the new workers\' p50 latency after warm-up is 90 ms, old workers: 6 ms'
const SLOW_BY = `${SLOW} (option rollout.limits.slowerMs: 50)`
const TOO_SLOW = { reason: SLOW_BY,
  comparisons: comparisons.map((each) => ({ ...each, canary: { ...each.canary, p50Ms: 90 },
    baseline: { ...each.baseline, p50Ms: 6 } })
  ),
  verdicts: [{ ...verdicts[0], passed: false, message: SLOW_BY,
    decided: { figure: 'p50', unit: 'ms' as const, canary: 90, baseline: 6, limit: 56,
      option: 'slowerMs' as const } }] }
const NOT_OVER = { state: 'rolling' as const, done: false, finishedAt: null }
const RUNNING = rolledBackDeploy({ ...NOT_OVER, state: 'canary', reason: null, timeline: timeline.slice(0, 3),
  pausedAt: null,
  steps: [{ ...steps[0], state: 'ready', promotedAt: null, drainedAt: null, revertingAt: null, finishedAt: null }] })

/** `parts`: of the page, those that this state is about */
type State = { changes?: Partial<RolloutView>, parts: string, more?: Parameters<typeof look>[1], can?: object }

const STATES: Record<string, State> = {
  'a deploy that was paused, judged, and rolled back': { parts: 'head facts graphs moments slots' },
  'a rollout that was retried, whose event is that of one that was resumed': { parts: 'moments',
    changes: {
      timeline: [{ at: timeline[0].at, type: 'rollout.resumed', actor: 'grace', message: 'retried by grace',
        passed: null }]
    } },
  'a program whose requests nobody counts': { parts: 'facts graphs', changes: UNCOUNTED, more: { runtime: 'other' } },
  'one with too few answers for a line, and without a canary': { parts: 'graphs',
    changes: { comparisons: comparisons.slice(1, 3), steps: WITHOUT_CANARY } },
  'its usual time, where three of its kind have succeeded': { parts: 'facts',
    changes: { state: 'succeeded', reason: null, steps: WITHOUT_CANARY },
    more: { durations: [20_000, 30_000, 26_000, 22_000] } },
  'no usual time, where two of its kind have succeeded': { parts: 'facts', changes: { steps: WITHOUT_CANARY },
    more: { durations: [20_000, 30_000] } },
  'no usual time, where it has a canary': { parts: 'facts', more: { durations: [20_000, 30_000, 26_000, 22_000] } },
  'one that its p50 has failed, which is drawn with its limit': { parts: 'head graphs', changes: TOO_SLOW },
  'one that made no progress, with the option beside': { parts: 'head',
    changes: { reason: 'no step of it was done for 10 min (option rollout.progressDeadlineMs)' } },
  'one that runs, which an operator can steer': { parts: 'head facts slots', changes: RUNNING,
    more: { isRunning: true, second: 20.4 } },
  'one that runs, for a viewer': { parts: 'head', changes: RUNNING, more: { isRunning: true, second: 20.4 },
    can: { ...OPERATOR, operate: false } }
}

testStates(import.meta, 'rollout-page', STATES, ({ changes, parts, more, can = OPERATOR }) => {
  const model = look(rolledBackDeploy(changes), more)
  const html = parts.split(' ').map((part) => views.render(`partials/rollout-${part}`, { ...model, can })).join('')
  assert.doesNotMatch(html, /<script|\u202E/)
  return seen(html)
})

test('each slot has a bar for each part of its time', () => {
  const model = look(rolledBackDeploy())
  const [first, , third] = model.slots
  assert.deepEqual(first.bars.map(({ kind, x, width }) => [kind, x, x + width]), [['starting', 8, 25], ['ready', 25,
    602], ['draining', 602, 631], ['reverting', 904, 942]])
  assert.deepEqual(third.bars.map(({ kind, title }) => [kind, title]), [['starting', 'start: 14 s']])
  assert.deepEqual(first.bands.map(({ title }) => title), ['paused: 9.0 s'])
})

test('what the judge saw is drawn over the time of the rollout, with gaps where there was nothing and where it counts anew', () => {
  const { graphs: { lines: [errors, p99], marks, bands } } = look(rolledBackDeploy())
  assert.equal(errors.canary.path.match(/[ML]/g)?.join(''), 'MLLLL', 'the first look had no request')
  assert.equal(errors.baseline.path.match(/[ML]/g)?.join(''), 'MLLLLL')
  assert.deepEqual([errors.last, p99.last], [{ canary: '0.5%', baseline: '0.2%' }, { canary: '15 ms',
    baseline: '12.5 ms' }])
  assert.equal(p99.summary, 'p99: new workers 15 ms, old workers 12.5 ms at the end')
  assert.deepEqual([marks.length, bands.length], [1, 1])
  for (const { labels: [upper, lower] } of [errors, p99])
    assert.ok(lower.y - upper.y >= 15, `${upper.text} and ${lower.text} cover each other`)
  assert.deepEqual(p99.labels.map(({ text }) => text), ['r2 15 ms', 'r1 12.5 ms'])
  const [first, second] = rolledBackDeploy().comparisons.slice(2)
  const anew = look(
    rolledBackDeploy({
      comparisons: [first, second, { ...second, at: after(26), canary: { ...second.canary, requests: 5 } }]
    })
  )
  assert.equal(anew.graphs.lines[0].canary.path.match(/[ML]/g)?.join(''), 'MLM')
})

test('why there is no graph is said: it has just begun, or nobody counts the requests', () => {
  const none = (changes: Partial<RolloutView>, more: Parameters<typeof look>[1] = {}) =>
    look(rolledBackDeploy({ comparisons: [], ...changes }), more).graphs.none
  assert.match(none(NOT_OVER, { isRunning: true }), /^New workers are compared with old ones every 5 s/)
  assert.match(look(rolledBackDeploy(UNCOUNTED)).graphs.none, /^No request was answered/, 'a Node app without requests')
  assert.deepEqual(look(rolledBackDeploy(UNCOUNTED)).graphs.lines, [])
})

test('the graph of latency is of the quantile that has decided, with its limit as a line', () => {
  const { lines: [errors, latency] } = look(rolledBackDeploy(TOO_SLOW)).graphs
  assert.deepEqual([errors.limit, latency.name, latency.last, latency.max, latency.limit], [null, 'p50', {
    canary: '90 ms',
    baseline: '6 ms'
  }, '90 ms', { text: '56 ms', y: 28.2 }])
})

test('beside a long hold what was done before it is as wide as four times the hold', () => {
  const [first] = rolledBackDeploy().steps
  const held = rolledBackDeploy({ ...NOT_OVER, state: 'held', pausedAt: after(2.5),
    timeline: [timeline[0], { ...timeline[2], at: after(2.5), type: 'rollout.held' }],
    steps: [{ ...first, state: 'failed', startedAt: after(0.5), readyAt: null, promotedAt: null, drainedAt: null,
      revertingAt: null, finishedAt: after(2.5) }] })
  const { slots: [{ bars, bands }], graphs } = look(held, { isRunning: true, second: 200 })
  assert.deepEqual([...bars, ...bands].map(({ kind, x, width }) => [kind, x, width]), [['starting', 160, 640], ['still',
    800, 200]])
  assert.deepEqual(graphs.bands, [{ x: 320, width: 80 }])
})

test('what serves after one that did not succeed is said, where nothing of it has stayed', () => {
  const said = (changes: Partial<RolloutView>) =>
    /r\d serve[sd] on/.exec(
      seen(views.render('partials/rollout-head', { ...look(rolledBackDeploy(changes)), can: OPERATOR }))
    )?.[0]
  assert.deepEqual([said({}), said({ from: 'r0' }), said({ state: 'failed', progress: { total: 4, replaced: 1 } })], [
    'r1 serves on',
    'r0 served on',
    undefined
  ])
})

test('of a program whose requests nobody counts the crashes alone are compared while it is held', () => {
  const { rollout } = look(rolledBackDeploy({ ...UNCOUNTED, ...NOT_OVER, state: 'held' }), { runtime: 'other',
    isRunning: true })
  assert.deepEqual(rollout.beside.rows.map(({ name }) => name), ['Crashes'])
})

test('a pause that goes on counts until now, and so do the bars of one that runs', () => {
  const model = look(RUNNING, { isRunning: true, second: 20.4 })
  assert.deepEqual([model.axis.lengthMs, model.pausedMs], [21_000, 9000])
  assert.deepEqual(model.slots[0].bars.map(({ kind, x, width }) => [kind, x + width]), [['starting', 62], ['ready',
    1000]])
})

test('says who has begun it, and by what', () => {
  const who = (actor: string, client?: Client | null) => look(rolledBackDeploy({ actor, client })).who
  assert.deepEqual([who('the owner\'s token', 'dashboard'), who('signal', null), who('grace', 'api'),
    who('grace', undefined)], ['by the owner\'s token, on the dashboard', 'by a signal', 'by grace, by the API',
    'by grace'])
})
