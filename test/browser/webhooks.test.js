import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { markPage, startDashboard } from '../support/dashboard.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

test('a test is sent by a click, its failure appears by itself and is sent again by another', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/history')
  await page.getByRole('link', { name: 'Webhooks' }).click()
  await page.waitForURL('**/webhooks')
  await page.locator('html[data-live=on]').waitFor()
  const isSamePage = await markPage(page)
  const webhook = page.getByRole('region', { name: '2 · https://example.com/…/…' })
  await webhook.getByText('Nothing has been sent').waitFor()

  dashboard.deck.webhooks.status = 404
  await webhook.getByRole('button', { name: 'Send a test' }).click()
  const row = page.locator('#delivery-2-1')
  await row.getByText('Failed').waitFor()
  assert.match(await row.innerText(), /webhook\.test[^]*answered 404/)

  dashboard.deck.webhooks.status = 204
  await row.getByRole('button', { name: 'Try again' }).click()
  await row.getByText('Delivered').waitFor()
  assert.equal(await row.getByRole('button').count(), 0)
  assert.equal(await isSamePage(), true)
  const { items } = dashboard.history.page({ type: ['webhook.*', 'notify.*'] })
  assert.deepEqual(items.map((/** @type {any} */ { type, actor }) => [type, actor]), [['webhook.retried', 'dashboard'], ['notify.failed', 'system'], ['webhook.test', 'dashboard']])
  assert.deepEqual(page.problems, [])
})
