import { tidySoon } from '../system/heap.ts'
import type { Timers } from './site.ts'
import type { Log } from '../system/log.ts'
import type { Sites } from './sites.ts'
import type { dropSite, loadSite } from './site-code.ts'

/** People come back to a page that they have looked at. */
const KEPT_MS = 60 * 60_000

export type KeptSite = ReturnType<typeof createKeptSite>

/**
 * What is behind the admin port, which takes a third of the memory of a master: it comes with the first request, and
 * goes an hour after the last one.
 * @param parts `make`: of what was loaded
 */
export function createKeptSite (
  { load, drop, make, keptMs = KEPT_MS, timers, log }: { load: typeof loadSite, drop: typeof dropSite,
    make: (code: Awaited<ReturnType<typeof loadSite>>) => Sites, keptMs?: number, timers: Timers, log: Log }
) {
  let coming: Promise<Sites | null> | null = null
  let sites: Sites | null = null
  /** requests, calls and live pages */
  let open = 0
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  return {
    /** null: it is not loaded */
    get present () {
      return sites
    },

    /** @returns null: it could not be loaded, or the port closes */
    come (): Promise<Sites | null> {
      coming ??= isClosed ? Promise.resolve(null) : begin()
      return coming
    },

    /** Somebody asks. Returns what says that this has ended. */
    enter (): () => void {
      open++
      timers.clearTimeout(timer)
      return () => {
        open--
        if (open === 0 && !isClosed && keptMs < Infinity) timer = startTimer()
      }
    },

    /** Ends streams and live pages. */
    async close () {
      isClosed = true
      timers.clearTimeout(timer)
      await coming
      sites?.close()
    }
  }

  function startTimer () {
    const started = timers.setTimeout(leave, keptMs)
    started.unref?.()
    return started
  }

  async function begin () {
    try {
      sites = make(await load())
    } catch (error) {
      // The workers run without it, and the next request tries again.
      coming = null
      log.error({ err: error }, 'the admin page could not be loaded')
    }
    tidySoon()
    return sites
  }

  function leave () {
    if (!sites || open > 0) return
    sites.close()
    sites = coming = null
    drop()
    tidySoon()
  }
}
