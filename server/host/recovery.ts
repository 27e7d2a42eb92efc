import { toError } from '../errors.ts'
import type { Fault } from '../keeper/app-links.ts'

/**
 * Where something is thrown in an app's part of this host, that part is made anew after this time, then after twice
 * that, and so on.
 */
export const FIRST_PAUSE_MS = 100
export const MAX_PAUSE_MS = 30_000
/** After this time without a fault the next one is the first again. */
export const FORGOTTEN_AFTER_MS = 60_000

/**
 * Knows what has been thrown in an app's part of this host until that part is made anew, and says when that is due.
 * `now`: monotonic, ms.
 */
export function createRecovery (
  { now = () => performance.now(), timers = globalThis }: { now?: () => number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> } = {}
) {
  let fault: Fault | null = null
  /** until the next part is due */
  let pause: NodeJS.Timeout | null = null
  let pauseMs = FIRST_PAUSE_MS
  let recoveredAt = -Infinity

  return {
    /** What has ended the part that is to be made anew; null: none is. */
    get fault () {
      return fault
    },

    /** Whether the next part is to be made after a pause that is not over. */
    get isPausing () {
      return pause !== null
    },

    begin (error: unknown): Fault {
      const { message, stack = null } = toError(error)
      if (now() - recoveredAt > FORGOTTEN_AFTER_MS) pauseMs = FIRST_PAUSE_MS
      fault = { message, stack }
      return fault
    },

    /** `work`: makes the next part */
    later (work: () => void) {
      this.endPause()
      pause = timers.setTimeout(() => {
        pause = null
        work()
      }, pauseMs)
      pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)
    },

    /** Ends the pause without what was to be done after it: whoever calls this makes the next part now, or none. */
    endPause () {
      if (pause) timers.clearTimeout(pause)
      pause = null
    },

    /** The next part is there. */
    end () {
      fault = null
      recoveredAt = now()
    }
  }
}
