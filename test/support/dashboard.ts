import assert from 'node:assert/strict'
import { startAdmin, startHostAdmin } from './admin.ts'
import { untilLive, type PageOptions, type WatchedPage } from './browser.ts'
import { present } from './present.ts'
import type { Page } from 'playwright-core'
import type { WorkerRow } from '../../server/deck.ts'
import type { attack } from '../browser/attacks.ts'
import type { TestOwner } from './deck.ts'
import type { Parts } from './fake.ts'

/**
 * The language of the browser tests: a dashboard over a deck without processes, by the real clock, and somebody who
 * looks at it.
 */
export type Dashboard = Awaited<ReturnType<typeof startDashboard>>

const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

export async function startDashboard (t: TestOwner, browser: { page: (options?: PageOptions) => Promise<WatchedPage> },
  options: Parameters<typeof startAdmin>[1] = {})
{
  const people = openPeople(t, browser)
  const dashboard = await startAdmin(t, { now: Date.now, timers: REAL_TIMERS, ...options })
  return {
    ...dashboard,
    ...people(dashboard),

    /** `changes`: to the worker of that slot; no event tells of it */
    setWorker (slot: number, changes: Parts<WorkerRow>) {
      const workers = dashboard.deck.snapshot().workers.map((worker) =>
        worker.slot === slot ? { ...worker, ...changes } : worker
      )
      dashboard.deck.set({ workers, readyWorkers: workers.filter(({ state }) => state === 'ready').length })
    },

    /** Ends the rollout that runs, as the reducer does. */
    finishRollout (state: 'succeeded' | 'failed', reason: string | null = null) {
      const rollout = present(dashboard.deck.snapshot().rollout)
      const detail = { ...rollout, state, reason, done: true, finishedAt: new Date().toISOString() }
      dashboard.deck.set({ rollout: null })
      dashboard.deck.events.publish({ type: `rollout.${state}`, rollout: rollout.id, actor: rollout.actor,
        message: reason, detail })
    }
  }
}

/** Somebody who looks at a page of such a dashboard, signed in and live. */
export async function visit (t: TestOwner, browser: Parameters<typeof startDashboard>[1],
  ...where: Parameters<Dashboard['visit']>)
{
  const dashboard = await startDashboard(t, browser)
  return { dashboard, page: await dashboard.visit(...where) }
}

/** The same of a host. */
export async function startHostDashboard (t: TestOwner, browser: Parameters<typeof startDashboard>[1],
  options: Parameters<typeof startHostAdmin>[1] = {})
{
  const people = openPeople(t, browser)
  const host = await startHostAdmin(t, { now: Date.now, timers: REAL_TIMERS, ...options })
  return { ...host, ...people(host) }
}

function openPeople (t: TestOwner, browser: Parameters<typeof startDashboard>[1]) {
  const pages: Set<WatchedPage> = new Set()
  const problems: string[] = []
  // Before the admin port closes, which would wait for their connections, and of which they would complain.
  t.after(async () => {
    for (const page of pages) problems.push(...page.problems)
    await Promise.all(Array.from(pages, (page) => page.context().close()))
  })

  return ({ url, admin }: { url: string, admin: { signInLink: () => string } }) => {
    t.after(() => assert.deepEqual(problems, [], 'what the pages complain of'))
    return {
      /** Nobody has signed in there yet. */
      openPage,

      openSignedIn,

      /** Signs in, goes to the page and waits until it is live: what is shown later came by itself. */
      async visit (path: string = '/', options?: PageOptions) {
        const page = await openSignedIn(options)
        await page.goto(url + path)
        await untilLive(page)
        return page
      }
    }

    /** Signs in by a link, without drawing the overview that it leads to. */
    async function openSignedIn (options?: PageOptions) {
      const page = await openPage(options)
      await page.context().request.get(admin.signInLink(), { maxRedirects: 0 })
      return page
    }
  }

  async function openPage (options: PageOptions = {}) {
    const page = await browser.page(options)
    pages.add(page)
    return page
  }
}

declare global {
  /** What the tests keep in pages. */
  interface Window {
    wasNeverReloaded?: boolean
    longTasks: number[]
    shifts: number[]
    seen: string[]
    /** notifications */
    shown: { title: string, body: string, onclick: () => void }[]
    isLookedAt: boolean
    attack: typeof attack
  }
}

/** A mark that a reload wipes out. */
export async function markPage (page: Page) {
  await page.evaluate(() => {
    window.wasNeverReloaded = true
  })
  return () => page.evaluate(() => window.wasNeverReloaded === true)
}
