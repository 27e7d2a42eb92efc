import { startAdmin } from './admin.js'

/**
 * The language of the browser tests: a dashboard over a deck without processes, by the real clock, and somebody who looks at it.
 * @typedef {Awaited<ReturnType<typeof startDashboard>>} Dashboard
 */

const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

/**
 * @param {import('node:test').TestContext} t
 * @param {{ page: (options?: import('./browser.js').PageOptions) => Promise<import('./browser.js').WatchedPage> }} browser
 */
export async function startDashboard (t, browser) {
  const dashboard = await startAdmin(t, { now: Date.now, timers: /** @type {any} */ (REAL_TIMERS) })
  return {
    ...dashboard,

    /**
     * Signs in by a link and goes to the page; its context is closed when the test ends.
     * @param {string} [path] @param {import('./browser.js').PageOptions} [options]
     */
    async visit (path = '/', options) {
      const page = await browser.page(options)
      t.after(() => page.context().close())
      await page.goto(dashboard.admin.signInLink())
      if (path !== '/') await page.goto(dashboard.url + path)
      return page
    },

    /** @param {number} slot @param {any} changes to the worker of that slot; no event tells of it */
    setWorker (slot, changes) {
      const workers = dashboard.deck.snapshot().workers.map((/** @type {any} */ worker) => worker.slot === slot ? { ...worker, ...changes } : worker)
      dashboard.deck.set({ workers, readyWorkers: workers.filter((/** @type {any} */ { state }) => state === 'ready').length })
    },

    /** Ends the rollout that runs, as the reducer does. @param {'succeeded' | 'failed'} state @param {string | null} [reason] */
    finishRollout (state, reason = null) {
      const { rollout } = dashboard.deck.snapshot()
      const detail = { ...rollout, state, reason, done: true, finishedAt: new Date().toISOString() }
      dashboard.deck.set({ rollout: null })
      dashboard.deck.events.publish({ type: `rollout.${state}`, rollout: rollout.id, actor: rollout.actor, message: reason, detail })
    }
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
