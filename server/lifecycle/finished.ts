import { isEmpty } from './vacancy.ts'
import { cancelRetry } from './worker.ts'
import type { Transition } from './transition.ts'
import type { Slot, Worker } from './state.ts'

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

/** Tells whether its program has ended and no worker is to follow */
export function isFinished (slot: Slot): boolean {
  return isEmpty(slot) && slot.finished !== null
}
