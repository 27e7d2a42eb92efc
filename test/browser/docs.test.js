import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { startDashboard } from '../support/dashboard.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

test('one reads from page to page, and a link to a heading leads below the top bar', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/')
  await page.getByRole('link', { name: 'Docs' }).click()
  await page.getByRole('navigation', { name: 'Manual' }).getByRole('link', { name: 'How it works' }).click()
  await page.getByRole('heading', { level: 1, name: 'How it works' }).waitFor()
  await page.getByRole('link', { name: 'Upgrade' }).click()
  await page.waitForURL('**/docs/deploying#upgrade')
  const [heading, bar] = await Promise.all([page.getByRole('heading', { name: 'Upgrade' }).boundingBox(), page.locator('.topbar').boundingBox()])
  assert.ok(heading && bar && heading.y >= bar.height && heading.y < 900, `at ${heading?.y}`)
  await page.getByRole('link', { name: 'Next: Releases' }).click()
  await page.getByRole('heading', { level: 1, name: 'Releases' }).waitFor()
  assert.deepEqual(page.problems, [])
})

test('on a narrow screen a wide table scrolls by itself, also by the keyboard, and the index is one step away', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/docs/options', { width: 390 })
  const table = page.getByRole('group', { name: 'Table' }).first()
  await table.focus()
  await page.keyboard.press('ArrowRight')
  await page.waitForFunction(() => Number(document.querySelector('.doc-table')?.scrollLeft) > 0)
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390)
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Manual' }).click()
  await page.getByRole('heading', { level: 1, name: 'Manual' }).waitFor()
  assert.deepEqual(page.problems, [])
})
