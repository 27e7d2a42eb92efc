import { errorText } from '../errors.js'

/** A changed clock or a machine that slept is noticed within this time. */
const MAX_WAIT_MS = 60_000

/**
 * Restarts all workers at the times of a cron expression. A restart that is not possible then is skipped.
 * @param {object} parts
 * @param {() => string} parts.expression  the current one; empty: none
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

    /** The expression may have changed. */
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
    // A timer may fire a moment early; the same time would then be planned again.
    if (!next || now() < next.getTime()) return waitForNext()
    tryRestart()
    planNext()
  }

  function tryRestart () {
    try {
      restart()
    } catch (error) {
      events.publish({ type: 'restart.skipped', actor: 'cron', message: `the restart by restart.cron is skipped: ${errorText(error)}` })
    }
  }
}
