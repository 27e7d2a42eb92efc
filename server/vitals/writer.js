/** @typedef {import('./rollup.js').StoredStep} StoredStep */

// An hour of them; after that the oldest are lost.
const MAX_WAITING = 420
const WRITES_PER_TURN = 60
// A lock that somebody holds for a moment is no news.
const FAILURES_UNTIL_TOLD = 3

/**
 * Writes steps to the database. What cannot be written waits, in bounded memory, for the next step to come along.
 * @param {object} parts
 * @param {(steps: StoredStep[]) => void} parts.store  all of them or, by throwing, none
 * @param {(error: unknown) => void} parts.onFailure  called once for each time it is out of order
 */
export function createWriter ({ store, onFailure }) {
  /** @type {StoredStep[]} */
  let waiting = []
  let failures = 0

  return {
    /** @param {StoredStep} step */
    add (step) {
      waiting.push(step)
      if (waiting.length > MAX_WAITING) waiting.shift()
      writeRows()
    },

    get waiting () { return waiting.length }
  }

  function writeRows () {
    try {
      store(waiting.slice(0, WRITES_PER_TURN))
      waiting = waiting.slice(WRITES_PER_TURN)
      failures = 0
    } catch (error) {
      if (++failures === FAILURES_UNTIL_TOLD) onFailure(error)
    }
  }
}
