import { ID } from '../config/id.js'
import { FAULTS, isOneOf } from '../causes.js'
import { DeckError } from '../errors.js'
import { newestMark } from './chart-news.js'
import { historyGaps, isUnwritten } from './history-gaps.js'
import { logsModel } from './logs-page.js'
import { blockedReason } from './overview.js'
import { readOr } from './read-or.js'
import { toWorkerRow } from './worker-row.js'
import { foldFrames } from './stack-view.js'
import { lastOutput } from './worker-output.js'
import { followStory } from './worker-story.js'
import { workerUrlOf } from './worker-url.js'

/**
 * The page of one worker: its state or how it ended, what it did, and the workers before it in its slot.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'diagnostics' | 'logs' | 'crashes'>} Deck
 * @typedef {import('../deck.js').WorkerRow} WorkerRow
 * @typedef {import('../diagnostics/diagnostics.js').Diagnostic} Diagnostic
 * @typedef {import('./worker-story.js').Story} Story
 * @typedef {{
 *   deck: Deck,
 *   history: import('./worker-story.js').History,
 *   id: string,
 *   params: URLSearchParams,
 *   now: () => number,
 *   can?: import('./powers.js').Powers
 * }} Asked
 */

/** The elements of the page that change, by id; each is the partial of the same name. */
export const WORKER_FRAGMENTS = Object.freeze(['history-gaps', 'worker-head', 'worker-facts', 'worker-looks', 'worker-lives', 'worker-events', 'chart-news'])

const MAX_DIAGNOSTICS = 10
/** The log of standby workers, which have no slot yet. */
const STANDBY_LOG = 0
const NO_STORY = Object.freeze({ forked: null, exited: null, next: null, events: [], lives: [] })

/** @type {Readonly<Record<string, string>>} */
const KINDS = Object.freeze({
  'cpu-profile': 'CPU profile',
  'heap-snapshot': 'Heap snapshot',
  'heap-statistics': 'Heap statistics',
  report: 'Diagnostic report'
})
const DIAGNOSTIC_STATES = Object.freeze({
  running: { label: 'Running', tone: 'info' },
  done: { label: 'Done', tone: 'ok' },
  failed: { label: 'Failed', tone: 'bad' }
})

/**
 * @param {Asked} asked `at` in the URL: a time at which it lived; `profile`: the CPU profile to show
 * @throws {DeckError} not-found, invalid-query, or the database's
 */
export async function workerPageModel (asked) {
  const model = followWorkerModel(asked)()
  const { worker, isLive } = model
  return {
    ...model,
    log: isLive ? await logsModel({ deck: asked.deck, params: new URLSearchParams({ slot: String(worker.logSlot) }), now: asked.now }) : null,
    output: isLive ? null : await lastOutput(/** @type {import('./worker-output.js').Ended} */ (worker), model, asked)
  }
}

/**
 * @param {Asked & { render: (name: string, model: object) => string }} asked
 * @returns {() => { id: string, html: string }[]}
 */
export function followWorker (asked) {
  const read = followWorkerModel(asked)
  return () => {
    const model = { can: asked.can, ...read() }
    return WORKER_FRAGMENTS.filter((id) => id !== 'worker-looks' || model.hasLooks).map((id) => ({ id, html: asked.render(`partials/${id}`, model) }))
  }
}

/** @param {Pick<Asked, 'deck' | 'id'>} asked @returns {number | null} null once it has ended */
export function slotOf ({ deck, id }) {
  return deck.snapshot().workers.find((worker) => worker.id === Number(id))?.slot ?? null
}

/** @param {Asked} asked */
function followWorkerModel ({ deck, history, id, params, now, can }) {
  if (!ID.test(id)) throw new DeckError('not-found', `Worker ${JSON.stringify(id.slice(0, 40))} does not exist`)
  const number = Number(id)
  const at = parseTime(params)
  /** @type {(() => Story) | null} */
  let story = null

  return function model () {
    const snapshot = deck.snapshot()
    const row = snapshot.workers.find((worker) => worker.id === number) ?? null
    story ??= followStory(history, number, { slot: row?.slot, at })
    const { isAvailable, ...told } = readPast(story, { isNeeded: row === null })
    // Without `at` the live worker is meant.
    const isLive = row !== null && (at === undefined || isSame(row, told))
    // The worker itself is asked: in a rollout the release that runs may be of another kind.
    const isProgram = isLive && row.runtime === 'other'
    const worker = isLive ? toWorkerRow(row) : endedWorker(number, told)
    const lives = toLives(told.lives, worker)
    return {
      now: now(),
      gaps: historyGaps({ history, deck }, { since: lives.at(-1)?.startedAt ?? worker.startedAt ?? undefined, until: isLive ? undefined : told.exited?.at }),
      faults: FAULTS,
      newestMark: newestMark(history),
      isUnwritten: isUnwritten(history, snapshot),
      snapshot,
      isProgram,
      blocked: blockedReason(snapshot),
      isAvailable,
      isLive,
      worker,
      end: isLive ? null : told.exited,
      crash: isLive ? null : crashOf(told.exited, deck.crashes),
      next: isLive ? successorOf(row, snapshot.workers) : replacementOf(told, worker.slot, snapshot.workers),
      events: told.events,
      lives,
      before: isLive ? faultBefore(lives, row) : null,
      ...diagnosticsOf(deck.diagnostics.list(), { worker: number, pid: worker.pid, now: now(), params, can, canLook: isLive && !isProgram })
    }
  }
}

/** @param {import('./worker-story.js').Life[]} lives @param {{ id: number | null, pid: number | null }} worker whose page it is */
function toLives (lives, { id, pid }) {
  return lives.map((life) => ({
    ...life,
    isThis: life.worker === id && life.pid === pid,
    url: workerUrlOf(life.worker, life.end === null ? undefined : life.startedAt ?? life.end.at)
  }))
}

/** The fault that a live worker came after: who looks at it mostly looks for that. @param {ReturnType<typeof toLives>} lives newest first @param {Pick<WorkerRow, 'startedAt'>} row */
function faultBefore (lives, { startedAt }) {
  // One that was to replace it, and failed, came after it.
  const last = lives.find((life) => life.end !== null && (life.startedAt ?? '') < String(startedAt))
  return last?.end && isOneOf(FAULTS, last.end.cause) ? { url: last.url, end: last.end } : null
}

/** @param {URLSearchParams} params @returns {string | undefined} */
function parseTime (params) {
  const text = params.get('at')
  if (!text) return undefined
  if (Number.isNaN(Date.parse(text))) {
    throw new DeckError('invalid-query', `at: expected a time such as 2026-01-31T12:00:00Z, received ${JSON.stringify(text.slice(0, 60))}`)
  }
  return text
}

/**
 * The page of a live worker works without the history.
 * @param {() => Story} story
 * @param {{ isNeeded: boolean }} need
 * @returns {Story & { isAvailable: boolean }}
 */
function readPast (story, { isNeeded }) {
  try {
    return { isAvailable: true, ...story() }
  } catch (error) {
    if (isNeeded) throw error
    return { isAvailable: false, ...NO_STORY }
  }
}

/** @param {WorkerRow} row @param {Story} story */
function isSame ({ pid }, { forked, exited }) {
  return exited === null && (forked === null || forked.pid === pid)
}

/** @param {number} id @param {Story} story @throws {DeckError} not-found */
function endedWorker (id, { forked, exited }) {
  const known = exited ?? forked
  if (!known) throw new DeckError('not-found', `Worker ${id} does not exist, or is no longer kept`)
  const { slot, release } = known
  // A standby worker keeps its log when it gets a slot.
  const logSlot = (forked ?? known).slot ?? STANDBY_LOG
  return { id, slot, logSlot, pid: forked?.pid ?? known.pid, release, startedAt: forked?.at ?? null, url: workerUrlOf(id, known.at) }
}

/**
 * The first frame of the app itself in the stack of what it died of.
 * @param {Story['exited']} exited @param {Pick<Deck['crashes'], 'occurrence'>} crashes
 */
function crashOf (exited, crashes) {
  const { crash, crashGroup } = exited?.detail ?? {}
  if (!exited?.crashUrl || crash === undefined) return null
  const frames = readOr(() => crashes.occurrence(Number(crashGroup), Number(crash)).frames, [])
  const own = frames.find(({ isInApp }) => isInApp)
  return own ? foldFrames([own])[0].frames[0] : null
}

/** @param {Pick<WorkerRow, 'id' | 'slot'>} row @param {WorkerRow[]} workers */
function successorOf ({ id, slot }, workers) {
  const next = workers.find((worker) => worker.slot === slot && worker.id !== null && worker.id > Number(id))
  return next ? toReplacement(next) : null
}

/**
 * The worker that was to be replaced: it goes on if the new one fails.
 * @param {Story['exited']} exited @param {number | null} slot @param {WorkerRow[]} workers
 */
function predecessorOf (exited, slot, workers) {
  const old = workers.find((worker) => worker.slot === slot && worker.pid !== null && worker.id !== exited?.worker)
  return old ? toReplacement(old) : null
}

/** @param {WorkerRow} worker */
function toReplacement ({ id, startedAt }) {
  return { worker: Number(id), at: String(startedAt), url: workerUrlOf(Number(id)), afterMs: null }
}

/**
 * Who got the slot of a worker that has ended; where the history does not know, who serves it now.
 * @param {Story} story @param {number | null} slot @param {WorkerRow[]} workers
 */
function replacementOf ({ next, exited }, slot, workers) {
  if (!next?.worker) return successorOf({ id: exited?.worker ?? null, slot: Number(slot) }, workers) ?? predecessorOf(exited, slot, workers)
  const afterMs = exited && Date.parse(next.at) - Date.parse(exited.at)
  return { worker: next.worker, at: next.at, url: workerUrlOf(next.worker, next.at), afterMs }
}

/**
 * @param {Diagnostic[]} all newest first
 * @param {{ worker: number, pid: number | null, now: number, params: URLSearchParams, can?: import('./powers.js').Powers, canLook: boolean }} whose  `canLook`: there is a Node.js process to look into
 */
function diagnosticsOf (all, { worker, pid, now, params, can, canLook }) {
  const own = all.filter((item) => item.worker === worker && (pid === null || item.pid === pid))
  const looks = own.slice(0, MAX_DIAGNOSTICS).map((item) => toDiagnosticRow(item, now, params))
  const profile = own.find(({ id, kind, state }) => String(id) === params.get('profile') && kind === 'cpu-profile' && state === 'done') ?? null
  return {
    looks,
    canLook,
    hasLooks: canLook || looks.length > 0,
    isBusy: own.some(({ state }) => state === 'running'),
    profile: can?.administer ? profile : null,
    closeUrl: workerUrlOf(worker, params.get('at') ?? undefined)
  }
}

/** @param {Diagnostic} item @param {number} now @param {URLSearchParams} params */
function toDiagnosticRow (item, now, params) {
  const { id, kind, worker, state, durationMs, startedAt } = item
  const at = params.get('at')
  return {
    ...item,
    label: KINDS[kind] ?? kind,
    badge: DIAGNOSTIC_STATES[state],
    // Whole seconds keep the page equal for a second, as it is sent again with any change.
    progress: state === 'running' && durationMs !== null
      ? { value: Math.min(durationMs, Math.max(0, Math.floor((now - Date.parse(startedAt)) / 1000) * 1000)), max: durationMs }
      : null,
    fileUrl: state === 'done' ? `/api/v1/diagnostics/${id}/file` : null,
    flameUrl: state === 'done' && kind === 'cpu-profile' ? `/workers/${worker}?${new URLSearchParams({ ...(at && { at }), profile: String(id) })}#flame` : null,
    isShown: String(id) === params.get('profile')
  }
}
