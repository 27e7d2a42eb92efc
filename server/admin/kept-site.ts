import { tidySoon } from '../system/heap.ts'
import type { Timers } from './site.ts'
import type { Log } from '../system/log.ts'
import type { Sites } from './sites.ts'
import type { dropSite, loadSite } from './site-code.ts'

/** People come back to a page that they have looked at. */
const KEPT_MS = 60 * 60_000
/** Of that time, a minute: a script makes several calls, or one call each few minutes for years. */
const PART_FOR_CALLS = 1 / 60

export type KeptSite = ReturnType<typeof createKeptSite>

/**
 * Loads what is behind the admin port with the first request, and drops it an hour after the last one of a browser, and
 * a minute after that of a script or the command line, as it takes a third of the memory of a master.
 * @param parts `make`: makes the sites of what was loaded; `keptMs`: after the last request of a browser; Infinity: for
 * good
 */
export function createKeptSite (
  { load, drop, make, keptMs = KEPT_MS, now, timers, log }: { load: typeof loadSite, drop: typeof dropSite,
    make: (code: Awaited<ReturnType<typeof loadSite>>) => Sites, keptMs?: number, now: () => number, timers: Timers,
    log: Log }
) {
  let loading: Promise<Sites | null> | null = null
  let sites: Sites | null = null
  /** how many requests, calls and live pages there are */
  let open = 0
  let timer: NodeJS.Timeout | undefined
  /** ms since the epoch */
  let keptUntil = -Infinity
  let isClosed = false

  return {
    /** null: it is not loaded */
    get present () {
      return sites
    },

    /** @returns null: it could not be loaded, or the port closes */
    untilLoaded (): Promise<Sites | null> {
      loading ??= isClosed ? Promise.resolve(null) : begin()
      return loading
    },

    /** A request, a call or a live page has begun. Returns what tells of its end. */
    enter ({ isOfBrowser }: { isOfBrowser: boolean }): () => void {
      open++
      timers.clearTimeout(timer)
      return () => {
        open--
        keptUntil = Math.max(keptUntil, now() + keptMs * (isOfBrowser ? 1 : PART_FOR_CALLS))
        if (open === 0 && !isClosed && keptUntil < Infinity) timer = startTimer()
      }
    },

    /** Ends streams and live pages. */
    async close () {
      isClosed = true
      timers.clearTimeout(timer)
      await loading
      sites?.close()
    }
  }

  function startTimer () {
    const started = timers.setTimeout(leave, keptUntil - now())
    started.unref?.()
    return started
  }

  async function begin () {
    try {
      sites = make(await load())
    } catch (error) {
      // The workers run without it, and the next request tries again.
      loading = null
      log.error({ err: error }, 'the admin page could not be loaded')
    }
    tidySoon()
    return sites
  }

  function leave () {
    if (!sites || open > 0) return
    sites.close()
    sites = loading = null
    drop()
    tidySoon()
  }
}
