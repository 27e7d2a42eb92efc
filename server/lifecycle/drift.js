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
  return transition.state.options.releases?.onDrift === 'hold' && isOtherCode(transition.drift, release)
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
  return isOtherCode(transition.drift, release) ? `${release} cannot come back: ${changeText(release, transition.drift[release])}` : null
}

/**
 * @param {Transition} transition @param {string} release
 * @returns {string | null} why a rollback to it may not bring back all that it was, though its code comes back
 */
export function returnCaveat (transition, release) {
  const drift = transition.drift[release]
  return drift && drift.kind !== 'code' ? caveatText(release, drift) : null
}

/** @param {string} release @param {Drift} drift of files that are not its code */
export function caveatText (release, drift) {
  return `${release} may not be what it was: ${changeText(release, drift)}`
}

/** @param {Transition} transition @param {string} release @returns {Drift | null} what is known to be other than at its deploy, for a worker that is forked on it now */
export function knownDrift ({ drift }, release) {
  return drift[release] && drift[release].kind !== 'unknown' ? drift[release] : null
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
    message: `worker ${worker.id} (slot ${worker.slot}) ${drift.kind === 'code' ? 'does' : 'may'} not run what ${worker.release} was: ${changeText(worker.release, drift)}`,
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
  const drifted = [...new Set(state.slots.map((slot) => slot.release))].find((id) => isOtherCode(drift, id))
  if (!drifted) return null
  return {
    code: 'drifted',
    message: `${changeText(drifted, drift[drifted])} (option releases.onDrift: hold); deploy, or restore them`,
    details: { release: drifted, ...drift[drifted] }
  }
}

/** @param {string} release @param {Drift} drift */
export function changeText (release, { kind, count, files, by }) {
  if (kind === 'unknown') return 'it is not known whether files of its folder have changed since its deploy'
  if (by !== null) return `${by} was deployed from the same folder later`
  const more = count - files.length
  const named = `${files.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  if (kind === 'folder') return `${count} ${count === 1 ? 'file of its folder has' : 'files of its folder have'} changed since its deploy: ${named}`
  return `files of ${release} changed after its deploy: ${named}`
}

/** Nothing is kept from starting by a change of other files, which the app may have written itself, such as a database. @param {Record<string, Drift>} drift @param {string} release */
function isOtherCode (drift, release) {
  return drift[release]?.kind === 'code'
}
