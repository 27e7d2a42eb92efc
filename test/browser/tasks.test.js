import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { openShop } from '../screenshots/shop.js'
import { openBrowser } from '../support/browser.js'
import { aCrash } from '../support/crash-record.js'
import { startDeckHere } from '../support/deck-here.js'
import { app } from '../support/deploys.js'
import { rareTest } from '../support/rare.js'
import { createReleases } from '../support/releases.js'

/** @typedef {import('../support/browser.js').WatchedPage} Page */
/** @typedef {(wanted: import('playwright-core').Locator) => Promise<void>} Press */

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/** What presses a link or button. @type {Record<string, (page: Page) => Press>} */
const HANDS = {
  clicks: () => (wanted) => wanted.click(),

  keys: (page) => async (wanted) => {
    await wanted.focus()
    // From its neighbour: it is one of those that Tab comes to.
    for (const key of ['Shift+Tab', 'Tab']) await page.keyboard.press(key)
    assert.equal(await wanted.evaluate((element) => element === document.activeElement), true, `reached by Tab: ${wanted}`)
    await page.keyboard.press('Enter')
  }
}

/**
 * Somebody who does it twice from the overview, by clicks alone and by keys alone.
 * @param {import('node:test').TestContext} t
 * @param {{ url: string, signInLink: () => Promise<string> | string }} deck
 * @param {(page: Page, within: (most: number) => Presses) => Promise<void>} task `within`: in so many presses
 */
async function doInBothWays (t, deck, task) {
  const page = await browser.page({ reducedMotion: 'reduce' })
  t.after(() => page.context().close())
  await page.goto(await deck.signInLink())
  for (const handOf of Object.values(HANDS)) {
    await page.goto(deck.url)
    await page.locator('html[data-live=on]').waitFor()
    await task(page, (most) => countPresses(most, handOf(page)))
  }
}

/** @typedef {ReturnType<typeof countPresses>} Presses */
/** @param {number} most @param {Press} press */
function countPresses (most, press) {
  let count = 0
  return {
    /** @type {Press} */
    press (wanted) {
      count++
      return press(wanted)
    },
    assertFew () { assert.ok(count <= most, `${count} presses instead of ${most}`) }
  }
}

rareTest('in two presses a deploy is through and its result is seen, and in two the release before is back, after a look at what changes', async (t) => {
  const releases = await createReleases('answers-with-pid.js')
  const deck = await startDeckHere(t, releases.entry, { workers: 1, flags: ['--drain-idle-grace-ms', '100'] })
  await deck.until({ ready: 1 })
  const url = await deck.appUrl()
  let count = 0
  await doInBothWays(t, { url: deck.adminUrl, signInLink: deck.signInLink }, async (page, within) => {
    await releases.add(`next-${++count}`, app("response.end('next')"))
    const there = within(2)
    await there.press(page.getByRole('button', { name: 'Rolling deploy' }))
    await there.press(page.getByRole('dialog').getByRole('button', { name: 'Deploy', exact: true }))
    await page.locator('#rollout').getByText(/Deploy of r\d succeeded/).waitFor()
    there.assertFew()
    assert.equal(await (await fetch(url)).text(), 'next')

    const back = within(2)
    await back.press(page.getByRole('button', { name: 'Roll back to r1' }))
    assert.match(await page.getByRole('dialog').getByRole('row', { name: 'Folder' }).innerText(), /next-\d.*first/)
    await back.press(page.getByRole('dialog').getByRole('button', { name: 'Roll back', exact: true }))
    await page.locator('#rollout').getByText('Rollback to r1 succeeded').waitFor()
    back.assertFew()
    assert.notEqual(await (await fetch(url)).text(), 'next')
    assert.equal(await page.getByRole('button', { name: /^Roll back/ }).count(), 0, 'of a rollback nothing is offered')
  })
})

rareTest('in two it is clear why slot 3 died last night, with the place where it threw', async (t) => {
  await doInBothWays(t, await openShop(t), async (page, within) => {
    const { press, assertFew } = within(2)
    await press(page.locator('#workers').getByRole('row', { name: /^3 / }).getByRole('link', { name: /^Worker \d+$/ }))
    const death = page.locator('#worker-lives').getByRole('listitem').filter({ hasText: 'TypeError: Cannot read properties of undefined' })
    await press(death.getByRole('link', { name: 'see crash' }))
    await page.getByRole('heading', { level: 1, name: 'TypeError: Cannot read properties of undefined (reading \'total\')' }).waitFor()
    assert.match(await page.locator('.frame.is-own').first().innerText(), /sum\s+src\/shop\.js:12/)
    assertFew()
  })
})

rareTest('in one the release is named that brought the crash of this minute, and in two the output around a death is read', async (t) => {
  const shop = await openShop(t)
  tellCrash(shop)
  await doInBothWays(t, shop, async (page, within) => {
    const cause = within(1)
    await cause.press(page.locator('#recent').getByRole('listitem').filter({ hasText: 'RangeError: no such price' }).getByRole('link', { name: 'see crash' }).first())
    await page.getByText('Introduced in r3').waitFor()
    cause.assertFew()

    await page.goto(shop.url)
    const output = within(2)
    await output.press(page.locator('#recent').getByRole('link', { name: /^Worker 10 \(slot 2\) exited/ }))
    await output.press(page.getByRole('link', { name: 'Logs around this' }))
    await page.locator('#log-mark').waitFor()
    await page.getByText('POST /checkout 201 31 ms').waitFor()
    output.assertFew()
  })
})

rareTest('in three the flame graph of the hottest worker shows what it does', async (t) => {
  const shop = await openShop(t)
  const { items } = shop.deck.diagnostics
  const { file } = items[0]
  await doInBothWays(t, shop, async (page, within) => {
    const shares = (await page.locator('#workers td.cpu').allInnerTexts()).map(parseFloat)
    const hottest = shares.indexOf(Math.max(...shares))
    const { press, assertFew } = within(3)
    await press(page.locator('#workers tbody tr').nth(hottest).getByRole('link', { name: /^Worker \d+$/ }))
    await page.waitForURL('**/workers/*')
    await page.locator('html[data-live=on]').waitFor()
    await press(page.getByRole('button', { name: 'Record CPU profile' }))
    const look = page.locator('.look-list li').filter({ has: page.getByRole('progressbar') })
    await look.waitFor()
    items[0] = { ...items[0], state: 'done', bytes: 1000, finishedAt: new Date().toISOString(), file }
    await press(page.locator(`#look-${items[0].id}`).getByRole('link', { name: 'Flame graph' }))
    await page.locator('.flame-frame').filter({ hasText: 'priceOf' }).waitFor()
    assertFew()
  })
})

/** A worker dies of what no release before had. @param {Awaited<ReturnType<typeof openShop>>} shop */
function tellCrash ({ deck, history }) {
  const crash = aCrash({ at: new Date().toISOString(), slot: 2, worker: 10, release: 'r3', errorName: 'RangeError', errorMessage: 'no such price' })
  history.crashes.record('v1:price', crash, { culprit: 'priceOf (src/shop.js)' })
  deck.events.publish({ type: 'worker.exited', worker: 10, slot: 2, release: 'r3', cause: 'crash', code: 1, uptimeMs: 5000, message: 'worker 10 (slot 2) exited with code 1: RangeError: no such price', detail: { crash: 2, crashGroup: 2 } })
}
