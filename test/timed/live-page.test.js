import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { liveFile } from '../../server/logs/log-files.js'
import { openBrowser } from '../support/browser.js'
import { aCrash } from '../support/crash-record.js'
import { startDashboard } from '../support/dashboard.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/**
 * What happens, on which page, and what is seen of it. Vitals are looked at every 500 ms.
 * @type {Record<string, { path: string, happen: (dashboard: import('../support/dashboard.js').Dashboard) => void, seen: string, withinMs?: number }>}
 */
const NEWS = {
  'a worker that drains': {
    path: '/',
    happen ({ setWorker, deck }) {
      setWorker(2, { state: 'draining' })
      deck.events.publish({ type: 'worker.draining', slot: 2, worker: 2, cause: 'restart' })
    },
    seen: '#worker-2-2 :text("Draining")'
  },
  'vitals that no event tells of': {
    path: '/',
    happen: ({ setWorker }) => setWorker(1, { vitals: { rssBytes: 200 * 1024 * 1024, cpuPercent: 91.5, at: new Date().toISOString() } }),
    seen: '#worker-1-1 :text("91.5%")',
    withinMs: 1500
  },
  'an event of the history': {
    path: '/history?type=worker.exited',
    happen: ({ deck }) => { deck.events.publish({ type: 'worker.exited', worker: 3, slot: 2, cause: 'crash' }) },
    seen: '[id^=event-]'
  },
  'another crash of a kind': {
    path: '/crashes/1',
    happen: ({ history, deck }) => crash({ history, deck }, 2),
    seen: ':text("words of 2")'
  },
  'a line of the logs': {
    path: '/logs',
    happen: ({ deck }) => appendFileSync(liveFile(deck.logs.folder, { slot: 1, stream: 'stdout' }), 'a new line\n'),
    seen: '.line :text("a new line")'
  }
}

for (const [what, { path, happen, seen, withinMs = 1000 }] of Object.entries(NEWS)) {
  test(`${what} is on the page within ${withinMs} ms`, async (t) => {
    const dashboard = await startDashboard(t, browser)
    if (path === '/crashes/1') crash(dashboard, 1)
    const page = await dashboard.visit(path)
    if (path === '/logs') await page.locator('#log[data-state=live]').waitFor()
    const began = performance.now()
    happen(dashboard)
    await page.locator(seen).waitFor()
    const tookMs = performance.now() - began
    t.diagnostic(`${tookMs.toFixed(0)} ms`)
    assert.ok(tookMs < withinMs, `${tookMs} ms`)
  })
}

/** @param {Pick<import('../support/dashboard.js').Dashboard, 'history' | 'deck'>} dashboard @param {number} worker */
function crash ({ history, deck }, worker) {
  history.crashes.record('v1:x', aCrash({ worker, stderr: [`words of ${worker}`] }), { culprit: null })
  deck.events.publish({ type: 'worker.exited', worker, slot: 1, cause: 'crash', detail: { crash: worker, crashGroup: 1 } })
}
