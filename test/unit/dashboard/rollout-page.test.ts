import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rolloutPageModel } from '../../../server/dashboard/rollout-page.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { DeckError } from '../../../server/errors.ts'
import { after, rolledBackDeploy } from '../../support/rollouts.ts'
import { fake } from '../../support/fake.ts'
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

const textOf = (name: string, model: Model, can: object = OPERATOR) =>
  views.render(name, { ...model, can }).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('each slot tells when its worker began, how long each part took, and how it ended', () => {
  const model = look(rolledBackDeploy())
  assert.deepEqual(model.slots.map(({ facts }) => facts), [['ready after 900 ms', 'canary for 30 s',
    'old worker drained in 1.5 s', 'rolled back in 2.0 s'], ['ready after 900 ms', 'old worker drained in 3.7 s',
    'rolled back in 5.0 s'], ['failed after 14 s'], []])
  const [first, , third] = model.slots
  assert.deepEqual(first.bars.map(({ kind, x, width }) => [kind, x, x + width]), [['starting', 8, 25], ['ready', 25,
    602], ['draining', 602, 631], ['reverting', 904, 942]])
  assert.deepEqual(third.bars.map(({ kind, title }) => [kind, title]), [['starting', 'started: 14 s']])
  assert.deepEqual(first.bands.map(({ title }) => title), ['paused: 9.0 s'])
})

test('the story tells who did what, how long it was paused, and why it was rolled back', () => {
  const model = look(rolledBackDeploy())
  assert.deepEqual([model.who, model.pausedMs, model.compareUrl], ['by ada, on the command line', 9000,
    '/releases/r2/compare?from=r1'])
  assert.deepEqual(model.moments.filter(({ label }) => /compared|judged/i.test(label)).map(({ tone }) => tone), ['ok'])
  const text = textOf('partials/rollout-moments', model)
  assert.match(text, /start Rollout started by ada Faster &lt;b&gt;totals&lt;\/b&gt;/)
  assert.match(text, /\+1\.3 s Canary of 1 of 4 slots for 30 s/)
  assert.match(text, /\+12 s Rollout paused by grace for 9\.0 s/)
  assert.doesNotMatch(text, /(paused|resumed) by grace (paused|resumed) by grace/)
  assert.match(text,
    /\+47 s Rollout rolling back Worker 7 \(slot 3\) exited with code 1: &lt;script&gt;alert\(1\)&lt;\/script&gt;&lt;U\+202E&gt;/)
  assert.doesNotMatch(views.render('partials/rollout-head', { ...model, can: OPERATOR }), /<script|\u202E/)
})

test('a rollout that was retried says so, as its event is that of one that was resumed', () => {
  const { startedAt } = rolledBackDeploy()
  const timeline = [{ at: startedAt, type: 'rollout.resumed', actor: 'grace', message: 'retried by grace',
    passed: null }]
  assert.match(textOf('partials/rollout-moments', look(rolledBackDeploy({ timeline }))),
    /Rollout resumed by grace Retried by grace/)
})

test('what the judge saw is drawn over the time of the rollout, with gaps where there was nothing and where it counts anew', () => {
  const { graphs: { lines: [errors, p99], measurements, marks, bands } } = look(rolledBackDeploy())
  assert.equal(errors.canary.path.match(/[ML]/g)?.join(''), 'MLLLL', 'the first look had no request')
  assert.equal(errors.baseline.path.match(/[ML]/g)?.join(''), 'MLLLLL')
  assert.deepEqual([errors.last, p99.last], [{ canary: '0.5%', baseline: '0.2%' }, { canary: '15 ms',
    baseline: '12.5 ms' }])
  assert.equal(p99.summary,
    'p99: new workers 15 ms at the end, at most 15 ms; old workers 12.5 ms at the end, at most 12.5 ms')
  assert.deepEqual([measurements.length, marks.length, bands.length], [6, 1, 1])
  const [first, second] = rolledBackDeploy().comparisons.slice(2)
  const anew = look(
    rolledBackDeploy({
      comparisons: [first, second, { ...second, at: after(26), canary: { ...second.canary, requests: 5 } }]
    })
  )
  assert.equal(anew.graphs.lines[0].canary.path.match(/[ML]/g)?.join(''), 'MLM')
})

test('a rollout of before this was kept says so, and shows what there is', () => {
  const { timeline, comparisons, client, steps, ...rest } = rolledBackDeploy()
  const model = look({ ...rest, steps: steps.map(({ readyAt, promotedAt, drainedAt, revertingAt, ...step }) => step) })
  assert.match(textOf('partials/rollout-graphs', model), /No measurements were kept/)
  assert.match(textOf('partials/rollout-moments', model),
    /Only its start and end were kept.* start Rollout started by ada .* \+52 s Rolled back/)
  assert.match(textOf('partials/rollout-slots', model),
    /Only the start and end of each slot were kept.* Slot 1 .* took 48 s/)
})

test('why there is no graph is said: nothing is judged, or it was over too soon', () => {
  const none = (changes: Partial<RolloutView>, parts: Parameters<typeof look>[1] = {}) =>
    look(rolledBackDeploy({ comparisons: [], ...changes }), parts).graphs.none
  assert.match(none({ kind: 'restart' }), /^Only deploys are compared/)
  assert.match(none({}), /^Too short to compare/)
  assert.match(none({ state: 'rolling', done: false, finishedAt: null }, { isRunning: true }), /^No measurement yet/)
})

test('of a program whose requests nobody counts, no requests are drawn or compared, and its verdicts are told', () => {
  const silent = (figures: Figures) => ({ ...figures, requests: 0, errorRate: null, p99Ms: null })
  const sides = ({ canary, baseline }: Pick<Comparison, 'canary' | 'baseline'>) => ({ canary: silent(canary),
    baseline: silent(baseline) })
  const { comparisons, verdicts } = rolledBackDeploy()
  const silenced = comparisons.map((each) => ({ ...each, ...sides(each) }))
  const uncounted = { comparison: silenced.at(-1), comparisons: silenced,
    verdicts: [{ ...verdicts[0], ...sides(verdicts[0]), passed: null, message: 'it has run for too short a time' }] }
  const model = look(rolledBackDeploy(uncounted), { runtime: 'other' })
  assert.equal(model.verdict.label, 'too short a time')
  const text = textOf('partials/rollout-graphs', model)
  assert.match(text,
    /judged by CPU and memory.* It has run for too short a time .* canary: 1 worker · baseline: \d workers? $/)
  assert.doesNotMatch(text, /5xx|p99|Measurements/)
  const held = look(rolledBackDeploy({ ...uncounted, state: 'held', done: false, finishedAt: null }), {
    runtime: 'other',
    isRunning: true
  })
  assert.deepEqual(held.rollout.beside.rows.map(({ name }) => name), ['Crashes'])
  assert.match(textOf('partials/rollout-graphs', look(rolledBackDeploy(uncounted))), /5xx/,
    'a Node app without requests')
})

test('the usual is said where three of its kind have succeeded, as their median', () => {
  assert.doesNotMatch(textOf('partials/rollout-facts', look(rolledBackDeploy(), { durations: [20_000, 30_000] })),
    /Usual|–/)
  const succeeded = look(rolledBackDeploy({ state: 'succeeded', reason: null }), {
    durations: [20_000, 30_000, 26_000, 22_000]
  })
  assert.match(textOf('partials/rollout-facts', succeeded),
    /Took 52 s Usual time 24 s median of the last 4; this one took 2\.2 times as long/)
})

test('one that runs is shown until now, with controls for operators alone', () => {
  const { steps, timeline } = rolledBackDeploy()
  const running = rolledBackDeploy({ state: 'canary', done: false, finishedAt: null, reason: null,
    timeline: timeline.slice(0, 3), pausedAt: null,
    steps: [{ ...steps[0], state: 'ready', promotedAt: null, drainedAt: null, revertingAt: null, finishedAt: null }] })
  const model = look(running, { isRunning: true, second: 20.4 })
  assert.deepEqual([model.axis.lengthMs, model.pausedMs], [21_000, 9000], 'a pause that goes on counts until now')
  assert.deepEqual(model.slots[0].bars.map(({ kind, x, width }) => [kind, x + width]), [['starting', 62], ['ready',
    1000]])
  assert.match(textOf('partials/rollout-head', model), /Pause .*Abort/)
  assert.doesNotMatch(textOf('partials/rollout-head', model, { ...OPERATOR, operate: false }), /Abort/)
  assert.doesNotMatch(textOf('partials/rollout-head', look(rolledBackDeploy())), /Abort/)
})

test('says who has begun it, and by what', () => {
  const who = (actor: string, client?: Client | null) => look(rolledBackDeploy({ actor, client })).who
  assert.deepEqual([who('the owner\'s token', 'dashboard'), who('signal', null), who('grace', 'api'),
    who('grace', undefined)], ['by the owner\'s token, on the dashboard', 'by a signal', 'by grace, by the API',
    'by grace'])
})
