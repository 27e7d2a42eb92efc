import type { PoolState, Slot } from './state.ts'

/** Tells whether no two workers of a slot may live side by side */
export function stopsFirst ({ options, rollout }: PoolState): boolean {
  return options.rollout?.order === 'stop-first' || rollout?.strategy.order === 'stop-first'
}

/** Tells whether any process of it still lives */
export function isOccupied ({ workers }: PoolState, slot: number): boolean {
  return Object.values(workers).some((worker) => worker.slot === slot)
}

/** Tells whether it has no worker and waits for no retry */
export function isEmpty ({ serving, candidate, retryAt }: Slot): boolean {
  return serving === null && candidate === null && retryAt === null
}

/** Tells whether it is empty and needs a worker */
export function isVacant (slot: Slot): boolean {
  return isEmpty(slot) && slot.finished === null
}

/** Tells whether the rollout starts its next worker */
export function isClaimed ({ rollout }: PoolState, { number }: Slot): boolean {
  return rollout !== null &&
    rollout.steps.some(({ slot, state }) => slot === number && (state === 'stopping' || state === 'reverting'))
}
