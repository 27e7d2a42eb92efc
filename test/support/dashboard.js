import { startAdmin, startHostAdmin } from './admin.js'

/**
 * The language of the browser tests: a dashboard over a deck without processes, by the real clock, and somebody who looks at it.
 * @typedef {Awaited<ReturnType<typeof startDashboard>>} Dashboard
 */

const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

/**
 * @param {import('./deck.js').TestOwner} t
 * @param {{ page: (options?: import('./browser.js').PageOptions) => Promise<import('./browser.js').WatchedPage> }} browser
 * @param {Parameters<typeof startAdmin>[1]} [options]
 */
export async function startDashboard (t, browser, options = {}) {
  const people = openPeople(t, browser)
  const dashboard = await startAdmin(t, { now: Date.now, timers: /** @type {any} */ (REAL_TIMERS), ...options })
  return {
    ...dashboard,
    ...people(dashboard),

    /** @param {number} slot @param {any} changes to the worker of that slot; no event tells of it */
    setWorker (slot, changes) {
      const workers = dashboard.deck.snapshot().workers.map((/** @type {any} */ worker) => worker.slot === slot ? { ...worker, ...changes } : worker)
      dashboard.deck.set({ workers, readyWorkers: workers.filter((/** @type {any} */ { state }) => state === 'ready').length })
    },

    /** Ends the rollout that runs, as the reducer does. @param {'succeeded' | 'failed'} state @param {string | null} [reason] */
    finishRollout (state, reason = null) {
      const { rollout } = /** @type {any} */ (dashboard.deck.snapshot())
      const detail = { ...rollout, state, reason, done: true, finishedAt: new Date().toISOString() }
      dashboard.deck.set({ rollout: null })
      dashboard.deck.events.publish({ type: `rollout.${state}`, rollout: rollout.id, actor: rollout.actor, message: reason, detail })
    }
  }
}

/**
 * The same of a host.
 * @param {import('./deck.js').TestOwner} t
 * @param {Parameters<typeof startDashboard>[1]} browser
 * @param {Parameters<typeof startHostAdmin>[1]} [options]
 */
export async function startHostDashboard (t, browser, options = {}) {
  const people = openPeople(t, browser)
  const host = await startHostAdmin(t, { now: Date.now, timers: /** @type {any} */ (REAL_TIMERS), ...options })
  return { ...host, ...people(host) }
}

/** @param {import('./deck.js').TestOwner} t @param {Parameters<typeof startDashboard>[1]} browser */
function openPeople (t, browser) {
  /** @type {Set<import('playwright-core').BrowserContext>} */
  const contexts = new Set()
  // Before the admin port closes, which would wait for their connections.
  t.after(() => Promise.all(Array.from(contexts, (context) => context.close())))

  return (/** @type {{ url: string, admin: { signInLink: () => string } }} */ { url, admin }) => {
    return {
      /** Nobody has signed in there yet. @param {import('./browser.js').PageOptions} [options] */
      openPage,

      openSignedIn,

      /**
       * Signs in, goes to the page and waits until it is live: what is shown later came by itself.
       * @param {string} [path] @param {import('./browser.js').PageOptions} [options]
       */
      async visit (path = '/', options) {
        const page = await openSignedIn(options)
        await page.goto(url + path)
        await page.locator('html[data-live=on]').waitFor()
        return page
      }
    }

    /** Signs in by a link, without drawing the overview that it leads to. @param {import('./browser.js').PageOptions} [options] */
    async function openSignedIn (options) {
      const page = await openPage(options)
      await page.context().request.get(admin.signInLink(), { maxRedirects: 0 })
      return page
    }
  }

  async function openPage (/** @type {import('./browser.js').PageOptions} */ options = {}) {
    const page = await browser.page(options)
    contexts.add(page.context())
    return page
  }
}

/**
 * A mark that a reload wipes out.
 * @param {import('playwright-core').Page} page
 */
export async function markPage (page) {
  await page.evaluate(() => { /** @type {any} */ (window).wasNeverReloaded = true })
  return () => page.evaluate(() => /** @type {any} */ (window).wasNeverReloaded === true)
}
