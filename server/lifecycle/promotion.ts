import { blankRecord } from './restart-policy.ts'
import type { Transition } from './transition.ts'
import type { PoolState, Slot, Worker } from './state.ts'
import type { Standby } from './standby.ts'

export function createStandby (): Standby {
  return { retryAt: null, record: blankRecord(), useless: null }
}

/** @returns standby workers that are loaded, or still load, oldest first */
export function listStandbys ({ workers }: Pick<PoolState, 'workers'>): Worker[] {
  return Object.values(workers).filter(({ slot, state }) =>
    slot === null && (state === 'starting' || state === 'standby')
  )
}

/**
 * Gives a slot to a standby worker: it has loaded the app already and continues with listening.
 * @returns the worker's id; null: none has loaded the slot's release
 */
export function takeStandby (transition: Transition, slot: Slot): number | null {
  const { state } = transition
  const worker = listStandbys(state).find((each) =>
    each.state === 'standby' && each.release === slot.release && !isOutdated(transition, each)
  )
  if (!worker) return null
  worker.slot = slot.number
  worker.state = 'starting'
  worker.hasStoodBy = true
  worker.forkedAt = transition.at
  worker.readyTimeoutMs = state.options.ready.timeoutMs
  delete worker.starvedMs
  transition.command({ type: 'promote', worker: worker.id, slot: slot.number })
  transition.command({ type: 'set-deadline', deadline: 'ready', id: worker.id, ms: worker.readyTimeoutMs })
  transition.emitForWorker('worker.promoted', worker, {
    message: `standby worker ${worker.id} took over slot ${slot.number}`
  })
  return worker.id
}

/** A rollout to the same release, such as a restart, loads what is on disk by then. */
function isOutdated ({ state: { rollout } }: Transition, { release }: Worker) {
  return rollout?.to === release
}
