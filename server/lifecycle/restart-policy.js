/**
 * @typedef {object} RestartPolicy  durations in ms
 * @property {'always' | 'on-failure' | 'never'} [policy]  after which ends a worker is replaced, see finished.js
 * @property {number} minDelayMs  after the second death in a row, counted from the start of the one that has died; the first replacement comes at once
 * @property {number} maxDelayMs
 * @property {number} resetAfterMs  a worker that has run for this long counts as healthy again
 * @property {{ restarts: number, windowMs: number }} intensity  more deaths than this within the window are a crash loop
 */

/**
 * What a slot remembers of its deaths. `exitTimes`: monotonic ms, those within the intensity window.
 * @typedef {{ attempt: number, exitTimes: number[], crashLooping: boolean }} RestartRecord
 */

const JITTER = 0.2

/** @returns {RestartRecord} */
export function blankRecord () {
  return { attempt: 0, exitTimes: [], crashLooping: false }
}

/** @param {{ policy?: RestartPolicy['policy'] }} restart @returns {boolean} whether a program may come to its end */
export function endsByItself ({ policy = 'always' }) {
  return policy !== 'always'
}

/**
 * Counts one death. A slot in a crash loop is never given up: its delays go on doubling to the longest.
 * @param {RestartRecord} record
 * @param {{ at: number, uptimeMs: number, random: number }} exit  `random` in [0, 1)
 * @param {RestartPolicy} policy
 * @returns {{ record: RestartRecord, delayMs: number }}
 */
export function recordExit (record, { at, uptimeMs, random }, policy) {
  const before = uptimeMs >= policy.resetAfterMs ? blankRecord() : record
  const { restarts, windowMs } = policy.intensity
  const exitTimes = [...before.exitTimes.filter((time) => at - time < windowMs), at].slice(-(restarts + 1))
  const crashLooping = before.crashLooping || exitTimes.length > restarts
  return {
    record: { attempt: before.attempt + 1, exitTimes, crashLooping },
    // Who has run for longer than its delay has kept the starts apart already: one slow death after another is no loop that costs much.
    delayMs: Math.max(0, delayOf(before.attempt, random, policy) - Math.round(uptimeMs))
  }
}

/**
 * @param {number} attempt deaths in a row before this one
 * @param {number} random
 * @param {RestartPolicy} policy
 */
function delayOf (attempt, random, { minDelayMs, maxDelayMs }) {
  if (attempt === 0) return 0
  const delay = Math.min(maxDelayMs, minDelayMs * 2 ** (attempt - 1))
  const jitter = 1 + JITTER * (2 * random - 1)
  return Math.round(Math.min(maxDelayMs, delay * jitter))
}
