/**
 * Runs one action at a time, each at least `everyMs` after the start of the one before, so that a storm of events
 * starts no storm of processes. Of the events in between only the last one is kept.
 */
export function createThrottle<T> ({ everyMs, act, now = () => performance.now(), timers = globalThis }: {
  everyMs: number,
  /** never rejects; `missed`: how many came before it and were let go */
  act: (occasion: T, missed: number) => Promise<unknown>,
  /** monotonic, ms */
  now?: () => number,
  timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
}) {
  let waiting: { occasion: T, missed: number } | null = null
  let isBusy = false
  let nextAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  return {
    offer (occasion: T) {
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

  function waitFor (ms: number) {
    if (ms === Infinity) return
    timer = timers.setTimeout(goOn, ms)
    timer.unref?.()
  }
}
