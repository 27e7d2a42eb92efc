import { ID } from '../config/id.ts'
import { FAULTS, isOfDebugger, isOneOf } from '../causes.ts'
import { lookIntoProfile } from '../diagnostics/api.ts'
import { DeckError, onRefusal } from '../errors.ts'
import { capitalised } from '../../public/format.ts'
import { withoutWorker } from '../crashes/page-kinds.ts'
import { newestMark } from '../vitals/page-chart-news.ts'
import { freshSample } from '../vitals/page-newest.ts'
import { historyGaps, isUnwritten } from '../events/page-gaps.ts'
import { logsModel, type Line } from '../logs/page.ts'
import { blockedReason } from './overview.ts'
import { toShownProfile } from '../diagnostics/page-profiles.ts'
import { readOr } from './read-or.ts'
import { spanIn } from './time-strip.ts'
import { toWorkerRow } from './worker-row.ts'
import { foldFrames } from '../crashes/page-stack.ts'
import { lastOutput, type Ended } from '../logs/page-worker-output.ts'
import { followStory, type History, type Life, type Story } from './worker-story.ts'
import { workerUrlOf } from './worker-url.ts'
import type { ShownEvent } from '../events/page-shown-event.ts'
import type { WorkerRow } from '../deck.ts'
import type { Diagnostic } from '../diagnostics/diagnostics.ts'
import type { Powers } from './powers.ts'

/** The page of one worker: its state or how it ended, what it did, and the workers before it in its slot. */
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'diagnostics' | 'logs' | 'crashes' | 'releases'>
type Asked = { deck: Deck, history: History, id: string, params: URLSearchParams, now: () => number, can?: Powers }

/** What is live of the page of any worker. */
const FRAGMENTS = Object.freeze(['history-gaps', 'worker-head', 'worker-facts', 'worker-lives', 'worker-events',
  'worker-looks', 'chart-news'])
const MAX_DIAGNOSTICS = 10
/** The log of standby workers, which have no slot yet. */
const STANDBY_LOG = 0
const NO_STORY = Object.freeze({ forked: null, exited: null, next: null, events: [], lives: [] })

const KINDS: Readonly<Record<string, string>> = Object.freeze({ 'cpu-profile': 'CPU profile',
  'heap-snapshot': 'Heap snapshot', 'heap-statistics': 'Heap statistics', report: 'Diagnostic report' })
/** By the kind of a crash. */
const VERBS: Readonly<Record<string, string>> = Object.freeze({ exception: 'Thrown in',
  'unhandled-rejection': 'Rejected in', panic: 'Panicked in', hung: 'Hung in' })
const DIAGNOSTIC_STATES = Object.freeze({ running: { label: 'Running', tone: 'info' },
  done: { label: 'Done', tone: 'ok' }, failed: { label: 'Failed', tone: 'bad' } })

/**
 * `asked`: `at` in the URL: a time at which it lived; `profile`: the CPU profile to show.
 * @throws {DeckError} not-found, invalid-query, or the database's
 */
export async function workerPageModel (asked: Asked) {
  const model = followWorker(asked)()
  const { worker, isLive } = model
  return { ...model,
    log: isLive
      ? await logsModel({ deck: asked.deck, params: new URLSearchParams({ slot: String(worker.logSlot) }),
        now: asked.now })
      : null, output: isLive ? null : withoutDebugger(await lastOutput(worker as Ended, model, asked)),
    busiest: model.profile && await busiestOf(model.profile, asked) }
}

/** What Node says while the master examines a worker that hangs is none of its own last lines. */
function withoutDebugger<T extends { lines: Line[] }> (output: T): T {
  return { ...output, lines: output.lines.filter(({ parts }) => !isOfDebugger(parts.map(({ text }) => text).join(''))) }
}

async function busiestOf (profile: Diagnostic, { deck, id, params }: Asked) {
  return await lookIntoProfile(deck, profile, profile.actor).then((looked) =>
    toShownProfile(looked, `/workers/${id}`, params)
  ).catch(onRefusal(({ message }) => ({ problem: message, functions: [], flame: null })))
}

/** @returns null once it has ended */
export function slotOf ({ deck, id }: Pick<Asked, 'deck' | 'id'>): number | null {
  return deck.snapshot().workers.find((worker) => worker.id === Number(id))?.slot ?? null
}

/** The story of a worker is read once. */
export function followWorker ({ deck, history, id, params, now, can }: Asked) {
  if (!ID.test(id)) throw new DeckError('not-found', `Worker ${JSON.stringify(id.slice(0, 40))} does not exist`)
  const number = Number(id)
  const at = parseTime(params)
  let story: (() => Story) | null = null

  return function model () {
    const snapshot = deck.snapshot()
    const found = snapshot.workers.find((worker) => worker.id === number)
    const row = found ? { ...found, vitals: freshSample(found.vitals, now()) } : null
    story ??= followStory(history, number, { slot: row?.slot, at })
    const { isAvailable, ...told } = readPast(story, { isNeeded: row === null })
    // Without `at` the live worker is meant.
    const isLive = row !== null && (at === undefined || isSame(row, told))
    // The worker itself is asked: in a rollout the release that runs may be of another kind.
    const isProgram = isLive && row.runtime === 'other'
    const worker = isLive ? toWorkerRow(row) : endedWorker(number, told)
    const lives = toLives(told.lives, worker)
    // One that lives comes first.
    const endMsOf = ({ end }: { end: { at: string } | null }) => Date.parse(end?.at ?? '9999')
    const shown = lives.toSorted((one, other) => endMsOf(other) - endMsOf(one))
    const end = isLive ? null : told.exited && endOf(told.exited, deck.crashes)
    const looks = diagnosticsOf(deck.diagnostics.list(), { worker: number, pid: worker.pid, now: now(), params, can,
      canLook: isLive && !isProgram })
    return { fragments: FRAGMENTS, now: now(),
      gaps: historyGaps({ history, deck }, { since: lives.at(-1)?.startedAt ?? worker.startedAt ?? undefined,
        until: isLive ? undefined : told.exited?.at }), faults: FAULTS, newestMark: newestMark(history),
      isUnwritten: isUnwritten(history, snapshot), snapshot, isProgram, blocked: blockedReason(snapshot), isAvailable,
      isLive, isOfTime: spanIn(params, now()) !== null, worker, end,
      next: isLive ? successorOf(row, snapshot.workers) : replacementOf(told, worker.slot, snapshot.workers),
      events: told.events.filter(({ id, type }) => id !== end?.id && type !== 'rollout.step').map(withDeed),
      lives: shown, before: isLive ? faultBefore(lives, row) : null, ...looks }
  }
}

/** The page names the worker, so the sentence need not. */
function withDeed (event: ShownEvent) {
  return { ...event, deed: capitalised(withoutWorker(event.sentence)) }
}

/** `worker`: whose page it is */
function toLives (lives: Life[], { id, pid }: { id: number | null, pid: number | null }) {
  return lives.map((life) => ({ ...life, end: life.end && withDeed(life.end),
    isThis: life.worker === id && life.pid === pid,
    url: workerUrlOf(life.worker, life.end === null ? undefined : life.startedAt ?? life.end.at) })
  )
}

/** The fault that a live worker came after: who looks at it mostly looks for that. `lives`: newest first. */
function faultBefore (lives: ReturnType<typeof toLives>, { startedAt }: Pick<WorkerRow, 'startedAt'>) {
  // One that was to replace it, and failed, came after it.
  const last = lives.find((life) => life.end !== null && (life.startedAt ?? '') < String(startedAt))
  return last?.end && isOneOf(FAULTS, last.end.cause) ? { url: last.url, end: last.end } : null
}

function parseTime (params: URLSearchParams): string | undefined {
  const text = params.get('at')
  if (!text) return undefined
  if (Number.isNaN(Date.parse(text))) {
    throw new DeckError('invalid-query',
      `at: expected a time such as 2026-01-31T12:00:00Z, received ${JSON.stringify(text.slice(0, 60))}`)
  }
  return text
}

/** The page of a live worker works without the history. */
function readPast (story: () => Story, { isNeeded }: { isNeeded: boolean }): Story & { isAvailable: boolean } {
  try {
    return { isAvailable: true, ...story() }
  } catch (error) {
    if (isNeeded) throw error
    return { isAvailable: false, ...NO_STORY }
  }
}

function isSame ({ pid }: WorkerRow, { forked, exited }: Story) {
  return exited === null && (forked === null || forked.pid === pid)
}

/** @throws {DeckError} not-found */
function endedWorker (id: number, { forked, exited }: Story) {
  const known = exited ?? forked
  if (!known) throw new DeckError('not-found', `Worker ${id} does not exist, or is no longer kept`)
  const { slot, release } = known
  // A standby worker keeps its log when it gets a slot.
  const logSlot = (forked ?? known).slot ?? STANDBY_LOG
  return { id, slot, logSlot, pid: forked?.pid ?? known.pid, release, startedAt: forked?.at ?? null,
    url: workerUrlOf(id, known.at) }
}

/** `frame`: the first one of the app itself in the stack of what it died of; `tone`: a crash that is settled is none */
function endOf (exited: ShownEvent, crashes: Pick<Deck['crashes'], 'group' | 'occurrence'>) {
  const [group, crash] = [Number(exited.detail?.crashGroup), Number(exited.detail?.crash)]
  const isOpen = !exited.crashUrl || readOr(() => crashes.group(group).state === 'open', true)
  const occurrence = exited.crashUrl ? readOr(() => crashes.occurrence(group, crash), null) : null
  const own = occurrence?.frames.find(({ isInApp }) => isInApp)
  return { ...withDeed(exited), tone: isOpen ? exited.kind.tone : 'idle',
    frame: own ? { ...foldFrames([own])[0].frames[0], verb: VERBS[String(occurrence?.kind)] ?? 'Ended in' } : null }
}

function successorOf ({ id, slot }: Pick<WorkerRow, 'id' | 'slot'>, workers: WorkerRow[]) {
  const next = workers.find((worker) => worker.slot === slot && worker.id !== null && worker.id > Number(id))
  return next ? toReplacement(next) : null
}

/** The worker that was to be replaced: it goes on if the new one fails. */
function predecessorOf (exited: Story['exited'], slot: number | null, workers: WorkerRow[]) {
  const old = workers.find((worker) => worker.slot === slot && worker.pid !== null && worker.id !== exited?.worker)
  return old ? toReplacement(old) : null
}

function toReplacement ({ id, startedAt }: WorkerRow) {
  return { worker: Number(id), at: String(startedAt), url: workerUrlOf(Number(id)), afterMs: null }
}

/** Who got the slot of a worker that has ended; where the history does not know, who serves it now. */
function replacementOf ({ next, exited }: Story, slot: number | null, workers: WorkerRow[]) {
  if (!next?.worker)
    return successorOf({ id: exited?.worker ?? null, slot: Number(slot) }, workers) ??
      predecessorOf(exited, slot, workers)
  const afterMs = exited && Date.parse(next.readyAt ?? next.at) - Date.parse(exited.at)
  return { worker: next.worker, at: next.at, url: workerUrlOf(next.worker, next.at), afterMs }
}

/** `all`: newest first; `canLook`: there is a Node.js process to look into */
function diagnosticsOf (all: Diagnostic[],
  { worker, pid, now, params, can, canLook }: { worker: number, pid: number | null, now: number,
    params: URLSearchParams, can?: Powers, canLook: boolean })
{
  const own = all.filter((item) => item.worker === worker && (pid === null || item.pid === pid))
  const looks = own.slice(0, MAX_DIAGNOSTICS).map((item) => toDiagnosticRow(item, now, params))
  const profile =
    own.find(({ id, kind, state }) =>
      String(id) === params.get('profile') && kind === 'cpu-profile' && state === 'done'
    ) ?? null
  return { looks, canLook, hasLooks: canLook || looks.length > 0, isBusy: own.some(({ state }) => state === 'running'),
    profile: can?.operate ? profile : null }
}

function toDiagnosticRow (item: Diagnostic, now: number, params: URLSearchParams) {
  const { id, kind, worker, state, durationMs, startedAt } = item
  const at = params.get('at')
  return {
    ...item,
    label: KINDS[kind] ?? kind,
    badge: DIAGNOSTIC_STATES[state],
    // Whole seconds keep the page equal for a second, as it is sent again with any change.
    progress: state === 'running' && durationMs !== null
      ? { value: Math.min(durationMs, Math.max(0, Math.floor((now - Date.parse(startedAt)) / 1000) * 1000)),
        max: durationMs }
      : null,
    fileUrl: state === 'done' ? `/api/v1/diagnostics/${id}/file` : null,
    functionsUrl: state === 'done' && kind === 'cpu-profile'
      ? `/workers/${worker}?${new URLSearchParams({ ...(at && { at }), profile: String(id) })}#functions`
      : null,
    isShown: String(id) === params.get('profile')
  }
}
