import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PageOptions, untilLive, useBrowser } from '../support/browser.ts'
import { type Dashboard, startDashboard, visit } from '../support/dashboard.ts'
import { present } from '../support/present.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { followTraffic } from '../support/traffic.ts'
import { until } from '../support/until.ts'
import type { SentFragment } from '../../public/live-events.d.ts'
import type { Page } from 'playwright-core'

const browser = useBrowser()

/** Signed in, with an empty cache. */
async function visitAnew (dashboard: Dashboard, path: string, options?: PageOptions) {
  const page = await dashboard.openSignedIn(options)
  const traffic = await followTraffic(page)
  await page.goto(dashboard.url + path, { waitUntil: 'networkidle' })
  await untilLive(page)
  return { page, traffic }
}

/** `message`: of socket.io */
function updateOf (message: string): { fragments: SentFragment[], figures: Record<string, string> } {
  return JSON.parse(message.slice(message.indexOf('['))).at(-1)
}

/** How many bytes each page may transfer, and how many requests it stays below. */
const LIMITS: [string, number, number][] = [['/', 95_000, 12], ['/history', 70_000, 11], ['/logs', 70_000, 12], [
  '/docs/api',
  70_000,
  10
], ['/deploys', 70_000, 10], ['/crashes', 70_000, 10], ['/settings', 70_000, 10], ['/access', 70_000, 10], ['/alerts',
  70_000, 10]]
/** The first of these pages have the most scripts, or are the longest of the manual. */
const FULLEST = 4

test('a first load is small, asks for little, and nothing of the page comes twice', async (t) => {
  const dashboard = await startDashboard(t, browser)
  for (const [path, bytes, requests] of LIMITS.slice(0, rareOnly ? FULLEST : undefined)) {
    const { traffic } = await visitAnew(dashboard, path)
    assert.ok(traffic.bytes > 20_000 && traffic.bytes < bytes, `${path}: ${traffic.bytes} bytes`)
    assert.ok(traffic.requests < requests, `${path}: ${traffic.urls.join(' ')}`)
    // The axis of that graph goes on with the time.
    const again = traffic.messages.filter((message) => message.startsWith('42[')).flatMap((message) =>
      updateOf(message).fragments
    ).filter(({ id }) => id !== 'timeline-graph')
    assert.deepEqual(again, [], path)
  }
})

test('the charts of a worker are loaded once somebody scrolls to them', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { page, traffic } = await visitAnew(dashboard, '/workers/1', { height: 400 })
  assert.ok(traffic.bytes > 20_000 && traffic.bytes < 70_000, `${traffic.bytes} bytes`)
  await page.locator('#charts').scrollIntoViewIfNeeded()
  await page.locator('#charts canvas').first().waitFor()
})

rareTest('vitals come as figures alone, and of the workers only the row that changed', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { page, traffic } = await visitAnew(dashboard, '/')
  traffic.messages.length = 0
  dashboard.setWorker(1, { vitals: { rssBytes: 200 * 1024 * 1024, cpuPercent: 91.5, at: new Date().toISOString() } })
  await page.locator('#worker-1-1').getByText('91.5%').waitFor()
  assert.equal(await page.locator('#worker-1-1 .bar-fill').getAttribute('width'), '92')
  assert.deepEqual(traffic.messages.flatMap((message) => updateOf(message).fragments), [])

  dashboard.setWorker(2, { restarts: 7 })
  await page.locator('#worker-2-2').getByRole('link', { name: '7 restarts' }).waitFor()
  const { parts } = present(
    traffic.messages.flatMap((message) => updateOf(message).fragments).find(({ id }) => id === 'workers')
  )
  assert.ok(parts.some((part) => typeof part === 'object' && part.row === 'worker-1-1'))
  assert.ok(parts.some((part) => typeof part === 'string' && /^<tr [^>]*id="worker-2-2"[^>]*data-flash/.test(part)))
  await page.locator('#worker-1-1').getByText('91.5%').waitFor()
})

rareTest('a tab that is hidden is sent nothing of its page, and has all of it once it is seen again', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const [{ page, traffic }, other] = [await visitAnew(dashboard, '/'), await dashboard.visit()]
  const { replies } = traffic
  await setHidden(page, true)
  await until(() => traffic.replies > replies, 'the master to know')
  traffic.messages.length = 0
  dashboard.setWorker(2, { restarts: 7 })
  await other.locator('#worker-2-2').getByRole('link', { name: '7 restarts' }).waitFor()
  assert.deepEqual(traffic.messages, [])

  await setHidden(page, false)
  await page.locator('#worker-2-2').getByRole('link', { name: '7 restarts' }).waitFor()
})

rareTest('the focus stays where a button was that did its work', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  dashboard.deck.dispatch({ type: 'rollout', kind: 'deploy', actor: 'cli' })
  await page.locator('#rollout-pause').focus()
  const rollout = present(dashboard.deck.snapshot().rollout)
  dashboard.deck.set({ rollout: { ...rollout, state: 'paused', pausedIn: 'rolling' } })
  await page.locator('#rollout-resume').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'rollout-resume')
  dashboard.deck.set({ rollout })
  await page.locator('#rollout-pause').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'rollout-pause')
})

async function setHidden (page: Page, isHidden: boolean) {
  await page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, isHidden)
}
