/** A clock that is set, and a machine that sleeps, are noticed within this time. */
const MAX_WAIT_MS = 60_000

/**
 * Restarts all workers at the times of an expression. One that is not possible then is left out.
 * @param {object} parts
 * @param {() => string} parts.expression  as it holds now; empty: none
 * @param {(expression: string, after: Date) => Date | null} parts.nextRun
 * @param {() => void} parts.restart  throws where it is not possible
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {() => number} [parts.now]  wall clock, ms
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 */
export function createCronRestarts ({ expression, nextRun, restart, events, now = Date.now, timers = globalThis }) {
  /** @type {Date | null} */
  let next = null
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  planNext()

  return {
    /** @returns {string | null} ISO 8601; null: there is none */
    nextAt: () => next?.toISOString() ?? null,

    /** The expression may be another one now. */
    plan: planNext,

    close () { timers.clearTimeout(timer) }
  }

  function planNext () {
    next = expression() === '' ? null : nextRun(expression(), new Date(now()))
    waitForNext()
  }

  function waitForNext () {
    timers.clearTimeout(timer)
    if (next) timer = timers.setTimeout(restartIfDue, Math.min(MAX_WAIT_MS, Math.max(0, next.getTime() - now())))
    timer?.unref?.()
  }

  function restartIfDue () {
    // A timer may fire a moment early, and the time would be planned once more.
    if (!next || now() < next.getTime()) return waitForNext()
    tryRestart()
    planNext()
  }

  function tryRestart () {
    try {
      restart()
    } catch (/** @type {any} */ error) {
      events.publish({ type: 'restart.skipped', actor: 'cron', message: `the restart by restart.cron is skipped: ${error.message}` })
    }
  }
}
