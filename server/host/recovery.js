import { toError } from '../errors.js'

/** @typedef {ReturnType<typeof createRecovery>} Recovery */
/** @typedef {import('../keeper/app-links.js').Fault} Fault */

/** Where something is thrown in an app's part of this host, that part is made anew after this time, then after twice that, and so on. */
export const FIRST_PAUSE_MS = 100
export const MAX_PAUSE_MS = 30_000
/** After this time without a fault the next one is the first again. */
export const FORGOTTEN_AFTER_MS = 60_000

/**
 * From a fault in an app's part of this host until that part is made anew: by what it has ended, and when the next one is due.
 * @param {{ now?: () => number, timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> }} [options]  `now`: monotonic, ms
 */
export function createRecovery ({ now = () => performance.now(), timers = globalThis } = {}) {
  /** @type {Fault | null} */
  let fault = null
  /** @type {NodeJS.Timeout | null} until the next part is due */
  let pause = null
  let pauseMs = FIRST_PAUSE_MS
  let recoveredAt = -Infinity

  return {
    /** By which the part has ended that is to be made anew. */
    get fault () { return fault },

    /** Whether the next part is yet to come. */
    get isPausing () { return pause !== null },

    /** @param {unknown} error @returns {Fault} */
    begin (error) {
      const { message, stack = null } = toError(error)
      if (now() - recoveredAt > FORGOTTEN_AFTER_MS) pauseMs = FIRST_PAUSE_MS
      fault = { message, stack }
      return fault
    },

    /** @param {() => void} work  makes the next part */
    later (work) {
      this.hurry()
      pause = timers.setTimeout(() => {
        pause = null
        work()
      }, pauseMs)
      pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)
    },

    /** Whoever calls this makes the next part now, or none. */
    hurry () {
      if (pause) timers.clearTimeout(pause)
      pause = null
    },

    /** The part is there. */
    end () {
      fault = null
      recoveredAt = now()
    }
  }
}
