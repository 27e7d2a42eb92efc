import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { useBrowser } from '../support/browser.ts'
import { aCrash } from '../support/crash-record.ts'
import { type Dashboard, startDashboard } from '../support/dashboard.ts'
import { startDeck } from '../support/deck.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import type { Locator, Page } from 'playwright-core'

const WITHIN_MS = 1000

const browser = useBrowser()

/** What happens, on which page, and what is seen of it. */
const NEWS: Record<string, { path: string, happen: (dashboard: Dashboard) => void, seen: string }> = {
  'a worker that drains': { path: '/', happen ({ setWorker, deck }) {
    setWorker(2, { state: 'draining' })
    deck.events.publish({ type: 'worker.draining', slot: 2, worker: 2, cause: 'restart' })
  }, seen: '#worker-2-2 :text("Draining")' },
  'vitals that no event tells of': { path: '/', happen: ({ setWorker }) =>
    setWorker(1, { vitals: { rssBytes: 200 * 1024 * 1024, cpuPercent: 91.5, at: new Date().toISOString() } }),
    seen: '#worker-1-1 :text("91.5%")' },
  'an event of the history': { path: '/history?type=worker.exited', happen: ({ deck }) => {
    deck.events.publish({ type: 'worker.exited', worker: 3, slot: 2, cause: 'crash' })
  }, seen: '[id^=event-]' },
  'another crash of a kind': {
    path: '/crashes/1',
    happen: ({ history, deck }) => crash({ history, deck }, 2),
    // Not the text of its issue too, which waits for the button that copies it.
    seen: 'pre.code:text-is("words of 2")'
  },
  'a line of the logs': { path: '/logs', happen: ({ deck }) =>
    appendFileSync(liveFile(deck.logs.folder, { slot: 1, stream: 'stdout' }), 'a new line\n'),
    seen: '.line :text("a new line")' }
}

for (const [what, { path, happen, seen }] of Object.entries(NEWS)) {
  test(`${what} is on the page within a second`, async (t) => {
    const dashboard = await startDashboard(t, browser)
    if (path === '/crashes/1') crash(dashboard, 1)
    const page = await dashboard.visit(path)
    if (path === '/logs') await untilTailed(page)
    await assertSoon(t, () => happen(dashboard), [page.locator(seen)])
  })
}

test('the death of a real worker is on the page within a second', async (t) => {
  const { deck, page } = await visitReal(t, 'boots-slowly.js', { workers: 2, env: { BOOT_MS: '1000' } })
  const { workers } = await deck.status()
  await assertSoon(t, () => process.kill(present(workers[1].pid), 'SIGKILL'), [
    page.locator('#workers tbody').getByText('Starting'),
    page.locator('#recent').getByText(/Worker 2 \(slot 2\) was ended by SIGKILL/)
  ])
})

rareTest('what a real app writes is on the page within a second', async (t) => {
  const { deck, page } = await visitReal(t, 'talks-and-dies.js', { workers: 1 })
  await page.getByRole('link', { name: 'Logs of slot 1' }).click()
  await untilTailed(page)
  const app = await deck.appUrl()
  await assertSoon(t, () => fetch(`${app}/say?text=hello`), [page.locator('.line').getByText('hello', { exact: true })])
})

async function visitReal (t: TestContext, app: string, options: Parameters<typeof startDeck>[2] & { workers: number }) {
  const deck = await startDeck(t, app, options)
  await deck.until({ ready: options.workers })
  return { deck, page: await browser.visit(t, deck) }
}

async function untilTailed (page: Page) {
  await page.locator('#log[data-state=live]').waitFor()
}

async function assertSoon (t: TestContext, happen: () => unknown, seen: Locator[]) {
  const began = performance.now()
  await happen()
  await Promise.all(seen.map((one) => one.waitFor()))
  const tookMs = performance.now() - began
  t.diagnostic(`${tookMs.toFixed(0)} ms`)
  assert.ok(tookMs < WITHIN_MS, `${tookMs} ms`)
}

function crash ({ history, deck }: Pick<Dashboard, 'history' | 'deck'>, worker: number) {
  history.crashes.record('v1:x', aCrash({ worker, stderr: [`words of ${worker}`] }), { culprit: null })
  deck.events.publish({ type: 'worker.exited', worker, slot: 1, cause: 'crash',
    detail: { crash: worker, crashGroup: 1 } })
}
