import { toError } from '../errors.ts'
import type { Fault } from '../keeper/app-links.ts'

/** The next try comes after the first pause, then after twice that, and so on. */
type Pauses = { firstMs: number, maxMs: number }
/** Of an app's part of this host in which something was thrown. */
export const OF_PART: Pauses = Object.freeze({ firstMs: 100, maxMs: 30_000 })
/** Of an app that could not be started. */
export const OF_START: Pauses = Object.freeze({ firstMs: 1000, maxMs: 300_000 })
/** After this time without a fault the next one is the first again. */
export const FORGOTTEN_AFTER_MS = 60_000

/**
 * Knows what has been thrown in an app's part of this host until that part is made anew, and says when that is due.
 * `now`: monotonic, ms.
 */
export function createRecovery ({ firstMs, maxMs }: Pauses,
  { now = () => performance.now(), timers = globalThis }: { now?: () => number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> } = {})
{
  let fault: Fault | null = null
  /** until the next part is due */
  let pause: NodeJS.Timeout | null = null
  let dueMs = 0
  let pauseMs = firstMs
  /** null: it has not recovered since the last fault */
  let recoveredAt: number | null = null

  return {
    /** What has ended the part that is to be made anew; null: none is. */
    get fault () {
      return fault
    },

    /** Whether the next part is to be made after a pause that is not over. */
    get isPausing () {
      return pause !== null
    },

    /** When the next try is due, wall clock, as ISO 8601; null: none is. */
    get dueAt () {
      return pause === null ? null : new Date(Date.now() + dueMs - now()).toISOString()
    },

    begin (error: unknown): Fault {
      const { message, stack = null } = toError(error)
      if (recoveredAt !== null && now() - recoveredAt > FORGOTTEN_AFTER_MS) pauseMs = firstMs
      recoveredAt = null
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
      dueMs = now() + pauseMs
      pauseMs = Math.min(maxMs, pauseMs * 2)
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
