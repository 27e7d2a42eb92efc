/** @typedef {import('./state.js').PoolState} PoolState */
/** @typedef {import('./state.js').Slot} Slot */

/** @param {PoolState} state @returns {boolean} whether no two workers of a slot may live side by side */
export function stopsFirst ({ options, rollout }) {
  return options.rollout?.order === 'stop-first' || rollout?.strategy.order === 'stop-first'
}

/** @param {PoolState} state @param {number} slot @returns {boolean} whether any process of it still lives */
export function isOccupied ({ workers }, slot) {
  return Object.values(workers).some((worker) => worker.slot === slot)
}

/** @param {Slot} slot @returns {boolean} whether it has no worker and waits for no retry */
export function isEmpty ({ serving, candidate, retryAt }) {
  return serving === null && candidate === null && retryAt === null
}

/** @param {Slot} slot @returns {boolean} whether it is empty and needs a worker */
export function isVacant (slot) {
  return isEmpty(slot) && slot.finished === null
}

/** @param {PoolState} state @param {Slot} slot @returns {boolean} whether the rollout starts its next worker */
export function isClaimed ({ rollout }, { number }) {
  return rollout !== null && rollout.steps.some(({ slot, state }) => slot === number && (state === 'stopping' || state === 'reverting'))
}
