import { callOff, promoteRecycled, recyclingFailed } from './recycling.ts'
import { candidateFinished, candidateLost, servingLost } from './rollout/rollout.ts'
import { listStandbys } from './promotion.ts'
import { endsSlot, finishSlot } from './slot.ts'
import { loseStandby } from './standby.ts'
import { forkServing, replaceWorker } from './worker.ts'
import type { Transition } from './transition.ts'
import type { Slot, Worker } from './state.ts'

/** What a worker is to its slot. */
type Role = 'serving' | 'candidate' | 'standby' | null

/** @returns its role in its slot, or that it is on standby */
export function roleOf (transition: Transition, worker: Worker): Role {
  if (worker.slot === null) return listStandbys(transition.state).includes(worker) ? 'standby' : null
  const slot = transition.slot(worker.slot)
  if (slot?.serving === worker.id) return 'serving'
  return slot?.candidate === worker.id ? 'candidate' : null
}

/** `worker`: serves no longer, or will not; `role`: that it had */
export function onWorkerLost (transition: Transition, worker: Worker, role: Role,
  { cause, reason, code = null }: { cause: string, reason: string, code?: number | null })
{
  if (role === 'standby') return loseStandby(transition, worker, cause)
  const slot = transition.slot(worker.slot)
  if (!slot || role === null || transition.state.phase === 'stopping') return
  if (role === 'candidate') return loseCandidate(transition, worker, slot, { cause, reason, code })
  servingLost(transition, worker, cause, reason)
  if (endsSlot(transition, cause)) {
    if (transition.state.recycling?.slot === slot.number)
      callOff(transition, { cause: transition.state.recycling.cause, actor: 'system' })
    return finishSlot(transition, slot, worker, { cause, code })
  }
  if (promoteRecycled(transition, slot, worker, cause)) return
  if (cause === 'operator') forkServing(transition, slot)
  else replaceWorker(transition, slot, worker, cause)
}

function loseCandidate (transition: Transition, worker: Worker, slot: Slot,
  { cause, reason, code }: { cause: string, reason: string, code: number | null })
{
  if (transition.state.recycling) return recyclingFailed(transition, reason)
  if (cause !== 'finished') return candidateLost(transition, worker, cause, reason)
  finishSlot(transition, slot, worker, { cause, code })
  candidateFinished(transition, worker)
}
