/** @typedef {import('./deck-status.js').Status} Status */

/**
 * An app that another one depends on, and that is not ready.
 * @typedef {object} Needed
 * @property {string} name
 * @property {'starting' | 'waiting' | 'ready' | 'failed' | 'stopped' | 'not started' | 'left'} state `left`: it goes on, and nobody follows it
 * @property {string | null} reason
 * @property {Status | null} status when it was last asked
 */

/** @param {Needed} needed @returns {string} why the app that depends on it is not started */
export function whyMissing ({ name, state, reason, status }) {
  const because = reason === null ? '' : ` (${reason})`
  if (state === 'failed') return `it depends on ${name}, which failed${because}`
  if (state === 'stopped') return `it depends on ${name}, which was stopped${because}`
  if (state === 'not started' || state === 'waiting') return `it depends on ${name}, which was not started`
  return `it depends on ${name}, which is not ready (${whyNotReady(status)})`
}

/** @param {Status | null} status of an app that starts @param {string} [otherwise] where the status says nothing @returns {string} */
export function whyNotReady (status, otherwise = 'its workers are not started yet') {
  return status?.health ? `${status.health.text}. ${status.health.hint}`.replace(/[.\s]+$/, '') : otherwise
}
