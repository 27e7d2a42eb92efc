import { endsByItself } from './restart-policy.js'
import { drainWorker, nameOf } from './worker.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */

/** A worker that ends by itself may take this much longer than option crash.graceMs. */
const PATIENCE_MS = 2000

/**
 * A worker says that an exception is about to end it. It drains by itself, so it is not told to; from now on it belongs
 * to no slot. One that is on its way out already goes on as it was.
 * @param {Transition} transition @param {Worker} worker @param {{ errorName: string, errorMessage: string }} error
 * @returns {{ cause: string, reason: string } | null} why its slot has lost it, null: nothing has changed
 */
export function beginCrash (transition, worker, { errorName, errorMessage }) {
  if (!['starting', 'standby', 'ready'].includes(worker.state)) return null
  const cause = worker.state === 'starting' ? 'boot-failure' : 'crash'
  const reason = `${nameOf(worker)} is ending: ${errorName}: ${errorMessage}`
  const deadlineMs = transition.state.options.crash.graceMs + PATIENCE_MS
  drainWorker(transition, worker, { cause, actor: null, rollout: null, message: reason }, { isTold: true, deadlineMs })
  return { cause, reason }
}

/**
 * A program says that it has begun to end, though nobody here has told it to. Where a program may end by itself, its exit says more.
 * @param {Transition} transition @param {Worker} worker
 * @returns {{ cause: string, reason: string } | null} as of beginCrash
 */
export function beginOwnEnd (transition, worker) {
  if (!['starting', 'ready'].includes(worker.state) || endsByItself(transition.state.options.restart)) return null
  const cause = worker.state === 'starting' ? 'boot-failure' : 'app-request'
  drainWorker(transition, worker, { cause, actor: null, rollout: null, message: 'it has said that it stops' }, { isTold: true })
  return { cause, reason: `${nameOf(worker)} has said that it stops` }
}
