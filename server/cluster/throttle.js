/**
 * Runs one action at a time, each at least `everyMs` after the start of the one before, so that a storm of events starts
 * no storm of processes. Of the events in between only the last one is kept.
 * @template T
 * @param {object} parts
 * @param {number} parts.everyMs
 * @param {(occasion: T, missed: number) => Promise<unknown>} parts.act  never rejects; `missed`: how many came before it and were let go
 * @param {() => number} [parts.now]  monotonic, ms
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 */
export function createThrottle ({ everyMs, act, now = () => performance.now(), timers = globalThis }) {
  /** @type {{ occasion: T, missed: number } | null} */
  let waiting = null
  let isBusy = false
  let nextAt = -Infinity
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    /** @param {T} occasion */
    offer (occasion) {
      waiting = { occasion, missed: waiting ? waiting.missed + 1 : 0 }
      goOn()
    },

    /** Starts no more actions. */
    stop () {
      nextAt = Infinity
      waiting = null
      timers.clearTimeout(timer)
    }
  }

  async function goOn () {
    if (isBusy || !waiting) return
    timers.clearTimeout(timer)
    const leftMs = nextAt - now()
    if (leftMs > 0) return waitFor(leftMs)
    const { occasion, missed } = waiting
    waiting = null
    isBusy = true
    nextAt = now() + everyMs
    await act(occasion, missed)
    isBusy = false
    goOn()
  }

  /** @param {number} ms */
  function waitFor (ms) {
    if (ms === Infinity) return
    timer = timers.setTimeout(goOn, ms)
    timer.unref?.()
  }
}
