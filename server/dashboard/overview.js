import { formatLatency, formatPercent } from '../../public/format.js'
import { BLAMED_CAUSES, FAULTS } from '../causes.js'
import { appNodeVersion, judgeNodes, nodesInUse } from '../doctor/node-lines.js'
import { NOTABLE_TYPES } from '../events/kinds.js'
import { rolloutTitle, waitingText } from '../health.js'
import { newestMark } from './chart-news.js'
import { crashUrlOf } from './crash-kinds.js'
import { isUnwritten } from './history-gaps.js'
import { readable } from './readable-text.js'
import { offeredRelease } from './releases.js'
import { toShownEvent } from './shown-event.js'
import { silentForApp, silentLines } from './silent-hosts.js'
import { workersTable } from './workers-table.js'

/**
 * The overview, made of the snapshot and the history.
 * @typedef {import('../events/kinds.js').Tone} Tone
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'health' | 'notices' | 'releases' | 'jobs' | 'fleet'>} Deck
 * @typedef {import('../deck.js').Status} Status
 * @typedef {import('../deck.js').WorkerRow} WorkerRow
 * @typedef {import('../lifecycle/rollout/record.js').RolloutView} RolloutView
 * @typedef {Pick<import('../../db/history.js').History, 'page' | 'rollouts'> & { away?: string | null }} History
 */

const RECENT_EVENTS = 8
const MAX_COUNTED = 100
/** Workers report each second, so older figures are not shown. */
const FRESH_MS = 5000
/** @type {{ isAvailable: boolean, rollout: RolloutView | null, events: import('../events/stream.js').DeckEvent[] }} */
const UNAVAILABLE = Object.freeze({ isAvailable: false, rollout: null, events: [] })

/** @type {Readonly<Record<string, { label: string, tone: Tone, icon: string }>>} */
const STEP_STATES = Object.freeze({
  pending: { label: 'Pending', tone: 'idle', icon: 'circle-dashed' },
  stopping: { label: 'Stopping old', tone: 'drain', icon: 'hourglass' },
  starting: { label: 'Starting', tone: 'info', icon: 'loader-circle' },
  soaking: { label: 'Soaking', tone: 'info', icon: 'hourglass' },
  ready: { label: 'Ready', tone: 'ok', icon: 'circle-check' },
  draining: { label: 'Draining old', tone: 'drain', icon: 'hourglass' },
  done: { label: 'Replaced', tone: 'ok', icon: 'circle-check' },
  failed: { label: 'Failed', tone: 'bad', icon: 'circle-x' },
  reverting: { label: 'Rolling back', tone: 'warn', icon: 'loader-circle' },
  reverted: { label: 'Rolled back', tone: 'warn', icon: 'undo-2' }
})

const UNTOUCHED = Object.freeze({ label: 'Untouched', tone: 'idle', icon: 'circle' })
const NO_FIGURES = Object.freeze({ requests: null, errorRate: null, p99Ms: null })
const CANARY = Object.freeze({ label: 'Canary', tone: 'info', icon: 'hourglass' })

/** @type {Readonly<Record<string, { label: string, tone: Tone, icon: string }>>} */
const ROLLOUT_STATES = Object.freeze({
  succeeded: { label: 'succeeded', tone: 'ok', icon: 'circle-check' },
  failed: { label: 'failed', tone: 'bad', icon: 'circle-x' },
  'rolled-back': { label: 'was rolled back', tone: 'warn', icon: 'undo-2' }
})

/** The elements of the page that change, by id; each is the partial of the same name. */
export const OVERVIEW_FRAGMENTS = Object.freeze(['notices', 'health', 'addresses', 'actions', 'facts', 'build', 'rollout', 'workers', 'recent', 'chart-news', 'silent-hosts'])

/** @typedef {{ deck: Deck, history: History, params: URLSearchParams, now: number, kept?: import('./workers-table.js').Kept | null }} Asked  `kept`: the order of the workers that was shown last */

/** @param {Asked} asked */
export function overviewModel ({ deck, history, params, now, kept }) {
  const seen = deck.snapshot()
  const snapshot = withFreshVitals(seen, now)
  const past = readPast(history)
  const rollout = snapshot.rollout ?? past.rollout
  const health = toHealth(deck.health(seen))
  // Less is known of a program in another language.
  const isProgram = runsProgram(snapshot)
  const table = workersTable(snapshot, { params, history, now, kept, isProgram })
  const isAtFault = health.reasons.some(({ isNewInRelease }) => isNewInRelease)
  return {
    now,
    faults: FAULTS,
    newestMark: newestMark(history),
    isUnwritten: isUnwritten(history, snapshot),
    snapshot,
    health,
    notices: deck.notices.list(),
    nodes: judgeNodes(nodesInUse(snapshot.master.nodeVersion, appNodeVersion(snapshot)), { now }).filter(({ state }) => state === 'ended' || state === 'open'),
    silent: silentLines(silentForApp(deck.fleet)),
    blocked: blockedReason(snapshot),
    lastRollout: rollout?.id ?? 0,
    totals: totalsOf(snapshot.workers),
    isProgram,
    table,
    canonicalUrl: table.canonicalUrl,
    problem: table.problem,
    standby: snapshot.standby,
    build: deck.jobs.building(),
    rollout: rollout && toRollout(rollout, { history, isProgram }),
    wayBack: wayBackOf(rollout, { deck, snapshot, isAtFault }),
    wayBackPlace: isAtFault ? 'health' : 'rollout',
    recent: { isAvailable: past.isAvailable, events: past.events.map(toShownEvent) }
  }
}

/**
 * @param {Omit<Asked, 'now'> & { now: () => number, can?: import('./powers.js').Powers, render: (name: string, model: object) => string }} asked
 * @returns {() => { id: string, html: string }[]}
 */
export function followOverview ({ now, can, render, ...asked }) {
  /** @type {Asked['kept']} */
  let kept = null
  return () => {
    const model = overviewModel({ ...asked, now: now(), kept })
    kept = model.table.kept
    return OVERVIEW_FRAGMENTS.map((id) => ({ id, html: render(`partials/${id}`, { can, ...model }) }))
  }
}

/** @param {Pick<Status, 'release'>} snapshot @returns {boolean} whether its release is not run by Node */
export function runsProgram ({ release }) {
  return release.runtime === 'other'
}

/** @param {Status} snapshot @param {number} now @returns {Status} */
function withFreshVitals (snapshot, now) {
  return {
    ...snapshot,
    workers: snapshot.workers.map((worker) => worker.vitals && now - Date.parse(worker.vitals.at) > FRESH_MS ? { ...worker, vitals: null } : worker)
  }
}

/** @param {import('../health.js').Health} health */
function toHealth ({ reasons, ...health }) {
  return { ...health, hintUrl: health.about === 'crashes' ? '/crashes' : null, reasons: reasons.map((reason) => ({ ...reason, url: crashUrlOf({ detail: reason }) ?? `/history/${reason.event}` })) }
}

/** The live page works without the history. */
function readPast (/** @type {History} */ history) {
  try {
    return {
      isAvailable: true,
      rollout: history.rollouts({ limit: 1 }).items[0] ?? null,
      events: history.page({ type: [...NOTABLE_TYPES], limit: RECENT_EVENTS }).items
    }
  } catch {
    return UNAVAILABLE
  }
}

/**
 * The release that the page offers to roll back to: the one before the last deploy, and as long as the running one is at fault, the last good one.
 * @param {RolloutView | null} rollout  the newest one @param {{ deck: Pick<Deck, 'releases'>, snapshot: Status, isAtFault: boolean }} cluster
 * @returns {ReturnType<typeof offeredRelease>} null: the page offers none
 */
function wayBackOf (rollout, { deck, snapshot, isAtFault }) {
  const isOfLastDeploy = rollout?.kind === 'deploy' && rollout.state === 'succeeded' && rollout.to === snapshot.release.id
  if (snapshot.rollout || !(isOfLastDeploy || isAtFault)) return null
  return offeredRelease(deck, () => isAtFault ? deck.releases.before(snapshot.release.id) : String(rollout?.from), snapshot)
}

/** @returns {string | null} why no rollout can start now */
export function blockedReason (/** @type {Pick<Status, 'state' | 'rollout' | 'upgrade'>} */ { state, rollout, upgrade }) {
  if (state === 'stopping') return 'The master is stopping.'
  if (upgrade) return 'An upgrade is running.'
  if (rollout) {
    const state = ['paused', 'held', 'rolling-back'].includes(rollout.state) ? rollout.state.replace('-', ' ') : 'running'
    return `Rollout ${rollout.id} is ${state}. Only one can run at a time.`
  }
  return null
}

function totalsOf (/** @type {WorkerRow[]} */ workers) {
  const vitals = workers.map(({ vitals }) => vitals).filter((each) => each !== null)
  const sumOf = (/** @type {'rssBytes' | 'cpuPercent' | 'requestsPerSecond' | 'openConnections' | 'threads'} */ key) => vitals.every((each) => each[key] === null)
    ? null
    : vitals.reduce((total, each) => total + (each[key] ?? 0), 0)
  return {
    rssBytes: sumOf('rssBytes'),
    cpuPercent: sumOf('cpuPercent'),
    requestsPerSecond: sumOf('requestsPerSecond'),
    openConnections: sumOf('openConnections'),
    threads: sumOf('threads'),
    latencyP99Ms: highestOf(vitals.map(({ latencyP99Ms }) => latencyP99Ms)),
    restarts: Object.values(Object.fromEntries(workers.map(({ slot, restarts }) => [slot, restarts]))).reduce((total, n) => total + n, 0)
  }
}

/** @param {(number | null | undefined)[]} values @returns {number | null} */
function highestOf (values) {
  const known = values.filter((value) => typeof value === 'number')
  return known.length === 0 ? null : Math.max(...known)
}

/** @param {RolloutView} rollout @param {{ history?: Pick<History, 'page'>, isProgram?: boolean }} [sources] both are needed for a held rollout */
export function toRollout (rollout, { history, isProgram = false } = {}) {
  const outcome = ROLLOUT_STATES[rollout.state] ?? null
  // The duration stops while the rollout is paused.
  const stoppedAt = rollout.pausedAt ?? null
  const isCanary = (rollout.pausedIn ?? rollout.state) === 'canary'
  return {
    ...rollout,
    title: rolloutTitle(rollout),
    name: rollout.kind === 'restart'
      ? (rollout.steps.length === 1 ? `Restart of slot ${rollout.steps[0].slot}` : 'Restart of all workers')
      : `${rollout.kind === 'rollback' ? 'Rollback to' : 'Deploy of'} ${rollout.to ?? 'a new release'}`,
    outcome,
    waiting: waitingText(rollout),
    hookOutput: rollout.hook?.output ? readable(rollout.hook.output) : null,
    tookMs: msBetween(rollout.startedAt, rollout.finishedAt ?? stoppedAt),
    beside: rollout.state === 'held' ? toBeside(rollout, { crashesOfOld: crashesOfOld(history, rollout), isProgram }) : null,
    controls: outcome ? [] : controlsOf(rollout),
    steps: rollout.steps.map((step) => ({
      ...step,
      badge: badgeOf(step, { isCanary, isOver: outcome !== null }),
      tookMs: msBetween(step.startedAt, step.finishedAt ?? rollout.finishedAt ?? stoppedAt)
    }))
  }
}

/** @param {RolloutView['steps'][number]} step @param {{ isCanary: boolean, isOver: boolean }} rollout @returns {{ label: string, tone: Tone, icon: string }} */
function badgeOf ({ state }, { isCanary, isOver }) {
  if (isOver && state === 'pending') return UNTOUCHED
  if (isCanary && state === 'ready') return CANARY
  return STEP_STATES[state] ?? { label: state, tone: 'idle', icon: 'circle' }
}

/**
 * New workers beside old ones, so that an operator can decide.
 * @typedef {{ name: string, canary: string, baseline: string, isWorse: boolean }} BesideRow
 * @param {RolloutView} rollout @param {{ crashesOfOld: number | null, isProgram: boolean }} parts `crashesOfOld`: null: unknown
 * @returns {{ at: string | null, rows: BesideRow[] }}
 */
function toBeside ({ comparison, verdicts, crashes, strategy }, { crashesOfOld, isProgram }) {
  const last = comparison ?? verdicts?.at(-1) ?? null
  const isUncounted = isProgram && !last?.canary.requests && !last?.baseline.requests
  return {
    at: last?.at ?? null,
    rows: [
      ...(isUncounted ? [] : besideInRequests(last, strategy)),
      { name: 'Crashes', canary: String(crashes ?? 0), baseline: numberText(crashesOfOld), isWorse: (crashes ?? 0) > (strategy?.limits.crashes ?? 0) }
    ]
  }
}

/** @param {RolloutView['comparison']} last @param {RolloutView['strategy']} strategy @returns {BesideRow[]} */
function besideInRequests (last, strategy) {
  const { canary, baseline } = last ?? { canary: NO_FIGURES, baseline: NO_FIGURES }
  const formatShare = (/** @type {number | null} */ rate) => formatPercent(rate === null ? null : rate * 100)
  return [
    { name: 'Requests', canary: numberText(canary.requests), baseline: numberText(baseline.requests), isWorse: false },
    {
      name: '5xx',
      canary: formatShare(canary.errorRate),
      baseline: formatShare(baseline.errorRate),
      isWorse: (canary.errorRate ?? 0) - (baseline.errorRate ?? 0) > (strategy?.limits.errorRate ?? 0)
    },
    {
      name: 'p99',
      canary: formatLatency(canary.p99Ms),
      baseline: formatLatency(baseline.p99Ms),
      isWorse: canary.p99Ms !== null &&
        baseline.p99Ms !== null &&
        canary.p99Ms > Math.max(baseline.p99Ms * (strategy?.limits.p99Ratio ?? 1), baseline.p99Ms + (strategy?.limits.slowerMs ?? 0))
    }
  ]
}

/** @param {Pick<History, 'page'> | undefined} history @param {RolloutView} rollout @returns {number | null} */
function crashesOfOld (history, { from, startedAt }) {
  try {
    const ended = BLAMED_CAUSES.map((cause) => history?.page({
      type: ['worker.exited'],
      cause,
      release: from,
      since: Date.parse(startedAt),
      limit: MAX_COUNTED
    }).items.length)
    return ended.reduce((/** @type {number | null} */ total, each) => total === null || each === undefined ? null : total + each, 0)
  } catch {
    // The rest of the card is still needed.
    return null
  }
}

/** @param {number | null} value */
function numberText (value) {
  return value === null ? '–' : value.toLocaleString('en-US')
}

/** @param {string | null} from @param {string | null} to @returns {number | null} */
function msBetween (from, to) {
  return from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null
}

/**
 * What an operator can do with a rollout now, see lifecycle/rollout/steering.js.
 * @param {RolloutView} rollout
 * @returns {{ action: string, label: string, className: string, isConfirmed: boolean }[]} the safest first; `isConfirmed`: opens a dialog
 */
function controlsOf ({ state, pausedIn }) {
  if (state === 'rolling-back') return []
  const abort = { action: 'abort', label: 'Abort', className: state === 'held' ? 'primary' : '', isConfirmed: true }
  const promote = (pausedIn ?? state) === 'canary' ? [{ action: 'promote', label: 'Promote', className: '', isConfirmed: true }] : []
  if (state === 'held') return [abort, { action: 'retry', label: 'Retry', className: '', isConfirmed: false }, ...promote]
  const pauseOrResume = state === 'paused'
    ? { action: 'resume', label: 'Resume', className: 'primary', isConfirmed: false }
    : { action: 'pause', label: 'Pause', className: '', isConfirmed: false }
  return [pauseOrResume, ...promote, abort]
}
