import { ID } from '../config/id.js'
import { usualOf } from '../api/usual-duration.js'
import { DeckError } from '../errors.js'
import { blockedReason, runsProgram, toRollout } from './overview.js'
import { readOr } from './read-or.js'
import { graphsOf } from './rollout-graphs.js'
import { momentsOf, slotsOf, stillSpansOf } from './rollout-story.js'

/**
 * The page of one rollout: who started it, what happened when, and what the judge measured.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'releases'>} Deck
 * @typedef {Pick<import('../../db/history.js').History, 'rollout' | 'rolloutDurations' | 'page'>} History
 * @typedef {import('../lifecycle/rollout/record.js').RolloutView} RolloutView
 * @typedef {{ deck: Deck, history: History, id: string, now: () => number, can?: import('./powers.js').Powers }} Asked
 */

/** The elements of the page that change, by id; each is the partial of the same name. */
const ROLLOUT_FRAGMENTS = Object.freeze(['rollout-head', 'rollout-facts', 'rollout-graphs', 'rollout-slots', 'rollout-moments'])

/** During a rollout, bars and lines grow in these steps. */
const SHORT = Object.freeze({ untilMs: 60_000, stepMs: 1000 })
const LONG_STEP_MS = 5000

/** Names of actors that are no person. @type {Readonly<Record<string, string>>} */
const ACTORS = Object.freeze({
  guard: 'the guard',
  program: 'the program',
  signal: 'a signal',
  system: 'the master',
  watch: 'the file watch'
})
const CLIENTS = Object.freeze({ agent: 'by an agent', api: 'by the API', cli: 'on the command line', dashboard: 'on the dashboard' })

/** @param {Asked} asked @throws {DeckError} not-found, or the database's */
export function rolloutPageModel (asked) {
  return followRolloutModel(asked)()
}

/**
 * @param {Asked & { render: (name: string, model: object) => string }} asked
 * @returns {() => { id: string, html: string }[]}
 */
export function followRollout (asked) {
  const read = followRolloutModel(asked)
  return () => {
    const model = { can: asked.can, ...read() }
    return ROLLOUT_FRAGMENTS.map((id) => ({ id, html: asked.render(`partials/${id}`, model) }))
  }
}

/** A rollout that is over does not change and is read once. @param {Asked} asked */
function followRolloutModel ({ deck, history, id, now }) {
  if (!ID.test(id)) throw notFound(id)
  const number = Number(id)
  /** @type {RolloutView | null} */
  let over = null
  /** @type {{ isOfOneSlot: boolean, usual: ReturnType<typeof usualOf> } | null} */
  let known = null

  return function model () {
    const snapshot = deck.snapshot()
    const rollout = snapshot.rollout?.id === number ? snapshot.rollout : over ?? history.rollout(number)
    if (!rollout) throw notFound(id)
    if (rollout.done) over = rollout
    const isOfOneSlot = rollout.steps.length === 1
    if (known?.isOfOneSlot !== isOfOneSlot) known = { isOfOneSlot, usual: usualOf(history, rollout) }
    return {
      now: now(),
      snapshot,
      blocked: blockedReason(snapshot),
      ...storyOf(rollout, { deck, history, usual: known.usual, now: now(), isRunning: snapshot.rollout?.id === number, isProgram: runsProgram(snapshot) })
    }
  }
}

/** @param {string} id */
function notFound (id) {
  return new DeckError('not-found', `Rollout ${JSON.stringify(id.slice(0, 40))} does not exist or is no longer kept`)
}

/** @param {RolloutView} rollout @param {{ deck: Deck, history: History, usual: ReturnType<typeof usualOf>, now: number, isRunning: boolean, isProgram: boolean }} parts */
function storyOf (rollout, { deck, history, usual, now, isRunning, isProgram }) {
  const axis = axisOf(rollout, { now, isRunning })
  const still = stillSpansOf(rollout, axis)
  const moments = momentsOf(rollout, still)
  return {
    rollout: isRunning ? toRollout(rollout, { history, isProgram }) : { ...toRollout(rollout), controls: [] },
    isRunning,
    who: whoOf(rollout),
    release: releaseOf(deck, rollout.to),
    compareUrl: rollout.to !== null && rollout.from !== rollout.to ? `/releases/${rollout.to}/compare?from=${rollout.from}` : null,
    took: { ms: isRunning ? null : endMs(rollout), usual, ratio: ratioOf(endMs(rollout), usual) },
    verdict: verdictOf(rollout, isProgram),
    stillAs: Array.from(new Set(still.map(({ state }) => state))).sort().reverse().join(' or '),
    pausedMs: still.reduce((sum, span) => sum + span.endMs - span.startMs, 0),
    slowest: slowestOf(rollout),
    axis,
    moments,
    slots: slotsOf(rollout, { axis, still }),
    graphs: graphsOf(rollout, { axis, still, isRunning, isProgram })
  }
}

/**
 * The axis ends with the rollout. While it runs, the axis ends now, in whole steps, so that the page does not change all the time.
 * @param {RolloutView} rollout @param {{ now: number, isRunning: boolean }} parts
 * @returns {{ startMs: number, endMs: number, lengthMs: number }} wall time, ms
 */
function axisOf (rollout, { now, isRunning }) {
  const startMs = Date.parse(rollout.startedAt)
  const lengthMs = isRunning ? roundUpToStep(Math.max(0, now - startMs)) : endMs(rollout) ?? 0
  return { startMs, endMs: startMs + lengthMs, lengthMs: Math.max(1, lengthMs) }
}

/** @param {number} ms */
function roundUpToStep (ms) {
  const stepMs = ms < SHORT.untilMs ? SHORT.stepMs : LONG_STEP_MS
  return Math.ceil((ms + 1) / stepMs) * stepMs
}

/** @param {RolloutView} rollout @returns {number | null} since its start */
function endMs ({ startedAt, finishedAt }) {
  return finishedAt === null ? null : Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt))
}

/** @param {number | null} tookMs @param {ReturnType<typeof usualOf>} usual @returns {number | null} how many times the usual */
function ratioOf (tookMs, usual) {
  if (tookMs === null || usual === null || usual.tookMs === 0) return null
  return Math.round(10 * tookMs / usual.tookMs) / 10
}

/** @param {RolloutView} rollout @returns {string} */
function whoOf ({ actor, client }) {
  if (Object.hasOwn(ACTORS, actor)) return `by ${ACTORS[actor]}`
  return client ? `by ${actor}, ${CLIENTS[client]}` : `by ${actor}`
}

/** @param {Deck} deck @param {string | null} id @returns {import('../deck.js').ReleaseView | null} null: it is no longer kept */
function releaseOf (deck, id) {
  return id === null ? null : readOr(() => deck.releases.get(id), null)
}

/** @param {RolloutView} rollout @param {boolean} isProgram @returns the last verdict of the judge */
function verdictOf ({ kind, verdicts = [] }, isProgram) {
  const last = verdicts.at(-1)
  if (!last) return { label: kind === 'deploy' ? 'none' : 'not judged', tone: 'idle' }
  if (last.passed === null) return { label: isProgram ? 'too short a time' : 'too few requests', tone: 'warn' }
  return last.passed ? { label: 'passed', tone: 'ok' } : { label: 'failed', tone: 'bad' }
}

/** @param {RolloutView} rollout @returns {{ slot: number, ms: number } | null} which worker took longest to get ready */
function slowestOf ({ steps }) {
  const waits = steps.flatMap(({ slot, startedAt, readyAt }) => startedAt && readyAt
    ? [{ slot, ms: Math.max(0, Date.parse(readyAt) - Date.parse(startedAt)) }]
    : [])
  return waits.toSorted((a, b) => b.ms - a.ms)[0] ?? null
}
