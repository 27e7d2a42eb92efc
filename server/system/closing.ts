import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * The end of something that tries again and again: it cuts the pause between two tries short, and limits the last ones.
 */
export function createClosing () {
  const limit = new AbortController()
  let hasBegun = false
  let wakeUp = () => {}

  return {
    get hasBegun () {
      return hasBegun
    },

    /** Is aborted when the time for the last tries is over. */
    signal: limit.signal,

    /** Waits between two tries, until the closing begins. */
    pause (ms: number): Promise<void> {
      return new Promise((resolve) => {
        if (hasBegun) return resolve()
        const timer = setTimeout(resolve, ms).unref()
        wakeUp = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },

    /** `working`: the last tries, some of which cannot be aborted; `ms`: how long they may take */
    async end (working: Promise<void> | null, ms: number) {
      hasBegun = true
      wakeUp()
      const timer = setTimeout(() => limit.abort(), ms)
      await Promise.race([working, once(limit.signal, 'abort').then(nextTurn)])
      clearTimeout(timer)
    }
  }
}
