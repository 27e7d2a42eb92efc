import assert from 'node:assert/strict'
import { appendFileSync, utimesSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openShop, openShopInHost, type Shop } from '../screenshots/shop.ts'
import { type PageOptions, untilLive, useBrowser, type WatchedPage as Page } from '../support/browser.ts'
import { aCrash } from '../support/crash-record.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { app } from '../support/deploys.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import type { Locator } from 'playwright-core'
import type { createFakeFleet } from '../support/fake-fleet.ts'

type Press = (wanted: Locator) => Promise<void>

const browser = useBrowser()

/** What presses a link or button. */
const HANDS: Record<string, (page: Page) => Press> = { clicks: () => (wanted) => wanted.click(),
  keys: (page) => async (wanted) => {
    // Tab comes to a log as a whole; Enter leads to its newest line.
    const log = wanted.locator('xpath=ancestor::*[@role="log"]')
    const isInLog = await log.count() > 0
    await (isInLog ? log : wanted).focus()
    // From its neighbour: it is one of those that Tab comes to.
    for (const key of ['Shift+Tab', 'Tab', ...(isInLog ? ['Enter'] : [])]) await page.keyboard.press(key)
    assert.equal(await wanted.evaluate((element) => element === document.activeElement), true,
      `reached by Tab: ${wanted}`)
    await page.keyboard.press('Enter')
  } }

/**
 * Somebody who does it twice from the overview, by clicks alone and by keys alone.
 * @param task `within`: in so many presses
 */
async function doInBothWays (t: TestContext, deck: { adminUrl: string, signInLink: () => Promise<string> | string },
  task: (page: Page, within: (most: number) => Presses) => Promise<void>)
{
  const page = await browser.visit(t, deck, '/', { reducedMotion: 'reduce' })
  for (const handOf of Object.values(HANDS)) {
    await page.goto(deck.adminUrl)
    await untilLive(page)
    await task(page, (most) => countPresses(most, handOf(page)))
  }
}

type Presses = ReturnType<typeof countPresses>
function countPresses (most: number, press: Press) {
  let count = 0
  return { press (wanted: Parameters<Press>[0]) {
    count++
    return press(wanted)
  }, assertFew () {
    assert.ok(count <= most, `${count} presses instead of ${most}`)
  } }
}

rareTest(
  'in two presses a deploy is through and its result is seen, and in two the release before is back, after a look at what changes',
  async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const deck = await startDeckHere(t, releases.entry, { workers: 1, flags: ['--drain-idle-grace-ms', '100'] })
    await deck.until({ ready: 1 })
    const url = await deck.appUrl()
    let count = 0
    await doInBothWays(t, deck, async (page, within) => {
      await releases.add(`next-${++count}`, app('response.end(\'next\')'))
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
      assert.equal(await page.getByRole('button', { name: /^Roll back/ }).count(), 0,
        'of a rollback nothing is offered')
    })
  }
)

/**
 * What somebody wants to know or do, from the overview, and in how many presses at most. What only reads comes first.
 */
type Hand = { page: Page, press: Press, shop: Shop }
const TASKS: [string, number, (hand: Hand) => Promise<unknown>][] = [['is it well', 0,
  ({ page }) => page.getByRole('heading', { level: 1, name: /^All 4 workers are ready; 1 new crash in r6/ }).waitFor()],
  ['what killed worker 11, and its last lines', 2, async ({ page, press }) => {
    await press(
      page.locator('#workers tr', { has: page.locator('.slot', { hasText: /^3$/ }) }).getByRole('link', {
        name: /^Worker \d+$/
      })
    )
    await press(page.locator('#worker-lives').getByRole('link', { name: 'Worker 11', exact: true }))
    await page.getByRole('link', { name: 'Thrown in totalOf at lib/cart.js:14' }).waitFor()
    await page.locator('#worker-output').getByText('Cannot read properties of undefined').first().waitFor()
  }], ['which release brought the crash', 1, async ({ page, press }) => {
  await press(page.locator('#health').getByRole('link', { name: 'RangeError: no such price' }))
  await page.getByText('Introduced in r6').waitFor()
}], ['request req-7f3a, and what was around it', 2, async ({ page, press }) => {
  await press(page.getByRole('link', { name: 'Logs', exact: true }))
  await page.locator('#log-search').fill('req-7f3a')
  await page.keyboard.press('Enter')
  await page.waitForURL('**q=req-7f3a*')
  await press(page.locator('#log .line', { hasText: 'req-7f3a' }).locator('.line-time'))
  await page.locator('#log-mark').waitFor()
  await page.getByText(/GET \/cart 200 \d+ ms/).first().waitFor()
}], ['who restarted all', 0,
  ({ page }) => page.locator('#recent li', { hasText: 'Restart of all workers' }).getByText('by grace').waitFor()], [
  'which function eats CPU',
  3,
  async ({ page, press, shop: { deck: { diagnostics: { items } } } }) => {
    const { file } = items.findLast((item) => item.file)!
    const shares = (await page.locator('#workers td.cpu').allInnerTexts()).map(parseFloat)
    const hottest = shares.indexOf(Math.max(...shares))
    await press(page.locator('#workers tbody tr').nth(hottest).getByRole('link', { name: /^Worker \d+$/ }))
    await page.waitForURL('**/workers/*')
    await untilLive(page)
    await press(page.getByRole('button', { name: 'Record CPU profile' }))
    await page.locator('.look-list li').filter({ has: page.getByRole('progressbar') }).waitFor()
    items[0] = { ...items[0], state: 'done', bytes: 1000, finishedAt: new Date().toISOString(), file }
    await press(page.locator(`#look-${items[0].id}`).getByRole('link', { name: 'Busiest functions' }))
    await page.getByRole('table', { name: 'Functions' }).getByText('priceOf').waitFor()
  }
], ['a colleague may look', 3, async ({ page, press }) => {
  await press(page.getByRole('link', { name: 'Access' }))
  await page.locator('#new-link').getByLabel('Name').fill('alan')
  await press(page.getByRole('button', { name: 'Create link' }))
  await page.getByText('signs them in as viewer').waitFor()
  await press(page.getByRole('button', { name: 'Copy link' }))
}], ['an alert by webhook', 3, async ({ page, press }) => {
  await press(page.getByRole('link', { name: 'Alerts' }))
  await press(page.getByRole('link', { name: /^Webhook/ }))
  await page.getByLabel('Address').fill('https://ops.example.com/hook')
  await press(page.getByRole('button', { name: 'Add and send a test' }))
  await page.locator('.alert', { hasText: 'ops.example.com' }).getByText('The last message arrived').waitFor()
}], ['restart one', 2, async ({ page, press, shop }) => {
  await press(page.getByRole('button', { name: 'Restart worker 30 in slot 2' }))
  await press(page.getByRole('dialog').getByRole('button', { name: 'Restart worker' }))
  await page.locator('#rollout').getByText(/Restart/).first().waitFor()
  assert.equal(settle(shop).worker, 30)
}], ['scale', 2, async ({ page, press, shop }) => {
  await press(page.getByRole('button', { name: 'Scale' }))
  await page.getByRole('dialog').getByLabel('Workers').fill('6')
  await press(page.getByRole('dialog').getByRole('button', { name: 'Scale', exact: true }))
  await page.locator('#recent').getByText('to 6').waitFor()
  assert.equal(shop.deck.dispatched.at(-1)?.workers, 6)
}], ['deploy to one worker first', 2, async ({ page, press, shop }) => {
  await press(page.getByRole('button', { name: 'Rolling deploy' }))
  await page.getByLabel('Canary workers').fill('1')
  await press(page.getByRole('dialog').getByRole('button', { name: 'Deploy', exact: true }))
  await page.locator('#rollout').getByText('Deploy of r2').waitFor()
  assert.equal(settle(shop).strategy.canary.workers, 1)
}], ['take it back', 2, async ({ page, press, shop }) => {
  await press(page.getByRole('button', { name: 'Roll back to r4' }))
  await press(page.getByRole('dialog').getByRole('button', { name: 'Roll back', exact: true }))
  await page.locator('#rollout').getByText(/Rollback to r\d/).first().waitFor()
  assert.equal(settle(shop).kind, 'rollback')
}], ['deploy to all hosts', 3, async ({ page, press }) => {
  await press(page.getByRole('link', { name: 'Fleet' }))
  await press(page.getByRole('button', { name: 'Deploy to the fleet' }))
  await press(page.getByRole('dialog').getByRole('button', { name: 'Deploy', exact: true }))
  await page.locator('#fleet-rollout').getByText('Deploy').first().waitFor()
}]]

const BRIEF = { isBrief: true }

/** Each from the overview; `t` tells its seconds. */
async function doTasks (t: TestContext, shop: Shop,
  { hand = 'clicks', options }: { hand?: keyof typeof HANDS, options?: PageOptions } = {})
{
  tellIncident(shop)
  const page = await browser.visit(t, { adminUrl: shop.url, signInLink: shop.signInLink }, '/', {
    reducedMotion: 'reduce',
    ...options
  })
  for (const [name, most, task] of TASKS) {
    const from = performance.now()
    await page.goto(`${shop.url}/`)
    await untilLive(page)
    const { press, assertFew } = countPresses(most, HANDS[hand](page))
    await task({ page, press, shop })
    assertFew()
    t.diagnostic(`${name}: ${((performance.now() - from) / 1000).toFixed(2)} s`)
  }
  assert.deepEqual(page.problems, [])
}

test('thirteen things that operators want at night take at most three clicks from the overview', async (t) =>
  doTasks(t, await openShop(t, BRIEF)))

rareTest('they take no more by keys alone', async (t) => doTasks(t, await openShop(t, BRIEF), { hand: 'keys' }))

rareTest('they take no more on a phone',
  async (t) => doTasks(t, await openShop(t, BRIEF), { options: { width: 390, height: 844, hasTouch: true } }))

rareTest('they take no more in an app of a host', async (t) => doTasks(t, await openShopInHost(t, BRIEF)))

/** A worker dies of what no release before had; somebody restarts all; no rollout of the fleet is on. */
function tellIncident ({ deck, history }: Shop) {
  ;(deck.fleet as ReturnType<typeof createFakeFleet>).set({ rollout: null })
  const at = new Date().toISOString()
  const crash = aCrash({ at, slot: 2, worker: 30, release: 'r6', errorName: 'RangeError',
    errorMessage: 'no such price' })
  history.crashes.record('v1:price', crash, { culprit: 'priceOf (src/shop.js)' })
  deck.events.publish({ type: 'worker.exited', worker: 30, slot: 2, release: 'r6', cause: 'crash', code: 1,
    uptimeMs: 5000, message: 'worker 30 (slot 2) exited with code 1: RangeError: no such price',
    detail: { crash: 9, crashGroup: 3 } })
  deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'grace' })
  settle({ deck })
  write(deck, { slot: 1, hours: 0.01, text: 'GET /products req-7f3a 200 9 ms' })
}

/** A worker has written a line. `hours`: ago. */
function write (deck: Shop['deck'], { slot, hours, text }: { slot: number, hours: number, text: string }) {
  const file = path.join(deck.logs.folder, `slot-${slot}.stdout.log`)
  const at = new Date(Date.now() - hours * 3_600_000)
  appendFileSync(file, `${text}\n`)
  utimesSync(file, at, at)
}

type Order = { type: string, kind?: string, worker?: number, strategy: { canary: { workers: number } } }

/** Ends the rollout that runs. Returns the order that began it. */
function settle ({ deck }: Pick<Shop, 'deck'>) {
  const rollout = present(deck.snapshot().rollout)
  deck.set({ rollout: null })
  deck.events.publish({ type: 'rollout.succeeded', rollout: rollout.id, actor: rollout.actor,
    detail: { ...rollout, state: 'succeeded', done: true, finishedAt: new Date().toISOString() } })
  return present(deck.dispatched.at(-1)) as Order
}
