import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilLive, useBrowser, type WatchedPage } from '../support/browser.ts'
import { visit } from '../support/dashboard.ts'
import { rareTest } from '../support/rare.ts'
import type { Page } from 'playwright-core'

const browser = useBrowser()

async function find (page: WatchedPage, words: string) {
  await page.keyboard.press('Control+k')
  await page.locator('.palette-item[aria-selected=true]').waitFor()
  await page.keyboard.type(words)
}

rareTest('the palette goes where it is told and opens what can be done, by the keyboard alone', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/docs')
  await find(page, 'webh')
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
  assert.match(String(await page.locator('#palette-query').getAttribute('aria-activedescendant')), /^palette-\d+$/)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/alerts')
  await untilLive(page)

  await find(page, 'restart')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Restart worker 1 in slot 1?' })
  await dialog.waitFor()
  assert.equal(await page.locator('#palette').isVisible(), false)
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  assert.deepEqual(dashboard.deck.dispatched, [{ type: 'restart-worker', worker: 1, actor: 'the owner\'s token',
    client: 'dashboard' }])

  // Now a rollout is running.
  await find(page, 'rolling deploy')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  assert.equal(await page.locator('#palette').isVisible(), true)
  await page.keyboard.type(' nonsense')
  await page.getByRole('option', { name: 'Search the logs for “rolling deploy nonsense”' }).waitFor()
  assert.equal(await page.getByRole('option').count(), 1)
  await page.keyboard.press('Escape')

  // The icons of the top bar are there by their words.
  await find(page, 'theme')
  await page.keyboard.press('Enter')
  await page.locator('html[data-theme=light]').waitFor()
  await find(page, 'sign out')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/sign-in*')
})

rareTest('the palette says when the master does not answer', async (t) => {
  const { page } = await visit(t, browser, '/')
  page.allow(/ERR_FAILED/)
  await page.route('**/palette', (route) => route.abort())
  await page.keyboard.press('Control+k')
  await page.getByText('The master did not answer.').waitFor()
})

test('keys lead to pages, to the search and through lists, and mean nothing to who types or has turned them off', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/docs')
  const go = async (key: string, path: string) => {
    await page.keyboard.press('g')
    await page.keyboard.press(key)
    await page.waitForURL(dashboard.url + path)
    await untilLive(page)
  }
  dashboard.deck.events.publish({ type: 'scale.changed', detail: { to: 6 } })
  dashboard.deck.events.publish({ type: 'scale.changed', detail: { to: 7 } })
  await page.keyboard.press('?')
  const listed = page.locator('#dialog-shortcuts [data-keys]')
  await listed.first().waitFor()
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
  const goals = await listed.evaluateAll((links) =>
    links.map((link) => [link.getAttribute('data-keys'), link.getAttribute('href')])
  )
  assert.ok(goals.length >= 5)
  await page.keyboard.press('Escape')
  await page.locator('#dialog-shortcuts').waitFor({ state: 'hidden' })
  for (const [keys, path] of goals) await go(String(keys).slice(2), String(path))

  await go('h', '/history')
  const focused = () =>
    page.evaluate(() => document.activeElement?.closest('tr')?.id ?? document.activeElement?.tagName)
  await page.keyboard.press('j')
  assert.equal(await focused(), 'event-3')
  await page.keyboard.press('j')
  assert.equal(await focused(), 'event-2')
  await page.keyboard.press('k')
  assert.equal(await focused(), 'event-3')
  await page.keyboard.press('/')
  await page.keyboard.type('g?jk')
  assert.equal(await page.locator('main input[type=search]').inputValue(), 'g?jk')
  await page.keyboard.press('Escape')
  assert.deepEqual([await focused(), await page.locator('main input[type=search]').inputValue()], ['BODY', 'g?jk'])
  assert.equal(await page.locator('dialog[open]').count(), 0)

  await goTo(page, dashboard.url)
  await page.keyboard.press('?')
  await page.getByLabel('Single-key shortcuts').uncheck()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.reload()
  await untilLive(page)
  await page.keyboard.press('?')
  assert.equal(await page.locator('dialog[open]').count(), 0)
  await page.keyboard.press('Control+k')
  await page.locator('#palette').waitFor()
})

async function goTo (page: Page, url: string) {
  await page.goto(url)
  await untilLive(page)
}

rareTest('every dialog opens, is walked through and closes by the keyboard, and gives the focus back', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/')
  const tryOut = async (opener: string) => {
    await page.locator(opener).focus()
    await page.keyboard.press('Enter')
    const dialog = page.locator('dialog[open]')
    await dialog.waitFor()
    const command = dialog.locator('[data-command=curl]')
    if (await command.count() > 0)
      await page.waitForFunction(() =>
        document.querySelector('dialog[open] [data-command=curl]')?.textContent?.startsWith('curl ')
      )
    const stops = await dialog.evaluate((each) =>
      each.querySelectorAll('a[href], button, input:not([type=hidden]), textarea, summary, pre').length
    )
    const isInside = () => dialog.evaluate((each) => each.contains(document.activeElement))
    assert.equal(await isInside(), true, `${opener}: focus`)
    // The focus may leave a dialog to the browser's own controls, but to nothing behind it.
    for (let count = 0; count <= stops; count++) {
      await page.keyboard.press('Tab')
      assert.equal(await isInside() || await page.evaluate(() => document.activeElement === document.body), true,
        `${opener}: Tab`)
    }
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    assert.equal(await page.locator(opener).evaluate((each) => each === document.activeElement), true,
      `${opener}: return`)
  }
  for (const opener of ['#open-scale', '#open-restart', '#open-deploy', '#restart-1', '[data-palette]'])
    await tryOut(opener)
  await goTo(page, `${dashboard.url}/workers/1`)
  for (const opener of ['#worker-kill', '#looks-heap']) await tryOut(opener)
  await goTo(page, `${dashboard.url}/settings`)
  for (const opener of ['.setting-action button >> nth=0', '[data-dialog=dialog-notifications]']) await tryOut(opener)
  assert.deepEqual(dashboard.deck.dispatched, [])
})
