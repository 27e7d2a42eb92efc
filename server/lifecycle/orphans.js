import { recordEnd, drain, nameOf } from './worker.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Worker} Worker */

/**
 * Takes over a worker of another master. It goes on as it was: serving until its slot has a worker of this master, or on
 * its way out for the reason that the other master had.
 * @param {Turn} turn @param {import('./state.js').Orphan} orphan
 */
export function adoptOrphan (turn, { exit, intent, state, orphan, addresses = [], ...known }) {
  /** @type {Worker} */
  const worker = {
    ...known,
    state,
    forkedAt: turn.at - Math.max(0, Date.parse(turn.isoTime()) - Date.parse(known.startedAt)),
    // One that was starting ends with its master.
    intent: intent ?? (state === 'starting' ? withoutMaster(orphan) : null),
    readyTimeoutMs: turn.state.options.ready.timeoutMs,
    addresses,
    orphan
  }
  turn.state.workers[worker.id] = worker
  if (exit) {
    recordEnd(turn, worker, exit)
    return
  }
  if (worker.intent) return goOnDraining(turn, worker)
  turn.tellOf('worker.orphaned', worker, { cause: orphan, message: `${nameOf(worker)} ${GOES_ON[orphan]}` })
}

const GOES_ON = Object.freeze({ 'master-lost': 'runs without its master', upgrade: 'serves until the next master replaces it' })

/** @param {Turn} turn @param {Worker} worker the other master may not have come to tell it */
function goOnDraining (turn, worker) {
  const { idleGraceMs, deadlineMs } = turn.state.options.drain
  worker.state = 'draining'
  turn.order({ type: 'drain', worker: worker.id, idleGraceMs })
  turn.order({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms: deadlineMs })
}

/** @param {Turn} turn @param {(orphan: Worker) => boolean} isMeant those whose replacement is ready */
export function drainOrphans (turn, isMeant) {
  for (const worker of Object.values(turn.state.workers)) {
    if (worker.orphan && isMeant(worker)) drain(turn, worker, { ...withoutMaster(worker.orphan), message: 'its replacement is ready' })
  }
}

/** @param {import('./state.js').OrphanCause} cause @returns {import('./state.js').Intent} */
function withoutMaster (cause) {
  return { cause, actor: 'system', rollout: null }
}
