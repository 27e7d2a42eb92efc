import { errorText } from '../errors.ts'
import { createTimetable } from '../system/timetable.ts'
import type { EventStream } from '../events/stream.ts'

/** The one thing that the timetable has. */
const RESTART = 'restart'

/** Restarts all workers at the times of a cron expression. A restart that is not possible then is skipped. */
export function createCronRestarts ({ expression, nextRun, restart, events, now, timers }: {
  /** the current one; empty: none */
  expression: () => string,
  nextRun: (expression: string, after: Date) => Date | null,
  /** throws where it is not possible */
  restart: () => void,
  events: Pick<EventStream, 'publish'>,
  /** wall clock, ms */
  now?: () => number,
  timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
}) {
  const timetable = createTimetable({ nextRun, onDue: tryRestart, onSetBack: tellSetBack, now, timers })
  plan()

  return {
    /** @returns ISO 8601; null: there is none */
    nextAt: (): string | null => timetable.nextAt(RESTART),

    /** The expression may have changed. */
    plan,

    close: timetable.close
  }

  function plan () {
    timetable.plan({ [RESTART]: { cron: expression() || undefined } })
  }

  function tellSetBack (_names: string[], backMs: number) {
    events.publish({ type: 'clock.set-back', actor: 'system', message: 'the restart by restart.cron',
      detail: { backMs } })
  }

  function tryRestart () {
    try {
      restart()
    } catch (error) {
      events.publish({ type: 'restart.skipped', actor: 'cron',
        message: `the restart by restart.cron is skipped: ${errorText(error)}` })
    }
  }
}
