import { blankRecord } from './restart-policy.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */

/** @returns {import('./standby.js').Standby} */
export function createStandby () {
  return { retryAt: null, record: blankRecord(), useless: null }
}

/** @param {Pick<import('./state.js').PoolState, 'workers'>} state @returns {Worker[]} standby workers that are loaded, or still load, oldest first */
export function listStandbys ({ workers }) {
  return Object.values(workers).filter(({ slot, state }) => slot === null && (state === 'starting' || state === 'standby'))
}

/**
 * Gives a slot to a standby worker: it has loaded the app already and continues with listening.
 * @param {Transition} transition @param {import('./state.js').Slot} slot
 * @returns {number | null} the worker's id; null: none has loaded the slot's release
 */
export function takeStandby (transition, slot) {
  const { state } = transition
  const worker = listStandbys(state).find((each) => each.state === 'standby' && each.release === slot.release && !isOutdated(transition, each))
  if (!worker) return null
  worker.slot = slot.number
  worker.state = 'starting'
  worker.hasStoodBy = true
  worker.forkedAt = transition.at
  worker.readyTimeoutMs = state.options.ready.timeoutMs
  delete worker.starvedMs
  transition.command({ type: 'promote', worker: worker.id, slot: slot.number })
  transition.command({ type: 'set-deadline', deadline: 'ready', id: worker.id, ms: worker.readyTimeoutMs })
  transition.emitForWorker('worker.promoted', worker, { message: `standby worker ${worker.id} took over slot ${slot.number}` })
  return worker.id
}

/** A rollout to the same release, such as a restart, loads what is on disk by then. @param {Transition} transition @param {Worker} worker */
function isOutdated ({ state: { rollout } }, { release }) {
  return rollout?.to === release
}
