import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { startDashboard } from '../support/dashboard.js'
import { report } from '../support/vitals.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/** What both workers report of one second. @param {import('../support/dashboard.js').Dashboard} dashboard @param {number} second @param {Parameters<typeof report>[0]} fields */
function live ({ deck }, second, fields) {
  for (const worker of [1, 2]) deck.vitals.accept(worker, worker, report(fields))
  deck.vitals.turn(second)
}

/** @param {import('playwright-core').Page} page how many pixels of a chart have this colour, give or take what smoothing does */
function pixelsLike (page, /** @type {string} */ chart, /** @type {string} */ variable) {
  return page.locator(`#chart-${chart} canvas`).evaluate((canvas, name) => {
    const probe = document.createElement('i')
    probe.style.color = `var(${name})`
    document.body.append(probe)
    const wanted = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number)
    probe.remove()
    const { width, height } = /** @type {HTMLCanvasElement} */ (canvas)
    const pixels = /** @type {CanvasRenderingContext2D} */ (/** @type {HTMLCanvasElement} */ (canvas).getContext('2d')).getImageData(0, 0, width, height).data
    let count = 0
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 100 && wanted.slice(0, 3).every((value, part) => Math.abs(value - pixels[at + part]) < 24)) count++
    return count
  }, variable)
}

test('the charts show the last minutes, go on live, and mark deploys and deaths', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const second = () => Math.floor(Date.now() / 1000)
  for (let at = second() - 120; at < second() - 1; at++) live(dashboard, at, { latenciesMs: [5, 5, 5, 5, 500], rssBytes: 100 * 1024 * 1024 })
  const page = await dashboard.visit('/', { reducedMotion: 'reduce' })
  const value = (/** @type {string} */ column) => page.locator(`[data-column="${column}"]`)
  await value('requestsPerSecond').getByText('10/s', { exact: true }).waitFor()
  await value('rssBytes').getByText('200 MB').waitFor()
  await value('cpuPercent').getByText('100%').waitFor()
  assert.match(await value('latencyP50Ms').innerText(), /^(4\.8|4\.9|5|5\.[01])\d* ms$/)
  assert.match(await value('latencyP99Ms').innerText(), /^(4[89]|5[01])\d ms$/)
  assert.equal(await page.locator('#charts canvas').count(), 5)
  for (const [chart, colour] of [['requests', '--info'], ['latency', '--drain'], ['memory', '--info'], ['loop', '--warn']]) assert.ok(await pixelsLike(page, chart, colour) > 20, `a line in the chart of ${chart}`)

  live(dashboard, second(), { latenciesMs: Array(30).fill(5), statuses: [30, 0, 0, 12, 0, 0] })
  await value('requestsPerSecond').getByText('84/s', { exact: true }).waitFor()
  await value('requests5xx').getByText('24/s', { exact: true }).waitFor()

  const before = await pixelsLike(page, 'memory', '--bad')
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, cause: 'crash', code: 1, message: 'boom' })
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 2, slot: 2, cause: 'deploy', code: 0 })
  await page.locator('#charts-marks li').waitFor()
  assert.match((await page.locator('#charts-marks').innerText()), /^\d\d:\d\d:\d\d worker 1 \(slot 1\): crash$/)
  while (await pixelsLike(page, 'memory', '--bad') <= before) await page.evaluate(() => new Promise(requestAnimationFrame))

  assert.deepEqual(await page.audit(), [])
  await page.locator('[data-theme-toggle]').click()
  assert.ok(await pixelsLike(page, 'latency', '--drain') > 30, 'drawn anew in the other theme')
  const asked = page.waitForRequest((request) => request.url().includes('/api/v1/vitals') && request.url().includes('step=1m'))
  await page.getByLabel('Range').selectOption('24h')
  await asked
  assert.deepEqual(page.problems, [])
})

test('a worker\'s row tells its requests and latency; without any vitals there are dashes, and nothing breaks', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/')
  assert.match(await page.locator('#chart-requests figcaption').innerText(), /all\s*–\s*5xx\s*–/)
  dashboard.setWorker(1, { vitals: { rssBytes: 1e8, cpuPercent: 5, requestsPerSecond: 1234.5, latencyP99Ms: 12.34 } })
  await page.locator('#workers .rate', { hasText: '1,235' }).waitFor()
  assert.deepEqual(await page.locator('#workers tbody tr').first().locator('.rate').allInnerTexts(), ['1,235', '12.3 ms'])
  assert.deepEqual(page.problems, [])
})
