import { endsByItself } from './restart-policy.ts'
import { drainWorker, nameOf } from './worker.ts'
import type { Transition } from './transition.ts'
import type { Worker } from './state.ts'

/** A worker that ends by itself may take this much longer than option crash.graceMs. */
const PATIENCE_MS = 2000

/**
 * A worker says that an exception is about to end it. It drains by itself, so it is not told to; from now on it belongs
 * to no slot. One that is on its way out already goes on as it was.
 * @returns why its slot has lost it, null: nothing has changed
 */
export function beginCrash (transition: Transition, worker: Worker,
  { errorName, errorMessage }: { errorName: string, errorMessage: string }): { cause: string, reason: string } | null
{
  if (!['starting', 'standby', 'ready'].includes(worker.state)) return null
  const cause = worker.state === 'starting' ? 'boot-failure' : 'crash'
  const reason = `${nameOf(worker)} is ending: ${errorName}: ${errorMessage}`
  const deadlineMs = transition.state.options.crash.graceMs + PATIENCE_MS
  drainWorker(transition, worker, { cause, actor: null, rollout: null, message: reason }, { isTold: true, deadlineMs })
  return { cause, reason }
}

/**
 * A program says that it has begun to end, though nobody here has told it to. Where a program may end by itself, its
 * exit says more.
 * @returns as of beginCrash
 */
export function beginOwnEnd (transition: Transition, worker: Worker): { cause: string, reason: string } | null {
  if (!['starting', 'ready'].includes(worker.state) || endsByItself(transition.state.options.restart)) return null
  const cause = worker.state === 'starting' ? 'boot-failure' : 'app-request'
  drainWorker(transition, worker, { cause, actor: null, rollout: null, message: 'it has said that it stops' }, {
    isTold: true
  })
  return { cause, reason: `${nameOf(worker)} has said that it stops` }
}
