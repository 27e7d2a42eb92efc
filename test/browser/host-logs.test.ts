import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { test } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { useBrowser } from '../support/browser.ts'
import { startHostDashboard } from '../support/dashboard.ts'
import type { Page } from 'playwright-core'

const browser = useBrowser()

const linesOf = (page: Page) =>
  page.locator('.line').evaluateAll((lines) =>
    lines.map((line) =>
      `${line.querySelector('.line-whose')?.textContent}: ${line.querySelector('.line-text')?.textContent}`
    )
  )

test('the logs of all apps of a host follow as one; apps are chosen without a new page; each line leads to its app', async (t) => {
  const host = await startHostDashboard(t, browser, { names: ['mail', 'search', 'shop'] })
  const say = (app: string, text: string) =>
    appendFileSync(liveFile(host.apps.deck(app).logs.folder, { slot: 1, stream: 'stdout' }), `${text}\n`)
  say('mail', 'sent')
  const page = await host.visit('/')
  await page.locator('.nav').getByRole('link', { name: 'Logs' }).click()
  await page.getByRole('heading', { name: 'Logs of all apps' }).waitFor()
  await page.locator('#log[data-state=live]').waitFor()
  say('shop', 'paid')
  await page.locator('.line').getByText('paid').waitFor()
  assert.deepEqual(await linesOf(page), ['mail: sent', 'shop: paid'])
  assert.deepEqual(await page.audit(), [])

  await page.getByRole('checkbox', { name: 'shop' }).check()
  await page.waitForURL('**/logs?app=shop')
  await page.getByRole('checkbox', { name: 'search' }).check()
  await page.waitForURL('**/logs?app=search%2Cshop')
  await page.locator('#log[data-state=live]').waitFor()
  say('mail', 'not seen')
  say('search', 'indexed')
  await page.locator('.line').getByText('indexed').waitFor()
  assert.deepEqual(await linesOf(page), ['shop: paid', 'search: indexed'])

  await page.locator('.line').getByText('indexed').click()
  await page.waitForURL(/app=search%2Cshop.*line=search/)
  await page.getByRole('link', { name: 'Logs of search' }).click()
  await page.waitForURL('**/apps/search/logs?around=*')
  await page.locator('#log-mark').getByText('indexed').waitFor()

  // As somebody may type it.
  await page.goto(new URL('/logs?app=mail&app=search', page.url()).href)
  await page.locator('#log[data-state=live]').waitFor()
  say('mail', 'late')
  await page.locator('.line').getByText('late').click()
  await page.waitForURL(/app=mail&app=search.*line=mail/)
})
