import { errorText } from '../errors.js'
import { createTimetable } from '../system/timetable.js'

/** The one thing that the timetable has. */
const RESTART = 'restart'

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
export function createCronRestarts ({ expression, nextRun, restart, events, now, timers }) {
  const timetable = createTimetable({ nextRun, onDue: tryRestart, onSetBack: tellSetBack, now, timers })
  plan()

  return {
    /** @returns {string | null} ISO 8601; null: there is none */
    nextAt: () => timetable.nextAt(RESTART),

    /** The expression may have changed. */
    plan,

    close: timetable.close
  }

  function plan () {
    timetable.plan({ [RESTART]: { cron: expression() || undefined } })
  }

  /** @param {string[]} _names @param {number} backMs */
  function tellSetBack (_names, backMs) {
    events.publish({ type: 'clock.set-back', actor: 'system', message: 'the restart by restart.cron', detail: { backMs } })
  }

  function tryRestart () {
    try {
      restart()
    } catch (error) {
      events.publish({ type: 'restart.skipped', actor: 'cron', message: `the restart by restart.cron is skipped: ${errorText(error)}` })
    }
  }
}
