import assert from 'node:assert/strict'
import os from 'node:os'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { startDashboard } from '../support/dashboard.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/** @param {import('playwright-core').Page} page @param {string} start */
function untilTitle (page, start) {
  return page.waitForFunction((expected) => document.title.startsWith(expected), start)
}

test('every page says whose it is, and its tab how much is wrong, or that nobody can tell', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/docs')
  const icon = () => page.locator('#trouble').getAttribute('href')
  assert.equal(await page.title(), `Manual · app on ${os.hostname()}`)
  assert.match(await page.locator('.topbar .brand').innerText(), new RegExp(`app\\W+on\\W+${os.hostname()}`))
  assert.match(String(await icon()), /favicon\.svg/)

  dashboard.setWorker(1, { state: 'unresponsive' })
  await untilTitle(page, '(1) Manual')
  assert.match(String(await icon()), /favicon-bad\.svg/)
  dashboard.setWorker(1, { state: 'ready' })
  await untilTitle(page, 'Manual')
  assert.match(String(await icon()), /favicon\.svg/)

  await page.context().setOffline(true)
  await page.evaluate(() => /** @type {any} */ (window).dispatchEvent(new Event('offline')))
  await untilTitle(page, '(no connection) Manual')
  assert.match(String(await icon()), /favicon-lost\.svg/)
  await page.context().setOffline(false)
  await untilTitle(page, 'Manual')
  assert.match(String(await icon()), /favicon\.svg/)
})

test('times are those of the browser or UTC, as somebody has chosen last', async (t) => {
  const dashboard = await startDashboard(t, browser)
  dashboard.deck.events.publish({ type: 'scale.changed', detail: { to: 6 } })
  const page = await dashboard.visit('/history', { timezoneId: 'Asia/Tokyo' })
  const hours = async () => Number((await page.locator('time[data-clock]').last().innerText()).slice(-8, -6))
  const local = await hours()
  await page.getByRole('button', { name: 'Local times' }).click()
  await page.getByRole('button', { name: 'UTC times' }).waitFor()
  assert.equal((await hours() + 9) % 24, local)
  await page.reload()
  await page.getByRole('button', { name: 'UTC times' }).waitFor()
  assert.equal((await hours() + 9) % 24, local)
  assert.deepEqual(page.problems, [])
})
