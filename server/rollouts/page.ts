import { ID } from '../config/id.ts'
import { usualOf } from './api-usual-duration.ts'
import { DeckError } from '../errors.ts'
import { blockedReason, runsProgram, toRollout } from '../dashboard/overview.ts'
import { readOr } from '../dashboard/read-or.ts'
import { buildsIn } from './page-builds.ts'
import { graphsOf } from './page-graphs.ts'
import { momentsOf, slotsOf, stillSpansOf } from './page-story.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { KeptRelease } from '../api/shapes.ts'

/** The page of one rollout: who started it, what happened when, and what the judge measured. */
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'releases' | 'jobs'>
type History = Pick<import('../../db/history.ts').History, 'rollout' | 'rolloutDurations' | 'page'>
type Asked = { deck: Deck, history: History, id: string, now: () => number, can?: Powers }

/** During a rollout, bars and lines grow in these steps. */
const SHORT = Object.freeze({ untilMs: 60_000, stepMs: 1000 })
const LONG_STEP_MS = 5000

/** Names of actors that are no person. */
const ACTORS: Readonly<Record<string, string>> = Object.freeze({ guard: 'the guard', program: 'the program',
  signal: 'a signal', system: 'the master', watch: 'the file watch' })
const CLIENTS = Object.freeze({ agent: 'by an agent', api: 'by the API', cli: 'on the command line',
  dashboard: 'on the dashboard' })

/** @throws {DeckError} not-found, or the database's */
export function rolloutPageModel (asked: Asked) {
  return followRollout(asked)()
}

/** A rollout that is over does not change and is read once. */
export function followRollout ({ deck, history, id, now }: Asked) {
  if (!ID.test(id)) throw notFound(id)
  const number = Number(id)
  let over: RolloutView | null = null
  let known: { isOfOneSlot: boolean, usual: ReturnType<typeof usualOf> } | null = null

  return function model () {
    const snapshot = deck.snapshot()
    const rollout = snapshot.rollout?.id === number ? snapshot.rollout : over ?? history.rollout(number)
    if (!rollout) throw notFound(id)
    if (rollout.done) over = rollout
    const isOfOneSlot = rollout.steps.length === 1
    if (known?.isOfOneSlot !== isOfOneSlot) known = { isOfOneSlot, usual: usualOf(history, rollout) }
    return { now: now(), snapshot, blocked: blockedReason(snapshot),
      ...storyOf(rollout, { deck, history, usual: known.usual, now: now(), isRunning: snapshot.rollout?.id === number,
        isProgram: runsProgram(snapshot) }) }
  }
}

function notFound (id: string) {
  return new DeckError('not-found', `Rollout ${JSON.stringify(id.slice(0, 40))} does not exist or is no longer kept`)
}

function storyOf (rollout: RolloutView,
  { deck, history, usual, now, isRunning, isProgram }: { deck: Deck, history: History,
    usual: ReturnType<typeof usualOf>, now: number, isRunning: boolean, isProgram: boolean })
{
  const whole = axisOf(rollout, { now, isRunning })
  // A canary has a time of its own, which the others need not have had.
  const isUsual = rollout.steps.every(({ isCanary }) => !isCanary)
  const still = stillSpansOf(rollout, whole)
  // Beside minutes in which it is held, the seconds of its work would be a speck.
  const shownMs = isRunning && rollout.pausedAt ? 1.25 * (Date.parse(rollout.pausedAt) - whole.startMs) : Infinity
  const axis = { ...whole, lengthMs: Math.max(1, Math.min(whole.lengthMs, shownMs)) }
  const moments = momentsOf(rollout, still)
  return { rollout: isRunning ? toRollout(rollout, { history, isProgram }) : { ...toRollout(rollout), controls: [] },
    isRunning, who: whoOf(rollout), release: releaseOf(deck, rollout.to),
    build: readOr(() => buildsIn(deck.jobs), []).find((build) => build.rollout === rollout.id) ?? null,
    compareUrl: rollout.to !== null && rollout.from !== rollout.to
      ? `/releases/${rollout.to}/compare?from=${rollout.from}`
      : null, took: { ms: isRunning ? null : endMs(rollout), usual: isUsual ? usual : null },
    stillAs: Array.from(new Set(still.map(({ state }) => state))).sort().reverse().join(' or '),
    pausedMs: still.reduce((sum, span) => sum + span.endMs - span.startMs, 0), axis, moments,
    slots: slotsOf(rollout, { axis, still }), graphs: graphsOf(rollout, { axis, still, isProgram }) }
}

/**
 * The axis ends with the rollout. While it runs, the axis ends now, in whole steps, so that the page does not change
 * all the time. Returns wall time, ms.
 */
function axisOf (rollout: RolloutView,
  { now, isRunning }: { now: number, isRunning: boolean }): { startMs: number, endMs: number, lengthMs: number }
{
  const startMs = Date.parse(rollout.startedAt)
  const lengthMs = isRunning ? roundUpToStep(Math.max(0, now - startMs)) : endMs(rollout) ?? 0
  return { startMs, endMs: startMs + lengthMs, lengthMs: Math.max(1, lengthMs) }
}

function roundUpToStep (ms: number) {
  const stepMs = ms < SHORT.untilMs ? SHORT.stepMs : LONG_STEP_MS
  return Math.ceil((ms + 1) / stepMs) * stepMs
}

/** @returns since its start */
function endMs ({ startedAt, finishedAt }: RolloutView): number | null {
  return finishedAt === null ? null : Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt))
}

function whoOf ({ actor, client }: RolloutView): string {
  if (Object.hasOwn(ACTORS, actor)) return `by ${ACTORS[actor]}`
  return client ? `by ${actor}, ${CLIENTS[client]}` : `by ${actor}`
}

/** Null: it is no longer kept */
function releaseOf (deck: Deck, id: string | null): KeptRelease | null {
  return id === null ? null : readOr(() => deck.releases.get(id), null)
}
