import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { markPage, startDashboard } from '../support/dashboard.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

test('a setting is changed by a click, and the page says where each value comes from', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/')
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.waitForURL('**/settings')
  await page.locator('html[data-live=on]').waitFor()
  const isSamePage = await markPage(page)
  const row = page.locator('#setting-drain-deadlineMs')
  assert.match(await row.innerText(), /drain\.deadlineMs[^]*30000[^]*default/)

  await row.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog', { name: 'Change drain.deadlineMs' })
  assert.match(await dialog.innerText(), /Expected: an integer from 0 to 2147483647/)
  const value = dialog.getByLabel('Value')
  assert.equal(await value.inputValue(), '30000')
  await value.fill('soon')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await page.getByText('drain.deadlineMs: expected an integer from 0 to 2147483647, received "soon"').waitFor()
  await value.fill('10000')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await row.getByText('changed').waitFor()
  assert.match(await row.innerText(), /10000[^]*changed, default 30000/)
  assert.equal(await dialog.isVisible(), false)

  await page.getByRole('link', { name: 'Not the default' }).click()
  await page.waitForURL('**/settings?show=set')
  assert.deepEqual(await page.locator('.setting-what .mono').allInnerTexts(), ['drain.deadlineMs'])
  assert.equal(await isSamePage(), false)
  // Chromium reports the 422 that was asked for.
  assert.deepEqual(page.problems.filter((problem) => !/status of 422/.test(problem)), [])
})

test('a change that is based on what somebody else has changed meanwhile is refused, and said', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/settings')
  await page.locator('html[data-live=on]').waitFor()
  await page.locator('#setting-drain-deadlineMs').getByRole('button', { name: 'Change' }).click()
  dashboard.deck.configure({ wanted: { 'drain.deadlineMs': 7000 }, actor: 'ben' })
  await page.locator('#setting-drain-deadlineMs').getByText('7000').waitFor()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Value').fill('9000')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await page.getByText('The settings have changed in the meantime').waitFor()
  assert.equal(dashboard.deck.settings.list().find(({ name }) => name === 'drain.deadlineMs')?.value, 7000)
})
