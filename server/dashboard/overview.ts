import { attempt } from '../errors.ts'
import { exitTypes } from '../../public/mark-clusters.ts'
import { formatCount, formatLatency, formatPercent, optionsIn, withoutOptions } from '../../public/format.ts'
import { BLAMED_CAUSES, FAULTS } from '../causes.ts'
import { appNodeVersion, judgeNodes, nodesInUse } from '../doctor/node-lines.ts'
import { NOTABLE_TYPES, type Tone } from '../events/kinds.ts'
import { rolloutTitle, waitingText, type Health } from '../words/health.ts'
import { newestMark } from '../vitals/page-chart-news.ts'
import { freshSample, newestFigures } from '../vitals/page-newest.ts'
import { crashUrlOf } from '../crashes/page-kinds.ts'
import { readWholeFolds, withoutRoutineOfRollouts } from '../events/page-folds.ts'
import { isUnwritten } from '../events/page-gaps.ts'
import { readable } from './readable-text.ts'
import { isNewer } from '../config/release-id.ts'
import { decidedOf, type SidesRow } from '../rollouts/page-decided.ts'
import { linesOf } from '../rollouts/page-graphs.ts'
import { offeredRelease } from '../releases/page-list.ts'
import { toShownEvent } from '../events/page-shown-event.ts'
import { ownTurn } from '../fleet/page-own-turn.ts'
import { silentForApp, silentLines } from '../fleet/page-silent-hosts.ts'
import { overviewThen } from './overview-then.ts'
import { spanIn, type Span } from './time-strip.ts'
import { workersTable, type Kept } from './workers-table.ts'
import type { Powers } from './powers.ts'
import type { Status, WorkerRow } from '../deck.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { DeckEvent } from '../events/stream.ts'

/** The overview, made of the snapshot and the history. */
type Deck = Pick<import('../deck.ts').Deck,
  'snapshot' | 'health' | 'notices' | 'releases' | 'jobs' | 'fleet' | 'vitals'>
type History = Pick<import('../../db/history.ts').History, 'page' | 'rollouts'> & { away?: string | null }

const RECENT_ROWS = 8
/** Of most of a deploy its end tells. */
const RECENT_EVENTS = 40
/** The page of the jobs tells what went well: it happens too often to be news. */
const RECENT_TYPES = [...NOTABLE_TYPES].filter((type) => type !== 'job.succeeded')
const MAX_COUNTED = 100
const UNAVAILABLE: { isAvailable: boolean, rollout: RolloutView | null, events: DeckEvent[] } = Object.freeze({
  isAvailable: false,
  rollout: null,
  events: []
})

const STEP_STATES: Readonly<Record<string, { label: string, tone: Tone, icon: string }>> = Object.freeze({
  pending: { label: 'Pending', tone: 'idle', icon: 'circle-dashed' },
  stopping: { label: 'Stopping old', tone: 'drain', icon: 'hourglass' },
  starting: { label: 'Starting', tone: 'info', icon: 'loader-circle' },
  soaking: { label: 'Soaking', tone: 'info', icon: 'hourglass' },
  ready: { label: 'Ready', tone: 'idle', icon: 'circle-check' },
  draining: { label: 'Draining old', tone: 'drain', icon: 'hourglass' },
  done: { label: 'Replaced', tone: 'idle', icon: 'circle-check' },
  failed: { label: 'Failed', tone: 'bad', icon: 'circle-x' },
  reverting: { label: 'Rolling back', tone: 'warn', icon: 'loader-circle' },
  reverted: { label: 'Rolled back', tone: 'warn', icon: 'undo-2' }
})

const UNTOUCHED = Object.freeze({ label: 'Untouched', tone: 'idle', icon: 'circle' })
const NO_FIGURES = Object.freeze({ requests: null, errorRate: null, p99Ms: null })
const CANARY = Object.freeze({ label: 'Canary', tone: 'info', icon: 'hourglass' })

const ROLLOUT_STATES: Readonly<Record<string, { label: string, tone: Tone, icon: string }>> = Object.freeze({
  succeeded: { label: 'succeeded', tone: 'ok', icon: 'circle-check' },
  failed: { label: 'failed', tone: 'bad', icon: 'circle-x' },
  'rolled-back': { label: 'was rolled back', tone: 'warn', icon: 'undo-2' }
})

/** `kept`: the order of the workers that was shown last; `can`: what the viewer may do */
type Asked = { deck: Deck, history: History, params: URLSearchParams, now: () => number, kept?: Kept | null,
  can?: Powers }

export function overviewModel (asked: Asked) {
  const span = spanIn(asked.params, asked.now())
  return span ? modelOfThen(asked, span) : modelOfNow(asked)
}

/** Only what does not change with time is taken from the page of now. */
function modelOfThen (asked: Asked, span: Span) {
  const { snapshot, ...model } = modelOfNow(asked)
  const { workers, slots, served, totals, ...then } = overviewThen(asked, span)
  return { ...model, ...then, isPast: true, notices: [], nodes: [], silent: silentLines([]), fleetTurn: null,
    build: null, blocked: null, wayBack: null, rollout: null, can: asked.can && { ...asked.can, operate: false },
    totals: { ...model.totals, ...totals }, recent: recentOf(readPast(asked.history, span)),
    table: workersTable({ ...snapshot, workers, rollout: null }, { ...asked, now: model.now,
      isProgram: model.isProgram }),
    snapshot: { ...snapshot, readyWorkers: served, desiredWorkers: slots, finishedWorkers: 0, nextRestartAt: null } }
}

function modelOfNow ({ deck, history, params, now: clock, kept }: Asked) {
  const now = clock()
  const seen = deck.snapshot()
  const snapshot = withFreshVitals(seen, now)
  const past = readPast(history)
  const rollout = snapshot.rollout ?? past.rollout
  const health = toHealth(deck.health(seen))
  // Less is known of a program in another language.
  const isProgram = runsProgram(snapshot)
  const table = workersTable(snapshot, { params, history, now, kept, isProgram })
  const isAtFault = health.reasons.some(({ isNewInRelease }) => isNewInRelease)
  return { now, faults: FAULTS, newestMark: newestMark(history), isUnwritten: isUnwritten(history, snapshot), snapshot,
    health, notices: deck.notices.list(),
    nodes: judgeNodes(nodesInUse(snapshot.master.nodeVersion, appNodeVersion(snapshot)), { now }).filter(({ state }) =>
      state === 'ended' || state === 'open'
    ), silent: silentLines(silentForApp(deck.fleet)), fleetTurn: ownTurn(deck.fleet), blocked: blockedReason(snapshot),
    lastRollout: rollout?.id ?? 0,
    totals: { ...newestFigures(deck, now), restarts: restartsOf(snapshot.workers), exits: exitTypes(FAULTS).join() },
    isProgram, table, canonicalUrl: table.canonicalUrl, problem: table.problem, standby: snapshot.standby,
    build: deck.jobs.building(), rollout: rollout && toRollout(rollout, { history, isProgram }),
    wayBack: wayBackOf(rollout, { deck, snapshot, isAtFault }), wayBackPlace: isAtFault ? 'health' : 'rollout',
    recent: recentOf(past, snapshot.rollout?.startedAt) }
}

function recentOf ({ isAvailable, events }: typeof UNAVAILABLE, runningSince: string | null = null) {
  return { isAvailable, events: withoutRoutineOfRollouts(events.map(toShownEvent), runningSince).slice(0, RECENT_ROWS) }
}

/** Keeps the order of the workers from one rendering to the next. A page of a chosen time gets no news. */
export function followOverview (asked: Asked) {
  let kept: Asked['kept'] = null
  let isPast = false
  return () => {
    if (isPast) return null
    const model = overviewModel({ ...asked, kept })
    kept = model.table.kept
    isPast = 'isPast' in model
    return model
  }
}

export function runsProgram ({ release }: Pick<Status, 'release'>): boolean {
  return release.runtime === 'other'
}

function withFreshVitals (snapshot: Status, now: number): Status {
  return { ...snapshot,
    workers: snapshot.workers.map((worker) => ({ ...worker, vitals: freshSample(worker.vitals, now) })) }
}

function toHealth ({ reasons, ...health }: Health) {
  return { ...health, hintUrl: health.about === 'crashes' ? '/crashes' : null,
    reasons: reasons.map((reason) => ({ ...reason,
      url: crashUrlOf({ detail: reason }) ?? `/history/${reason.event}` })
    ) }
}

/** The live page works without the history. */
function readPast (history: History, { sinceMs: since, untilMs: until }: Partial<Span> = {}) {
  return attempt(() => ({ isAvailable: true, rollout: history.rollouts({ limit: 1 }).items[0] ?? null,
    events: readWholeFolds(history, { type: RECENT_TYPES, since, until, limit: RECENT_EVENTS }).items })
  ) ?? UNAVAILABLE
}

/**
 * The release that the page offers to roll back to: the one before the last deploy, and as long as the running one is
 * at fault, the last good one. `rollout`: the newest one. Returns null: the page offers none.
 */
function wayBackOf (rollout: RolloutView | null,
  { deck, snapshot, isAtFault }: { deck: Pick<Deck, 'releases'>, snapshot: Status, isAtFault: boolean }
): ReturnType<typeof offeredRelease> {
  const isOfLastDeploy = rollout?.kind === 'deploy' && rollout.state === 'succeeded' &&
    rollout.to === snapshot.release.id
  if (snapshot.rollout || !(isOfLastDeploy || isAtFault)) return null
  return offeredRelease(deck, () => isAtFault ? deck.releases.before(snapshot.release.id) : String(rollout?.from),
    snapshot)
}

export function blockedReason (
  { state, rollout, upgrade }: Pick<Status, 'state' | 'rollout' | 'upgrade'>
): string | null {
  if (state === 'stopping') return 'The master is stopping.'
  if (upgrade) return 'An upgrade is running.'
  if (rollout) {
    const state = ['paused', 'held', 'rolling-back'].includes(rollout.state)
      ? rollout.state.replace('-', ' ')
      : 'running'
    return `Rollout ${rollout.id} is ${state}. Only one can run at a time.`
  }
  return null
}

function restartsOf (workers: WorkerRow[]): number {
  // Two workers of a slot tell of the same restarts.
  const bySlot = new Map(workers.map(({ slot, restarts }) => [slot, restarts]))
  return [...bySlot.values()].reduce((total, n) => total + n, 0)
}

/** By kind of a rollout: a newer release that comes back is no rollback for people. */
const KINDS = Object.freeze({ deploy: 'Deploy of', rollback: 'Rollback to', redeploy: 'Redeploy of' })

function kindOf ({ kind, from, to }: RolloutView): keyof typeof KINDS {
  if (kind !== 'rollback') return 'deploy'
  return to !== null && isNewer(to, from) ? 'redeploy' : 'rollback'
}

/** `sources`: both are needed for a held rollout */
export function toRollout (rollout: RolloutView,
  { history, isProgram = false }: { history?: Pick<History, 'page'>, isProgram?: boolean } = {})
{
  const outcome = ROLLOUT_STATES[rollout.state] ?? null
  // The duration stops while the rollout is paused.
  const stoppedAt = rollout.pausedAt ?? null
  const isCanary = (rollout.pausedIn ?? rollout.state) === 'canary'
  const decided = decidedOf(rollout)
  const said = (message: string) => ({ message: withoutOptions(message), option: optionsIn(message) })
  return { ...rollout, title: rolloutTitle(rollout), reason: rollout.reason && withoutOptions(rollout.reason),
    option: decided ? '' : optionsIn(rollout.reason), warnings: rollout.warnings?.map(withoutOptions),
    verdicts: rollout.verdicts?.map((verdict) => ({ ...verdict, ...said(verdict.message) })),
    name: rollout.kind === 'restart'
      ? (rollout.steps.length === 1 ? `Restart of slot ${rollout.steps[0].slot}` : 'Restart of all workers')
      : `${KINDS[kindOf(rollout)]} ${rollout.to ?? 'a new release'}`, outcome, decided, waiting: waitingText(rollout),
    hookOutput: rollout.hook?.output ? readable(rollout.hook.output) : null,
    tookMs: msBetween(rollout.startedAt, rollout.finishedAt ?? stoppedAt),
    beside: rollout.state === 'held' || (isCanary && outcome === null)
      ? toBeside(rollout, { crashesOfOld: crashesOfOld(history, rollout), isProgram })
      : null, controls: outcome ? [] : controlsOf(rollout),
    steps: rollout.steps.map((step) => ({ ...step, badge: badgeOf(step, { isCanary, isOver: outcome !== null }),
      tookMs: msBetween(step.startedAt, step.finishedAt ?? rollout.finishedAt ?? stoppedAt) })
    ) }
}

function badgeOf ({ state }: RolloutView['steps'][number],
  { isCanary, isOver }: { isCanary: boolean, isOver: boolean }): { label: string, tone: Tone, icon: string }
{
  if (isOver && state === 'pending') return UNTOUCHED
  if (isCanary && state === 'ready') return CANARY
  return STEP_STATES[state] ?? { label: state, tone: 'idle', icon: 'circle' }
}

type Figures = Pick<RolloutView['verdicts'][number]['canary'], 'errorRate' | 'p99Ms'> & { requests: number | null }
type Sides = Record<'canary' | 'baseline', Figures>

/** New workers beside old ones, so that an operator can decide. `crashesOfOld`: null: unknown. */
function toBeside (rollout: RolloutView,
  { crashesOfOld, isProgram }: { crashesOfOld: number | null, isProgram: boolean })
{
  const { comparison, comparisons = [], verdicts, crashes, strategy, startedAt } = rollout
  const startMs = Date.parse(startedAt)
  const endMs = Date.parse(comparisons.at(-1)?.at ?? startedAt)
  const axis = { startMs, endMs, lengthMs: Math.max(1, endMs - startMs) }
  const last = comparison ?? verdicts?.at(-1) ?? null
  const decided = decidedOf(rollout)
  const isUncounted = isProgram && !last?.canary.requests && !last?.baseline.requests
  return { isQuiet: !isUncounted && !last?.canary.requests, axis, lines: isUncounted ? [] : linesOf(rollout, axis),
    rows: [...isUncounted ? [] : besideInRequests(last ?? { canary: NO_FIGURES, baseline: NO_FIGURES }, decided),
      ...decided ? [decided.row] : [], { name: 'Crashes', canary: String(crashes ?? 0),
      baseline: countOrNone(crashesOfOld), isWorse: (crashes ?? 0) > (strategy?.limits.crashes ?? 0) }] }
}

/** What has decided stands in place of the figure of its kind. */
function besideInRequests ({ canary, baseline }: Sides, decided: ReturnType<typeof decidedOf>): SidesRow[] {
  const row = (name: string, textOf: (figures: Figures) => string) => ({ name, canary: textOf(canary),
    baseline: textOf(baseline), isWorse: false })
  return [row('Requests', ({ requests }) => countOrNone(requests)),
    ...decided?.unit === 'share'
      ? []
      : [row('5xx', ({ errorRate }) => formatPercent(errorRate === null ? null : errorRate * 100))],
    ...decided?.unit === 'ms' ? [] : [row('p99', ({ p99Ms }) => formatLatency(p99Ms))]]
}

function crashesOfOld (history: Pick<History, 'page'> | undefined, { from, startedAt }: RolloutView): number | null {
  // The rest of the card is still needed.
  return attempt(() => {
    const ended = BLAMED_CAUSES.map((cause) =>
      history?.page({ type: ['worker.exited'], cause, release: from, since: Date.parse(startedAt), limit: MAX_COUNTED })
        .items.length
    )
    return ended.reduce((total: number | null, each) => total === null || each === undefined ? null : total + each, 0)
  })
}

const countOrNone = (value: number | null) => value === null ? '–' : formatCount(value)

function msBetween (from: string | null, to: string | null): number | null {
  return from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null
}

/**
 * What an operator can do with a rollout now, see lifecycle/rollout/steering.js.
 * @returns the safest first; `isConfirmed`: opens a dialog
 */
function controlsOf (
  { state, pausedIn }: RolloutView
): { action: string, label: string, className: string, isConfirmed: boolean }[] {
  if (state === 'rolling-back') return []
  const isCanary = (pausedIn ?? state) === 'canary'
  const abort = { action: 'abort', label: 'Abort', className: state === 'held' ? 'primary' : isCanary ? 'danger' : '',
    isConfirmed: true }
  const promote = isCanary
    ? [{ action: 'promote', label: 'Promote', className: state === 'held' ? '' : 'primary', isConfirmed: true }]
    : []
  if (state === 'held')
    return [abort, { action: 'retry', label: 'Retry', className: '', isConfirmed: false }, ...promote]
  const pauseOrResume = state === 'paused'
    ? { action: 'resume', label: 'Resume', className: isCanary ? '' : 'primary', isConfirmed: false }
    : { action: 'pause', label: 'Pause', className: '', isConfirmed: false }
  return [...promote, pauseOrResume, abort]
}
