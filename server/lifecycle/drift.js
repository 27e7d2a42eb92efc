/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Slot} Slot */
/** @typedef {import('./state.js').Drift} Drift */

/** How often a held slot checks whether its files are restored. */
const LOOK_AGAIN_MS = 2000

/**
 * What happens where the files of a release have changed under its workers, so that a new worker would run other code
 * than the old one under the same name: it is marked, or, if so configured, not started.
 * @param {Transition} transition @param {string} release @returns {boolean} whether nothing is to be started on it
 */
export function isBlocked (transition, release) {
  return transition.state.options.releases?.onDrift === 'hold' && release in transition.drift
}

/** @param {Transition} transition @param {string} release is blocked */
export function whyBlocked (transition, release) {
  return `${changeText(release, transition.drift[release])} (option releases.onDrift: hold)`
}

/**
 * @param {Transition} transition @param {string} release
 * @returns {string | null} why a rollback to it would start other code than it has served with, whatever `releases.onDrift` says
 */
export function whyNoReturn (transition, release) {
  return release in transition.drift ? `${release} cannot come back: ${changeText(release, transition.drift[release])}` : null
}

/** @param {Transition} transition @param {Slot} slot waits until its files are restored, or another release is deployed to it */
export function holdSlot (transition, slot) {
  const isNews = slot.blocked === null
  const ms = Math.min(LOOK_AGAIN_MS, transition.state.options.restart.maxDelayMs)
  slot.blocked = transition.drift[slot.release]
  slot.retryAt = transition.isoTime(ms)
  transition.command({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms })
  if (!isNews) return
  transition.emit('slot.held', {
    slot: slot.number,
    release: slot.release,
    actor: 'system',
    message: `slot ${slot.number} is held: ${whyBlocked(transition, slot.release)}; deploy, or restore them`,
    detail: slot.blocked
  })
}

/** @param {Transition} transition @param {Slot} slot gets a worker now */
export function resumeSlot (transition, slot) {
  if (slot.blocked === null) return
  slot.blocked = null
  transition.emit('slot.resumed', {
    slot: slot.number,
    release: slot.release,
    actor: 'system',
    message: `slot ${slot.number} is no longer held: the files of ${slot.release} are restored`
  })
}

/** @param {Transition} transition @param {import('./state.js').Worker} worker that has just been forked */
export function tellDrift (transition, worker) {
  const { drift } = worker
  if (!drift) return
  transition.emitForWorker('worker.drifted', worker, {
    actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) does not run what ${worker.release} was: ${changeText(worker.release, drift)}`,
    detail: drift
  })
}

/**
 * @param {import('./state.js').PoolState} state @param {import('./state.js').Input} input an operator's
 * @returns {import('./state.js').Refusal | null} because it would start workers on a release that has drifted
 */
export function driftRefusal (state, { drift = {}, ...input }) {
  const isMeant = input.type === 'restart-worker' || input.type === 'upgrade' || (input.type === 'rollout' && input.kind === 'restart')
  if (!isMeant || state.options.releases?.onDrift !== 'hold') return null
  const drifted = [...new Set(state.slots.map((slot) => slot.release))].find((id) => id in drift)
  if (!drifted) return null
  return {
    code: 'drifted',
    message: `${changeText(drifted, drift[drifted])} (option releases.onDrift: hold); deploy, or restore them`,
    details: { release: drifted, ...drift[drifted] }
  }
}

/** @param {string} release @param {Drift} drift */
export function changeText (release, { count, files, by }) {
  if (by !== null) return `${by} was deployed from the same folder later`
  const more = count - files.length
  return `files of ${release} changed after its deploy: ${files.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
