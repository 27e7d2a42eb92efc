import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.ts'
import { untilLive, useBrowser } from '../support/browser.ts'

const SECRET = 'a-secret-of-the-proxy'
const browser = useBrowser()

const adaIn = (group: string) => ({ 'X-Proxy-Secret': SECRET, 'X-Forwarded-User': 'ada', 'X-Forwarded-Groups': group })

test('a page of whom the proxy lets in no longer says so, and "Sign in" is a visit that the proxy sees', async (t) => {
  const { url, clock } = await startAdmin(t, {
    proxyAuth: { from: ['127.0.0.1'], roles: { ops: 'admin' }, secret: SECRET }
  })
  const page = await browser.page()
  // The browser of the tests adds no headers to WebSockets, and so comes by polling.
  page.allow(/WebSocket|403/)
  await page.context().setExtraHTTPHeaders(adaIn('ops'))
  await page.goto(url)
  await untilLive(page)
  await page.context().setExtraHTTPHeaders(adaIn('sales'))
  clock.advance(15 * 60_000)
  await page.getByText('You are not signed in any more.').waitFor()
  assert.equal(await page.locator('dialog[open]').count(), 0, 'a form for a token')
  await page.context().setExtraHTTPHeaders(adaIn('ops'))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await untilLive(page)
  assert.deepEqual(page.problems, [])
})
