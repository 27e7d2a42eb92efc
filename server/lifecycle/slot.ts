import { blankRecord } from './restart-policy.ts'
import type { Transition } from './transition.ts'
import type { PoolState, Slot, Worker } from './state.ts'

export function createSlot (number: number, release: string): Slot {
  return { number, release, serving: null, candidate: null, retryAt: null, blocked: null, finished: null, restarts: 0,
    record: blankRecord() }
}

/** Tells whether no two workers of a slot may live side by side */
export function stopsFirst ({ options, rollout }: PoolState): boolean {
  return options.rollout?.order === 'stop-first' || rollout?.strategy.order === 'stop-first'
}

/** Tells whether any worker of the slot still lives */
export function isOccupied ({ workers }: PoolState, slot: number): boolean {
  return Object.values(workers).some((worker) => worker.slot === slot)
}

/** Tells whether the slot has no worker and waits for no retry */
export function isEmpty ({ serving, candidate, retryAt }: Slot): boolean {
  return serving === null && candidate === null && retryAt === null
}

/** Tells whether the slot is empty and needs a worker */
export function isVacant (slot: Slot): boolean {
  return isEmpty(slot) && slot.finished === null
}

/** Tells whether the rollout starts the next worker of the slot */
export function isClaimed ({ rollout }: PoolState, { number }: Slot): boolean {
  return rollout !== null &&
    rollout.steps.some(({ slot, state }) => slot === number && (state === 'stopping' || state === 'reverting'))
}

/** Tells whether the program of the slot has ended and no worker is to follow */
export function isFinished (slot: Slot): boolean {
  return isEmpty(slot) && slot.finished !== null
}

/** `slot`: has something better to do than to wait for its next try */
export function cancelRetry (transition: Transition, slot: Slot) {
  if (slot.retryAt === null) return
  slot.retryAt = null
  slot.blocked = null
  transition.command({ type: 'clear-deadline', deadline: 'retry', id: slot.number })
}

/**
 * A program that may come to its end, such as a job: its slot is finished then, until something is deployed to it or it
 * is restarted on purpose. `cause`: of its worker's end. Returns whether no other worker follows.
 */
export function endsSlot ({ state: { options } }: Transition, cause: string): boolean {
  return cause === 'finished' || options.restart.policy === 'never'
}

/** `worker`: has ended, or is about to */
export function finishSlot (transition: Transition, slot: Slot, worker: Worker,
  { cause, code }: { cause: string, code: number | null })
{
  cancelRetry(transition, slot)
  const { policy } = transition.state.options.restart
  slot.finished = { at: transition.isoTime(), worker: worker.id, release: worker.release, cause, code,
    succeeded: cause === 'finished' && code === 0 }
  transition.emitForWorker('slot.finished', worker, { cause, code, detail: slot.finished,
    message: `slot ${slot.number} is finished: worker ${worker.id} ${
      howEnded(cause, code)
    } (option restart.policy: ${policy}); a restart or a deploy starts it again` })
}

function howEnded (cause: string, code: number | null) {
  if (cause === 'finished') return `exited with code ${code}`
  return `ended by ${cause}${code === null ? '' : ` with code ${code}`}`
}
