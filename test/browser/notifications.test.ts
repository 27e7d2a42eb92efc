import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAdmin } from '../../server/admin/listener.ts'
import { behindPort } from '../support/fake-apps.ts'
import { TOKEN } from '../support/admin.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { type Dashboard, startDashboard } from '../support/dashboard.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { Page } from 'playwright-core'

const browser = useBrowser()

/** A browser without a screen shows none: this one notes them, and whether it asked its user. */
function noteNotifications () {
  const { sessionStorage } = window
  const shown: object[] = []
  class Noted {
    constructor (title: string, options: object) {
      shown.push(Object.assign(this, { title, ...options, close () {} }))
    }
    static get permission () {
      return sessionStorage.getItem('permission') ?? 'default'
    }
    static async requestPermission () {
      sessionStorage.setItem('permission', 'granted')
      return 'granted'
    }
  }
  Object.assign(window, { Notification: Noted, shown, isLookedAt: false })
  document.hasFocus = () => window.isLookedAt
}

/** Signed in, on the settings, with the dialog open. */
async function openChoices (dashboard: Dashboard) {
  const page = await dashboard.openPage()
  await page.addInitScript(noteNotifications)
  await page.clock.install()
  await page.goto(dashboard.admin.signInLink())
  await page.goto(`${dashboard.url}/settings`)
  await untilLive(page)
  await page.getByRole('button', { name: 'Notifications' }).click()
  return page
}

/** What is told next comes after this wish. */
async function untilHeard (page: Page, dashboard: Dashboard, choose: () => Promise<void>) {
  const newestKnown = () => page.evaluate(() => localStorage.getItem('clusterdeck-notified'))
  await until(async () => await newestKnown() !== null, 'the browser to have asked')
  const { id } = dashboard.deck.events.publish({ type: 'scale.changed', detail: { to: 6 } })
  await choose()
  await until(async () => await newestKnown() === String(id), 'the wish to be heard')
}

const shownOn = (page: Page): Promise<{ title: string, body: string }[]> =>
  page.evaluate(() => window.shown.map(({ title, body }) => ({ title, body })))
const untilShown = (page: Page, count: number) =>
  page.waitForFunction((expected) => window.shown.length === expected, count)

test('whoever looks at something else is told of what they have chosen, once in a while, and is led to it', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await openChoices(dashboard)
  const crash = (slot: number) =>
    dashboard.deck.events.publish({ type: 'worker.exited', cause: 'crash', worker: slot, slot, code: 1,
      uptimeMs: 5000 })
  const dialog = page.getByRole('dialog', { name: 'Notifications' })
  await untilHeard(page, dashboard, async () => {
    await dialog.getByRole('checkbox', { name: 'A crash a worker' }).focus()
    await page.keyboard.press('Space')
  })
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })

  dashboard.deck.events.publish({ type: 'worker.crash-looping', slot: 1, message: 'slot 1 crash-loops' })
  const [first] = [1, 2, 1].map(crash)
  await untilShown(page, 1)
  assert.deepEqual(await shownOn(page), [{ title: `Crash · ${await page.locator('#whose').getAttribute('title')}`,
    body: 'Worker 1 (slot 1) exited with code 1 after 5.0 s' }])
  await page.clock.fastForward(5000)
  await untilShown(page, 2)
  assert.match((await shownOn(page))[1].title, /^Crash \(2 more\) · /)

  await page.evaluate(() => {
    window.isLookedAt = true
  })
  const { id } = crash(2)
  await page.waitForFunction((last) => localStorage.getItem('clusterdeck-notified') === String(last), id)
  assert.equal((await shownOn(page)).length, 2)
  await page.evaluate(() => window.shown[0].onclick())
  await page.waitForURL(`**/history/${first.id}`)
})

rareTest('a master that does not answer is told of after a while, and what was missed meanwhile once it does',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const page = await openChoices(dashboard)
    await untilHeard(page, dashboard, () => page.getByRole('checkbox', { name: 'A lost master' }).check())
    await page.keyboard.press('Escape')
    page.allow(/ERR_CONNECTION_REFUSED/)
    await dashboard.admin.close()
    await page.locator('html[data-live=off]').waitFor()
    await page.clock.fastForward(15_000)
    await untilShown(page, 1)
    assert.match((await shownOn(page))[0].body, /^The master has not answered since .*\d\d:\d\d:\d\d\.$/)

    const { deck, history, port } = dashboard
    deck.events.publish({ type: 'master.stopped', cause: 'master-lost', message: 'the master was lost' })
    const successor = createAdmin({ ...behindPort(deck, history), token: TOKEN, port })
    t.after(() => successor.close())
    await successor.listen()
    await untilLive(page)
    await untilShown(page, 2)
    assert.equal((await shownOn(page))[1].body, 'The master was lost')
    await page.reload()
    await untilLive(page)
    assert.deepEqual(await shownOn(page), [])
  })

rareTest('a browser that was told not to notify says so, and keeps what was chosen', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await openChoices(dashboard)
  await page.evaluate(() => sessionStorage.setItem('permission', 'denied'))
  await page.getByRole('checkbox', { name: 'A crash loop' }).check()
  await page.getByText('Notifications of this address are blocked in the settings of the browser.').waitFor()
  assert.deepEqual(await page.audit(), [])
  await page.getByRole('button', { name: 'Show a test notification' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.reload()
  await page.getByRole('button', { name: 'Notifications' }).click()
  assert.equal(await page.getByRole('checkbox', { name: 'A crash loop' }).isChecked(), true)
  assert.equal(await page.getByRole('checkbox', { name: 'A crash a worker' }).isChecked(), false)
})
