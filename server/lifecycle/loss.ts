import { countLongLived, heldWords } from '../words/held.ts'
import { addWarning } from './rollout/record.ts'
import { nameOf } from './worker.ts'
import { durationText } from './duration.ts'
import type { CrashNote, LeftProcess, Unfinished, Worker } from './state.ts'
import type { Transition } from './transition.ts'

/**
 * `isAsTold`: by the signal that it was told to end by; `said`: the line of its output that tells why, where it has
 * named no error;
 * `hint`: what may help.
 */
export type Exit = { code: number | null, signal: string | null, error?: CrashNote | null, isOutOfMemory?: boolean,
  isAsTold?: boolean, said?: string | null, hint?: string | null, unfinished?: Unfinished | null, left?: LeftProcess[] }
/** as the worker itself has told it */
export type ToldExit = Omit<Exit, 'unfinished'> & { unfinished?: Omit<Unfinished, 'isReported'> | null }

const MAX_NAMED = 5

/**
 * What was still open when a worker ended that was told to go, or got SIGKILL.
 * @returns null: nothing, as far as is known
 */
export function unfinishedOf (worker: Worker, { signal, unfinished }: Exit): Unfinished | null {
  const isOurs = signal === 'SIGKILL' || worker.state === 'draining' || worker.state === 'stopping'
  // It may have had something by its last report, and nothing when it said that it had drained.
  const isOutdated = worker.drainEnd === 'drained' && unfinished?.isReported
  if (!unfinished || !isOurs || isOutdated) return null
  return isLost(unfinished) || hasClosed(unfinished) ? unfinished : null
}

/** @returns the end of the sentence about the exit */
export function lossOf (unfinished: Unfinished | null, left: Exit['left'] = []): string {
  const named = left.slice(0, MAX_NAMED).map(({ name, pid }) => `${name} (pid ${pid})`)
  return [unfinished && isLost(unfinished) && `, with ${describeUnfinished(unfinished)}`,
    unfinished && hasClosed(unfinished) && `; it has closed ${heldWords(unfinished.closed)}`,
    left.length > 0 &&
    `; processes that it started still run: ${named.join(', ')}${left.length > MAX_NAMED ? ' …' : ''}`].filter(Boolean)
    .join('')
}

export function toEndDetail ({ error, hint, left = [] }: Exit, unfinished: Unfinished | null):
  | Record<string, unknown>
  | null
{
  const detail = { ...(error ? { errorName: error.errorName, stack: error.stack } : {}), ...(hint ? { hint } : {}),
    ...(unfinished ? toLossDetail(unfinished) : {}),
    ...(left.length > 0 ? { leftProcesses: left.map(({ name, pid }) => ({ name, pid })) } : {}) }
  return Object.keys(detail).length > 0 ? detail : null
}

function toLossDetail (unfinished: Unfinished) {
  const { requests, connections, stalled, closed } = unfinished
  return {
    ...(isLost(unfinished) &&
      { endedRequests: requests, endedConnections: connections, ...(stalled && { stalledRequests: stalled }) }),
    ...(hasClosed(unfinished) && { closed })
  }
}

/** `worker`: was replaced by a rollout */
export function warnOfLoss (transition: Transition, worker: Worker, unfinished: Unfinished | null) {
  const { rollout, options } = transition.state
  if (!unfinished || !isLost(unfinished) || !rollout || worker.intent?.rollout !== rollout.id) return
  // A worker that ends its requests at the deadline says then that it has drained.
  const why = worker.drainEnd && unfinished.requests > 0
    ? `, as it had not drained within ${durationText(options.drain.deadlineMs)} (option drain.deadlineMs)`
    : ''
  addWarning(rollout, `${nameOf(worker)} ended with ${describeUnfinished(unfinished)}${why}`)
}

/** Tells whether a client did not get what it waited for */
function isLost ({ requests, connections }: Unfinished): boolean {
  return requests > 0 || connections > 0
}

/** Tells whether it has ended long-lived connections in their own way */
function hasClosed ({ closed }: Unfinished): boolean {
  return countLongLived(closed) > 0
}

function describeUnfinished ({ requests, connections, stalled = 0, isReported }: Unfinished) {
  const parts = [
    requests > 0 && `${countOf(requests, 'request')}${stalled > 0 ? ` (${stalled} had stopped moving)` : ''}`,
    connections > 0 && countOf(connections, 'connection')
  ].filter(Boolean)
  return `${parts.join(' and ')} still open${isReported ? ', by its last report' : ''}`
}

function countOf (number: number, what: string) {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
