import { isClaimed, isFinished, isVacant } from './slot.ts'
import { drainWorker } from './worker.ts'
import type { Transition } from './transition.ts'
import type { Worker } from './state.ts'

/** A stack has to be captured within this time: the worker serves nobody meanwhile, and its replacement has started. */
export const CAPTURE_MS = 5000

/**
 * A worker whose event loop does not answer serves nobody. It loses its slot and its replacement starts at once; it is
 * killed once the stack in which it hangs is on record. `worker`: was ready.
 */
export function becomeUnresponsive (transition: Transition, worker: Worker, message: string) {
  worker.state = 'unresponsive'
  worker.intent = { cause: 'hung', actor: 'system', rollout: transition.state.rollout?.id ?? null }
  transition.emitForWorker('worker.unresponsive', worker, { cause: 'hung', actor: 'system', message })
  for (const deadline of ['steady', 'age'] as const)
    transition.command({ type: 'clear-deadline', deadline, id: worker.id })
  transition.command({ type: 'capture-stack', worker: worker.id })
  transition.command({ type: 'set-deadline', deadline: 'stack', id: worker.id, ms: CAPTURE_MS })
}

/** `worker`: its stack is captured, or cannot be */
export function killStuck (transition: Transition, worker: Worker) {
  if (worker.state !== 'unresponsive') return
  worker.state = 'stopping'
  transition.command({ type: 'clear-deadline', deadline: 'stack', id: worker.id })
  transition.command({ type: 'kill', worker: worker.id })
}

/** `worker`: has no slot, and does not answer */
export function killHung (transition: Transition, worker: Worker, message: string) {
  worker.state = 'stopping'
  worker.intent = { cause: 'hung', actor: 'system', rollout: null }
  transition.emitForWorker('worker.unresponsive', worker, { cause: 'hung', actor: 'system', message })
  transition.command({ type: 'kill', worker: worker.id })
}

/**
 * A worker that answers again before it was killed serves on. Its slot was given away, so it drains once its
 * replacement is ready.
 */
export function becomeResponsive (transition: Transition, worker: Worker) {
  if (worker.state !== 'unresponsive') return
  const { intent } = worker
  worker.state = 'ready'
  worker.intent = null
  transition.command({ type: 'clear-deadline', deadline: 'stack', id: worker.id })
  const isStopping = transition.state.phase === 'stopping'
  const isBack = !isStopping && takeSlotBack(transition, worker)
  const next = isStopping
    ? 'it stops with the others'
    : isBack
    ? 'it keeps its slot'
    : 'it drains once its replacement is ready'
  transition.emitForWorker('worker.responsive', worker, {
    message: `worker ${worker.id} (slot ${worker.slot}) answers again; ${next}`
  })
  // It did not get the stop while it hung.
  if (isStopping && intent) drainWorker(transition, worker, intent)
}

/**
 * With rollout.order stop-first its replacement has not started yet, and after a last worker none would. Returns
 * whether it has its slot again.
 */
function takeSlotBack (transition: Transition, worker: Worker): boolean {
  const slot = transition.slot(worker.slot)
  if (!slot || slot.release !== worker.release || isClaimed(transition.state, slot) ||
    !(isVacant(slot) || isFinished(slot))) return false
  slot.serving = worker.id
  slot.finished = null
  return true
}

/** Drains workers that hung, answered again and are replaced by now. */
export function drainReplaced (transition: Transition) {
  for (const worker of Object.values(transition.state.workers)) {
    if (!isReplaced(transition, worker)) continue
    const serving = transition.state.workers[transition.slot(worker.slot)?.serving ?? 0]
    if (transition.slot(worker.slot) && serving?.state !== 'ready') continue
    drainWorker(transition, worker, { cause: 'hung', actor: 'system', rollout: null,
      message: 'it was unresponsive; its replacement is ready' })
  }
}

/** Tells whether it serves without a slot of this master's */
function isReplaced (transition: Transition, { id, slot, state, orphan }: Worker): boolean {
  const own = transition.slot(slot)
  return state === 'ready' && !orphan && own?.serving !== id && own?.candidate !== id
}
