import { FAULTS, NOTABLE_TYPES } from '../events/kinds.js'
import { describeHealth, rolloutTitle } from '../health.js'
import { toShownEvent } from './shown-event.js'

/**
 * What the overview shows, worked out from the snapshot and the history.
 * @typedef {import('../events/kinds.js').Tone} Tone
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot'>} Deck
 * @typedef {import('../deck.js').Status} Status
 * @typedef {import('../deck.js').WorkerRow} WorkerRow
 * @typedef {import('../deck.js').RolloutView} RolloutView
 * @typedef {Pick<import('../../db/history.js').History, 'page' | 'rollouts'>} History
 */

const RECENT_EVENTS = 8
const UNAVAILABLE = Object.freeze({ isAvailable: false, rollout: null, events: /** @type {import('../events/stream.js').DeckEvent[]} */ ([]) })

/** @type {Readonly<Record<string, { label: string, tone: Tone }>>} */
const WORKER_STATES = Object.freeze({
  starting: { label: 'Starting', tone: 'info' },
  ready: { label: 'Ready', tone: 'ok' },
  draining: { label: 'Draining', tone: 'drain' },
  stopping: { label: 'Stopping', tone: 'idle' },
  unresponsive: { label: 'Unresponsive', tone: 'bad' },
  held: { label: 'Blocked', tone: 'bad' },
  backoff: { label: 'Backoff', tone: 'warn' }
})

/** @type {Readonly<Record<string, { label: string, tone: Tone, icon: string }>>} */
const STEP_STATES = Object.freeze({
  pending: { label: 'Pending', tone: 'idle', icon: 'circle-dashed' },
  starting: { label: 'Starting', tone: 'info', icon: 'loader-circle' },
  soaking: { label: 'Soaking', tone: 'info', icon: 'hourglass' },
  ready: { label: 'Ready', tone: 'ok', icon: 'circle-check' },
  draining: { label: 'Draining old', tone: 'drain', icon: 'hourglass' },
  done: { label: 'Replaced', tone: 'ok', icon: 'circle-check' },
  failed: { label: 'Failed', tone: 'bad', icon: 'circle-x' },
  reverting: { label: 'Reverting', tone: 'warn', icon: 'loader-circle' },
  reverted: { label: 'Reverted', tone: 'warn', icon: 'undo-2' }
})

const CANARY = Object.freeze({ label: 'Canary', tone: 'info', icon: 'hourglass' })

/** @type {Readonly<Record<string, { label: string, tone: Tone, icon: string }>>} */
const ROLLOUT_STATES = Object.freeze({
  succeeded: { label: 'succeeded', tone: 'ok', icon: 'circle-check' },
  failed: { label: 'failed', tone: 'bad', icon: 'circle-x' },
  'rolled-back': { label: 'was rolled back', tone: 'warn', icon: 'undo-2' }
})

/** The elements of the page that change, by id; each is the partial of the same name. */
export const OVERVIEW_FRAGMENTS = Object.freeze(['health', 'addresses', 'actions', 'facts', 'rollout', 'workers', 'recent'])

/** @param {{ deck: Deck, history: History, now: number, openCrashes?: number | null }} parts `openCrashes`: null where nobody knows */
export function overviewModel ({ deck, history, now, openCrashes }) {
  const snapshot = deck.snapshot()
  const past = readPast(history)
  const rollout = snapshot.rollout ?? past.rollout
  return {
    now,
    faults: FAULTS,
    snapshot,
    health: describeHealth(snapshot, { openCrashes: openCrashes ?? 0 }),
    blocked: blockedReason(snapshot),
    totals: totalsOf(snapshot.workers),
    workers: snapshot.workers.map(toWorkerRow),
    rollout: rollout && toRollout(rollout),
    recent: { isAvailable: past.isAvailable, events: past.events.map(toShownEvent) }
  }
}

/** A broken history must not take the live page down with it. */
function readPast (/** @type {History} */ history) {
  try {
    return { isAvailable: true, rollout: history.rollouts({ limit: 1 }).items[0] ?? null, events: history.page({ type: [...NOTABLE_TYPES], limit: RECENT_EVENTS }).items }
  } catch {
    return UNAVAILABLE
  }
}

/** @returns {string | null} why nothing may be started now */
export function blockedReason (/** @type {Pick<Status, 'state' | 'rollout' | 'upgrade'>} */ { state, rollout, upgrade }) {
  if (state === 'stopping') return 'The master is stopping.'
  if (upgrade) return 'An upgrade is running.'
  if (rollout) return `Rollout ${rollout.id} is running. Only one can run at a time.`
  return null
}

function totalsOf (/** @type {WorkerRow[]} */ workers) {
  const vitals = workers.map(({ vitals }) => vitals).filter((each) => each !== null)
  const sum = (/** @type {'rssBytes' | 'cpuPercent'} */ key) => vitals.length === 0 ? null : vitals.reduce((total, each) => total + each[key], 0)
  return {
    rssBytes: sum('rssBytes'),
    cpuPercent: sum('cpuPercent'),
    restarts: Object.values(Object.fromEntries(workers.map(({ slot, restarts }) => [slot, restarts]))).reduce((total, n) => total + n, 0)
  }
}

function toWorkerRow (/** @type {WorkerRow} */ worker, /** @type {number} */ index, /** @type {WorkerRow[]} */ all) {
  const state = WORKER_STATES[worker.state] ?? { label: worker.state, tone: 'idle' }
  return {
    ...worker,
    key: `worker-${worker.slot}-${worker.id ?? 'none'}`,
    isSecondOfSlot: all[index - 1]?.slot === worker.slot,
    badge: worker.crashLooping ? { label: 'Crash-looping', tone: 'bad' } : state,
    canHear: worker.id !== null && !worker.orphan && (worker.state === 'ready' || worker.state === 'draining'),
    canRestart: worker.id !== null && (worker.state === 'ready' || worker.state === 'unresponsive')
  }
}

/** @param {RolloutView} rollout */
export function toRollout (rollout) {
  const outcome = ROLLOUT_STATES[rollout.state] ?? null
  const isCanary = (rollout.pausedIn ?? rollout.state) === 'canary'
  return {
    ...rollout,
    title: rolloutTitle(rollout),
    name: rollout.kind === 'restart' ? (rollout.steps.length === 1 ? `Restart of slot ${rollout.steps[0].slot}` : 'Restart of all workers') : `${rollout.kind === 'rollback' ? 'Rollback to' : 'Deploy of'} ${rollout.to ?? 'a new release'}`,
    outcome,
    tookMs: rollout.finishedAt ? Date.parse(rollout.finishedAt) - Date.parse(rollout.startedAt) : null,
    controls: outcome ? [] : controlsOf(rollout),
    steps: rollout.steps.map((step) => ({
      ...step,
      badge: isCanary && step.state === 'ready' ? CANARY : STEP_STATES[step.state] ?? { label: step.state, tone: 'idle', icon: 'circle' },
      tookMs: step.startedAt && step.finishedAt ? Date.parse(step.finishedAt) - Date.parse(step.startedAt) : null
    }))
  }
}

/**
 * What an operator can do with a rollout at this step, see lifecycle/rollout/steering.js.
 * @param {RolloutView} rollout @returns {[action: string, label: string, className: string][]}
 */
function controlsOf ({ state, pausedIn, isHeld }) {
  if (state === 'aborting') return []
  /** @type {[action: string, label: string, className: string][]} */
  const controls = state !== 'paused' ? [['pause', 'Pause', '']] : isHeld ? [['retry', 'Retry', 'primary']] : [['resume', 'Resume', 'primary']]
  if ((pausedIn ?? state) === 'canary') controls.push(['promote', 'Promote', ''])
  return [...controls, ['abort', 'Abort', '']]
}
