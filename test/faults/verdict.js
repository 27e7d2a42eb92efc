/**
 * What became of one load in one fault.
 * @typedef {object} Cell
 * @property {number} requests
 * @property {number} failed
 * @property {number} excusable of these: nobody else could have answered them
 * @property {number} hung of these: no answer came at all
 * @property {number} twice requests that were begun more than once, though asked once
 * @property {string[]} evidence of what is not clean
 */
/**
 * What the fault itself has taken away.
 * @typedef {object} Damage
 * @property {Map<number, { at: number, graceMs: number }>} lost when a process was hit, and for how long it answers what it has all the same, by its pid
 * @property {number} [stoppedAt] when the deck was told to stop: from then on a connection may be refused, or reset before
 *   anybody has accepted it, as by plain Node, and a long-lived one ends in the way of its protocol
 */

const EVIDENCE = 5

/** @param {Cell} cell */
export function isClean ({ requests, failed, excusable, hung, twice }) {
  return requests > 0 && failed === excusable && hung === 0 && twice === 0
}

/**
 * @param {import('./clients.js').Tally} tally
 * @param {Pick<import('./ledger.js').Ledger, 'begun'>} ledger
 * @param {Damage} damage
 * @returns {Cell}
 */
export function judge ({ name, requests, failures }, ledger, damage) {
  const unexcused = failures.filter((failure) => failure.isHung || !isExcusable(failure, damage))
  const twice = [...ledger.begun].filter(([id, pids]) => id.startsWith(`${name}-`) && pids.length > 1)
  return {
    requests,
    failed: failures.length,
    excusable: failures.length - unexcused.length,
    hung: failures.filter(({ isHung }) => isHung).length,
    twice: twice.length,
    evidence: [
      ...(requests === 0 ? ['nothing was asked'] : []),
      ...unexcused.slice(0, EVIDENCE).map((failure) => describe(failure, ledger)),
      ...twice.slice(0, EVIDENCE).map(([id, pids]) => `${id}: begun by ${pids.join(' and ')}`)
    ]
  }
}

/**
 * What a process has accepted nobody else can answer.
 * @param {import('./clients.js').Exchange} failure @param {Damage} damage
 */
function isExcusable (failure, { lost, stoppedAt = Infinity }) {
  if (failure.failure === 'ECONNREFUSED') return failure.endedAt >= stoppedAt
  const { owner, isIdle, isToldToLeave } = failure
  if ((owner === undefined || isIdle || isToldToLeave) && failure.endedAt >= stoppedAt) return true
  // Accepted in the very instant, before the app could know of it.
  if (owner === undefined) return [...lost.values()].some(({ at }) => failure.startedAt <= at && at <= failure.endedAt)
  const blow = lost.get(owner)
  return blow !== undefined && failure.endedAt >= blow.at + (isIdle || isToldToLeave ? 0 : blow.graceMs)
}

/** @param {import('./clients.js').Exchange} failure @param {Pick<import('./ledger.js').Ledger, 'begun'>} ledger */
function describe (failure, ledger) {
  const { id, startedAt, endedAt, owner = 'unknown' } = failure
  const began = ledger.begun.has(id) ? 'begun' : 'not begun'
  return `${id}: ${failure.failure} after ${Math.round(endedAt - startedAt)} ms, at ${Math.round(endedAt)}, ${began}, process ${owner}`
}
