import { attempt } from '../errors.ts'
import { heldWords, type LongLived } from './held.ts'
import { capitalised, withoutOptions } from '../../public/format.ts'
import { crashReasons, openCrashes, type OpenCrashes, type Reason, type Sources } from './crash-reasons.ts'
import { isOfFullDisk } from '../events/told-by-host.ts'
import { turnText } from '../lifecycle/rollout/turn.ts'
import type { Tone } from '../events/kinds.ts'
import type { snapshotOf } from '../lifecycle/snapshot.ts'
import type { CrashService } from '../crashes/crashes.ts'
import type { NoticeKind, Notices } from '../events/notices.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

/** How the cluster is, most urgent truth first: who serves, and what is wrong. */
/**
 * `reasons`: what workers have died of, where it
 * matters now; `problems`: how many things somebody should look at
 */
export type Health = { tone: Tone, text: string, hint: string, about: About, reasons: Reason[], problems: number }
/** what the hint is about, where that is a list of things to be looked at */
type About = 'crashes' | null
/** `slots`: those of which somebody wants to know why */
type Verdict = { tone: Tone, text: string, hint: string, about?: About, slots?: number[] }
type Snapshot =
  & ReturnType<typeof snapshotOf>
  & { history?: { problem: string | null, since?: string | null }, secrets?: { problem: string | null },
    master?: { isShared: boolean } }

/** Asked in this order; the first answer stands. */
const SENTENCES = [whileStopping, ofTroubles, ofFinished, ofNoneServing, ofUpgrade, ofRollout, ofBackoff, ofStarting,
  ofHistory, ofDrift]

/** What is wrong beside who serves, mostly with slots. */
const TROUBLES = [ofSecrets, ofHeld, ofCrashLoops, ofUnresponsive, ofEnded]

const NO_CRASHES: OpenCrashes = Object.freeze({ open: 0, inRelease: 0, isMore: false, newInRelease: 0, reasons: [] })

/**
 * @param more `crashes`: null where nobody knows; `notices`: those that nobody has acknowledged; `failingJobs`: whose
 * last run has failed
 */
export function describeHealth (snapshot: Snapshot,
  { crashes = NO_CRASHES, notices = [], failingJobs = [], reasonsOf = () => [] }: { crashes?: OpenCrashes | null,
    notices?: readonly { kind: string }[], failingJobs?: readonly { job: string, reason: string }[],
    reasonsOf?: (slots: number[]) => Reason[] } = {}): Health
{
  const urgent = verdictOf(snapshot)
  const problems = countProblems(snapshot, { crashes, notices, failingJobs })
  if (urgent && urgent.tone !== 'ok') {
    // Workers in trouble come first.
    const { slots = [], about = null, ...verdict } = urgent
    return { ...verdict, about, reasons: slots.length > 0 ? reasonsOf(slots) : [],
      problems: verdict.tone === 'bad' ? Math.max(1, problems) : problems }
  }
  // Where all serve, they may have crashed before, and a job may fail.
  const { slots: _, about = null, ...verdict } = withJobs(
    withCrashes(urgent ?? ofAllWell(snapshot, { crashes, notices }), crashes, snapshot),
    failingJobs
  )
  return { ...verdict, about, reasons: crashes?.reasons ?? [], problems }
}

function countProblems (snapshot: Snapshot,
  { crashes, notices, failingJobs }: { crashes: OpenCrashes | null, notices: readonly { kind: string }[],
    failingJobs: readonly unknown[] })
{
  const slots =
    slotsOf(snapshot.workers, ({ crashLooping, state }) => crashLooping || state === 'held' || state === 'unresponsive')
      .length
  // A history that fails stays a problem after its notice was acknowledged.
  const isHistoryUnreported = historyProblem(snapshot) && !notices.some(({ kind }) => kind === 'history-degraded')
  return slots + (crashes?.inRelease ?? 0) + notices.length + failingJobs.length +
    (snapshot.rollout?.state === 'held' ? 1 : 0) + (isHistoryUnreported ? 1 : 0)
}

/** The same with what is on record. */
export function createHealth (
  { history, crashes, notices, jobs }: Sources & { crashes: Pick<CrashService, 'counts' | 'page'>,
    notices: Pick<Notices, 'list'>, jobs: { failing: () => readonly { job: string, reason: string }[] } }
): (snapshot: Snapshot) => Health {
  return (snapshot) =>
    describeHealth(snapshot, { crashes: openCrashes(snapshot.release.id, { crashes }),
      notices: notices.list().filter(({ endedAt }) => endedAt === null), failingJobs: jobs.failing(),
      reasonsOf: (slots) => crashReasons(slots, { history, crashes }) })
}

/** Tells whether every wanted worker is ready or has done its work. */
export function isReady (
  { state, readyWorkers, finishedWorkers, desiredWorkers }: Pick<Snapshot,
    'state' | 'readyWorkers' | 'finishedWorkers' | 'desiredWorkers'>
) {
  return state === 'running' && readyWorkers + finishedWorkers >= desiredWorkers
}

/** Null: the database cannot tell */
export function countOpen (crashes: Pick<CrashService, 'counts'>): number | null {
  // A broken history must not take the page down with it.
  return attempt(() => crashes.counts().open)
}

function verdictOf (snapshot: Snapshot): Verdict | undefined {
  for (const sentence of SENTENCES) {
    const verdict = sentence(snapshot)
    if (verdict) return verdict
  }
}

function ofAllWell ({ desiredWorkers: total, finishedWorkers = 0, workers }: Snapshot,
  { crashes, notices }: { crashes: OpenCrashes | null, notices: readonly { kind: string }[] }): Verdict
{
  const kept = workers.filter(({ keptUntil }) => keptUntil)
  const leaving =
    workers.filter(({ state, keptUntil }) => !keptUntil && (state === 'draining' || state === 'stopping')).length
  const text = finishedWorkers > 0
    ? `${portion(total - finishedWorkers, total)} ready, ${finishedWorkers} finished`
    : total === 1
    ? 'The worker is ready'
    : `All ${total} workers are ready`
  const [notice] = notices
  return { tone: notice ? 'warn' : 'ok', text: notice ? `${text}; ${NOTICES[notice.kind]}` : text,
    ...(leaving > 0
      ? { hint: `${count(leaving, 'old worker')} still draining.` }
      : kept.length > 0
      ? { hint: hintOfKept(kept) }
      : hintOfCrashes(crashes)) }
}

/** What has gone wrong, by the kind of its notice. */
const NOTICES: Readonly<Record<string, string>> = Object.freeze(
  { 'master-lost': 'the master was lost', 'keeper-lost': 'the keeper is gone', 'rollout-failed': 'a rollout failed',
    'rolled-back': 'a release was rolled back', 'upgrade-failed': 'an upgrade failed',
    'recycling-slowed': 'workers are recycled too often',
    'history-degraded': 'the history could not be written' } satisfies Record<NoticeKind, string>
)

function hintOfKept (kept: Snapshot['workers']) {
  const sum = (name: keyof LongLived) => kept.reduce((total, { holds }) => total + (holds?.[name] ?? 0), 0)
  const held = heldWords({ webSockets: sum('webSockets'), eventStreams: sum('eventStreams'),
    connections: sum('connections'), transfers: sum('transfers'), sessions: sum('sessions') })
  return `${count(kept.length, 'old worker')} ${kept.length === 1 ? 'is' : 'are'} kept for ${held}.`
}

function withJobs (verdict: Verdict, failing: readonly { job: string, reason: string }[]): Verdict {
  if (failing.length === 0) return verdict
  const names = listText(failing.map(({ job }) => job))
  const [{ job, reason }] = failing
  return { ...verdict, tone: 'warn',
    text: `${verdict.text}; ${failing.length === 1 ? `job ${names}` : `jobs ${names}`} failed`, about: null,
    hint: failing.length === 1
      ? `${capitalised(reason, job)}${/[.!?…]$/.test(reason) ? '' : '.'}`
      : 'Each needs attention until it succeeds or is acknowledged.' }
}

function withCrashes (verdict: Verdict, crashes: OpenCrashes | null, { release }: Snapshot): Verdict {
  if (!crashes || crashes.inRelease === 0) return verdict
  const what = crashes.newInRelease > 0 ? crashText(crashes.newInRelease, 'new') : crashText(crashes.inRelease, 'open')
  return { ...verdict, tone: 'warn',
    text: `${verdict.text}; ${crashes.isMore ? 'at least ' : ''}${what} in ${release.id}` }
}

function hintOfCrashes (crashes: OpenCrashes | null): { hint: string, about?: About } {
  if (crashes === null) return { hint: 'The history cannot be read.' }
  if (crashes.open === 0) return { hint: 'No open crashes.' }
  if (crashes.inRelease === crashes.open) return { hint: 'Resolved and muted crashes no longer count.' }
  return { about: 'crashes',
    hint: `${crashText(crashes.open, 'open')}${
      crashes.inRelease > 0
        ? ' in all'
        : crashes.open === 1
        ? ', not in this release'
        : ', none of them in this release'
    }.` }
}

function crashText (n: number, kind: string) {
  return `${n} ${kind} ${n === 1 ? 'crash' : 'crashes'}`
}

function whileStopping ({ state, workers }: Snapshot): Verdict | null {
  if (state !== 'stopping') return null
  const live = workers.filter(({ pid }) => pid !== null).length
  return { tone: 'drain', text: 'The master is stopping',
    hint: live > 0 ? `${count(live, 'worker')} still draining.` : 'All workers have exited.' }
}

/** @returns who serves is one fact, what is wrong another */
function ofTroubles (snapshot: Snapshot): Verdict | null {
  const troubles = TROUBLES.map((trouble) => trouble(snapshot)).filter((each) => each !== null)
  if (troubles.length === 0) return null
  const hints = troubles.map(({ hint }) => hint)
  if (snapshot.readyWorkers === 0 && snapshot.workers.some(({ finished }) => !finished)) hints.unshift(NONE_SERVES_HINT)
  return {
    tone: snapshot.readyWorkers < snapshot.desiredWorkers || troubles.some(({ tone }) => tone === 'bad')
      ? 'bad'
      : 'warn',
    text: `${whoServes(snapshot)}; ${troubles.map(({ text }) => text).join(', ')}`,
    hint: hints.join(' '),
    slots: troubles.flatMap(({ slots }) => slots)
  }
}

const NONE_SERVES_HINT = 'New connections wait in the socket queue.'

type Trouble = { tone: Tone, text: string, hint: string, slots: number[] }

function ofSecrets ({ secrets }: Snapshot): Trouble | null {
  return secrets?.problem
    ? { tone: 'bad', text: 'no worker can be started', hint: `${capitalised(secrets.problem)}.`, slots: [] }
    : null
}

function ofHeld ({ workers, desiredWorkers }: Snapshot): Trouble | null {
  const slots = slotsOf(workers, ({ state }) => state === 'held')
  if (slots.length === 0) return null
  return { tone: 'bad', text: `${nameSlots(slots, desiredWorkers)} ${slots.length === 1 ? 'is' : 'are'} held`,
    hint: 'Files of the release changed after its deploy. Deploy, or restore the files.', slots: [] }
}

function ofCrashLoops ({ workers, desiredWorkers }: Snapshot): Trouble | null {
  const slots = slotsOf(workers, ({ crashLooping, state }) => crashLooping && state !== 'held')
  if (slots.length === 0) return null
  return { tone: 'warn', text: `${nameSlots(slots, desiredWorkers)} ${slots.length === 1 ? 'keeps' : 'keep'} crashing`,
    hint: 'Each restart waits longer than the last, up to a limit.', slots }
}

function ofUnresponsive ({ workers, desiredWorkers }: Snapshot): Trouble | null {
  const slots = slotsOf(workers, ({ state }) => state === 'unresponsive')
  if (slots.length === 0) return null
  return { tone: 'bad', text: `${nameSlots(slots, desiredWorkers)} ${slots.length === 1 ? 'is' : 'are'} unresponsive`,
    hint: `${slots.length === 1 ? 'Its event loop is' : 'Their event loops are'} blocked.`, slots: [] }
}

function ofEnded ({ workers, desiredWorkers }: Snapshot): Trouble | null {
  const slots = slotsOf(workers, ({ finished }) => finished?.succeeded === false)
  if (slots.length === 0) return null
  return { tone: 'bad', text: `${nameSlots(slots, desiredWorkers)} ended with an error`,
    hint: 'Not started again by itself (restart.policy). Restart or deploy.', slots }
}

function ofFinished ({ desiredWorkers: total, finishedWorkers = 0, rollout, upgrade }: Snapshot): Verdict | null {
  if (finishedWorkers === 0 || finishedWorkers < total || rollout || upgrade) return null
  return { tone: 'ok', text: total === 1 ? 'The worker has finished' : `All ${total} workers have finished`,
    hint: 'A restart or a deploy starts them again.' }
}

function ofNoneServing (snapshot: Snapshot): Verdict | null {
  const { state, readyWorkers, workers, rollout } = snapshot
  if (state === 'starting' || readyWorkers > 0 || (rollout && snapshot.finishedWorkers > 0)) return null
  const slots = slotsOf(workers, isRestarting)
  const what = slots.length === 0
    ? ''
    : `; ${nameSlots(slots, snapshot.desiredWorkers)} ${slots.length === 1 ? 'restarts' : 'restart'}`
  return { tone: 'bad', text: `${whoServes(snapshot)}${what}`, hint: NONE_SERVES_HINT, slots }
}

function ofUpgrade ({ upgrade }: Snapshot): Verdict | null {
  return upgrade
    ? { tone: 'info', text: 'Upgrading the master',
      hint: 'The next master starts its workers. This one serves until they are ready.' }
    : null
}

function ofRollout ({ rollout }: Snapshot): Verdict | null {
  if (!rollout) return null
  const { replaced, total } = rollout.progress
  const hint = `${replaced} of ${count(total, 'worker')} replaced.`
  if (rollout.state === 'held')
    return { tone: 'bad', text: rolloutTitle(rollout),
      hint: `${capitalised(withoutOptions(String(rollout.reason)))}. ${hint} ${
        rollout.from === rollout.to ? 'Retry or abort it.' : `Retry it, or abort it to go back to ${rollout.from}.`
      }` }
  return { tone: rollout.state === 'paused' ? 'warn' : 'info', text: rolloutTitle(rollout), hint }
}

function ofHistory (snapshot: Snapshot): Verdict | null {
  if (!historyProblem(snapshot)) return null
  return { tone: 'warn', text: 'The history cannot be written',
    hint: 'The app is served as ever. Events wait in memory until it works again. The checks say what is wrong.' }
}

/** Null: there is none, or events wait for room on the disk, which the host tells once for all of its apps. */
function historyProblem ({ history, master }: Snapshot) {
  const { problem = null, since = null } = history ?? {}
  return master?.isShared && since !== null && isOfFullDisk(problem) ? null : problem
}

function ofBackoff ({ workers, desiredWorkers, readyWorkers, finishedWorkers = 0 }: Snapshot): Verdict | null {
  const slots = slotsOf(workers, isRestarting)
  if (slots.length === 0 || readyWorkers + finishedWorkers >= desiredWorkers) return null
  return { tone: 'warn', text: `${portion(slots.length, desiredWorkers)} restarting`,
    hint: `${count(readyWorkers, 'worker')} ready.`, slots }
}

/** A slot that is past its backoff has a starting worker again; to people both are the same restart. */
function isRestarting ({ state, restarts }: Snapshot['workers'][number]) {
  return state === 'backoff' || (state === 'starting' && restarts > 0)
}

function ofStarting ({ state, desiredWorkers, readyWorkers, finishedWorkers = 0 }: Snapshot): Verdict | null {
  // A master that has just begun wants no worker yet.
  if (desiredWorkers === 0) return { tone: 'info', text: 'Starting', hint: '' }
  if (readyWorkers + finishedWorkers >= desiredWorkers) return null
  if (state === 'starting')
    return { tone: 'info', text: `Starting ${count(desiredWorkers, 'worker')}`, hint: `${readyWorkers} ready.` }
  return { tone: 'info', text: `${readyWorkers} of ${count(desiredWorkers, 'worker')} ready`,
    hint: 'The others are starting.' }
}

function ofDrift ({ workers, desiredWorkers }: Snapshot): Verdict | null {
  const drifted = workers.filter((worker) => worker.drifted).length
  if (drifted === 0) return null
  const who = desiredWorkers === 1
    ? 'The worker runs'
    : `${drifted} of ${desiredWorkers} workers ${drifted === 1 ? 'runs' : 'run'}`
  return { tone: 'warn', text: `${who} changed files`,
    hint: `${drifted === 1 ? 'It' : 'They'} started after files of ${
      drifted === 1 ? 'its' : 'their'
    } release had been changed in place. Deploy to give all workers the same files.` }
}

/** `to`: null until its release is prepared */
export function rolloutTitle (
  { kind, state, from, to, steps, hook, waitingFor }: Pick<RolloutView,
    'kind' | 'state' | 'from' | 'to' | 'steps' | 'hook' | 'waitingFor'>
) {
  if (state === 'rolling-back') return `Rolling back to ${from}`
  if (state === 'preparing' && waitingFor) return `${nameOf(kind, to)} ${turnText(waitingFor)}`
  if (state === 'preparing') return hook?.state === 'running' ? `Running ${hook.name} of ${to}` : 'Preparing a release'
  if (state === 'held') return `${nameOf(kind, to)} is held`
  if (state === 'paused') return `${nameOf(kind, to)} paused`
  if (state === 'canary') return `Running a canary of ${to}`
  if (kind === 'deploy') return `Deploying ${to}`
  if (kind === 'rollback') return `Rolling back to ${to}`
  return steps.length === 1 ? `Restarting slot ${steps[0].slot}` : 'Restarting all workers'
}

/** @returns what it waits for before it begins */
export function waitingText ({ waitingFor }: { waitingFor?: string[] | null }): string | null {
  return waitingFor ? turnText(waitingFor) : null
}

function nameOf (kind: string, to: string | null) {
  if (kind === 'restart') return 'Restart'
  return `${kind === 'deploy' ? 'Deploy of' : 'Rollback to'} ${to ?? 'a new release'}`
}

function portion (n: number, total: number) {
  if (total === 1) return 'The worker is'
  return `${n} of ${total} workers ${n === 1 ? 'is' : 'are'}`
}

function whoServes ({ readyWorkers: ready, desiredWorkers: total }: Snapshot) {
  if (ready === 0) return 'No worker serves'
  if (ready >= total) return total === 1 ? 'The worker serves' : `All ${total} workers serve`
  return `${ready} of ${total} workers ${ready === 1 ? 'serves' : 'serve'}`
}

function slotsOf (workers: Snapshot['workers'], test: (worker: Snapshot['workers'][number]) => boolean): number[] {
  return [...new Set(workers.filter(test).map(({ slot }) => slot))]
}

function nameSlots (slots: number[], total: number) {
  if (slots.length === 1) return `slot ${slots[0]}`
  return slots.length === total ? `all ${total} slots` : `slots ${listText(slots)}`
}

export function count (n: number, noun: string) {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** @returns `1, 2 and 3`; of more than four the first three */
export function listText (items: readonly (number | string)[]): string {
  if (items.length === 1) return String(items[0])
  return items.length > 4
    ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more`
    : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}
