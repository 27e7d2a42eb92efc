/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Slot} Slot */
/** @typedef {import('./state.js').Drift} Drift */

/** How often a slot that is blocked looks whether its files are back. */
const LOOK_AGAIN_MS = 2000

/**
 * What happens where the files of a release have changed under its workers, so that a new worker would run other code
 * than the old one under the same name: it is marked, or, if so configured, not started.
 * @param {Turn} turn @param {string} release @returns {boolean} whether nothing is to be started on it
 */
export function isBlocked (turn, release) {
  return turn.state.options.releases?.onDrift === 'hold' && release in turn.drift
}

/** @param {Turn} turn @param {string} release one that is blocked */
export function whyBlocked (turn, release) {
  return `files of ${release} changed after its deploy (option releases.onDrift: hold): ${namesOf(turn.drift[release])}`
}

/** @param {Turn} turn @param {Slot} slot waits, until its files are what they were or another release is deployed to it */
export function block (turn, slot) {
  const isNews = slot.blocked === null
  const ms = Math.min(LOOK_AGAIN_MS, turn.state.options.restart.maxDelayMs)
  slot.blocked = turn.drift[slot.release]
  slot.retryAt = turn.isoTime(ms)
  turn.order({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms })
  if (!isNews) return
  turn.tell('slot.held', {
    slot: slot.number,
    release: slot.release,
    actor: 'system',
    message: `slot ${slot.number} is blocked: ${whyBlocked(turn, slot.release)}; deploy, or restore them`,
    detail: slot.blocked
  })
}

/** @param {Turn} turn @param {Slot} slot is given a worker now */
export function unblock (turn, slot) {
  if (slot.blocked === null) return
  slot.blocked = null
  turn.tell('slot.resumed', { slot: slot.number, release: slot.release, actor: 'system', message: `slot ${slot.number} is unblocked: the files of ${slot.release} are restored` })
}

/** @param {Turn} turn @param {import('./state.js').Worker} worker that has just been forked */
export function tellDrift (turn, worker) {
  if (!worker.isDrifted) return
  const drift = turn.drift[worker.release]
  turn.tellOf('worker.drifted', worker, {
    actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) runs ${worker.release} with files that changed after its deploy: ${namesOf(drift)}`,
    detail: drift
  })
}

/**
 * @param {import('./state.js').PoolState} state @param {import('./state.js').Input} input an operator's
 * @returns {import('./state.js').Refusal | null} of what would start workers on a release that has drifted
 */
export function driftRefusal (state, { drift = {}, ...input }) {
  const isMeant = input.type === 'restart-worker' || input.type === 'upgrade' || (input.type === 'rollout' && input.kind === 'restart')
  if (!isMeant || state.options.releases?.onDrift !== 'hold') return null
  const drifted = [...new Set(state.slots.map((slot) => slot.release))].find((id) => id in drift)
  if (!drifted) return null
  return {
    code: 'drifted',
    message: `files of ${drifted} changed after its deploy (option releases.onDrift: hold): ${namesOf(drift[drifted])}; deploy, or restore them`,
    details: { release: drifted, ...drift[drifted] }
  }
}

/** @param {Drift} drift */
export function namesOf ({ count, files }) {
  const more = count - files.length
  return `${files.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
