import type { StoredStep } from './rollup.ts'

// After an hour without the database the oldest steps are lost.
const MAX_WAITING = 420
const WRITES_PER_TURN = 60
// A short lock of the database is no news.
const FAILURES_UNTIL_TOLD = 3

/** Writes steps to the database. Steps that it cannot write wait in memory until the next one comes. */
export function createWriter ({ store, onFailure }: {
  /** writes all of them, or throws */
  store: (steps: StoredStep[]) => void,
  /** called once for each outage */
  onFailure: (error: unknown) => void
}) {
  let waiting: StoredStep[] = []
  let failures = 0

  return { add (step: StoredStep) {
    waiting.push(step)
    if (waiting.length > MAX_WAITING) waiting.shift()
    writeRows()
  }, get waiting () {
    return waiting.length
  } }

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
