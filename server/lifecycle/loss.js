import { countLongLived, heldWords } from '../held-words.js'
import { addWarning } from './rollout/record.js'
import { nameOf } from './worker.js'
import { durationText } from './duration.js'

/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').Unfinished} Unfinished */
/**
 * `isAsTold`: by the signal that it was told to end by; `said`: the line of its output that tells why, where it has named no error;
 * `hint`: what may help.
 * @typedef {{ code: number | null, signal: string | null, error?: import('./state.js').CrashNote | null, isOutOfMemory?: boolean, isAsTold?: boolean, said?: string | null, hint?: string | null, unfinished?: Unfinished | null, left?: import('./state.js').LeftProcess[] }} Exit
 */
/** @typedef {Omit<Exit, 'unfinished'> & { unfinished?: Omit<Unfinished, 'isReported'> | null }} ToldExit  as the worker itself has told it */

const MAX_NAMED = 5

/**
 * What was still open when a worker ended that was told to go, or got SIGKILL.
 * @param {Worker} worker @param {Exit} exit
 * @returns {Unfinished | null} null: nothing, as far as is known
 */
export function unfinishedOf (worker, { signal, unfinished }) {
  const isOurs = signal === 'SIGKILL' || worker.state === 'draining' || worker.state === 'stopping'
  // It may have had something by its last report, and nothing when it said that it had drained.
  const isOutdated = worker.drainEnd === 'drained' && unfinished?.isReported
  if (!unfinished || !isOurs || isOutdated) return null
  return isLost(unfinished) || hasClosed(unfinished) ? unfinished : null
}

/** @param {Unfinished | null} unfinished @param {Exit['left']} [left] @returns {string} the end of the sentence about the exit */
export function lossOf (unfinished, left = []) {
  const named = left.slice(0, MAX_NAMED).map(({ name, pid }) => `${name} (pid ${pid})`)
  return [
    unfinished && isLost(unfinished) && `, with ${describeUnfinished(unfinished)}`,
    unfinished && hasClosed(unfinished) && `; it has closed ${heldWords(unfinished.closed)}`,
    left.length > 0 && `; processes that it started still run: ${named.join(', ')}${left.length > MAX_NAMED ? ' …' : ''}`
  ].filter(Boolean).join('')
}

/** @param {Exit} exit @param {Unfinished | null} unfinished @returns {Record<string, unknown> | null} */
export function toEndDetail ({ error, hint, left = [] }, unfinished) {
  const detail = {
    ...(error ? { errorName: error.errorName, stack: error.stack } : {}),
    ...(hint ? { hint } : {}),
    ...(unfinished ? toLossDetail(unfinished) : {}),
    ...(left.length > 0 ? { leftProcesses: left.map(({ name, pid }) => ({ name, pid })) } : {})
  }
  return Object.keys(detail).length > 0 ? detail : null
}

/** @param {Unfinished} unfinished */
function toLossDetail (unfinished) {
  const { requests, connections, stalled, closed } = unfinished
  return {
    ...(isLost(unfinished) && { endedRequests: requests, endedConnections: connections, ...(stalled && { stalledRequests: stalled }) }),
    ...(hasClosed(unfinished) && { closed })
  }
}

/** @param {import('./transition.js').Transition} transition @param {Worker} worker was replaced by a rollout @param {Unfinished | null} unfinished */
export function warnOfLoss (transition, worker, unfinished) {
  const { rollout, options } = transition.state
  if (!unfinished || !isLost(unfinished) || !rollout || worker.intent?.rollout !== rollout.id) return
  // A worker that ends its requests at the deadline says then that it has drained.
  const why = worker.drainEnd && unfinished.requests > 0 ? `, as it had not drained within ${durationText(options.drain.deadlineMs)} (option drain.deadlineMs)` : ''
  addWarning(rollout, `${nameOf(worker)} ended with ${describeUnfinished(unfinished)}${why}`)
}

/** @param {Unfinished} unfinished @returns {boolean} whether a client did not get what it waited for */
function isLost ({ requests, connections }) {
  return requests > 0 || connections > 0
}

/** @param {Unfinished} unfinished @returns {boolean} whether it has ended long-lived connections in their own way */
function hasClosed ({ closed }) {
  return countLongLived(closed) > 0
}

/** @param {Unfinished} unfinished */
function describeUnfinished ({ requests, connections, stalled = 0, isReported }) {
  const parts = [requests > 0 && `${countOf(requests, 'request')}${stalled > 0 ? ` (${stalled} had stopped moving)` : ''}`, connections > 0 && countOf(connections, 'connection')].filter(Boolean)
  return `${parts.join(' and ')} still open${isReported ? ', by its last report' : ''}`
}

/** @param {number} number @param {string} what */
function countOf (number, what) {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
