import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OWNER } from '../../server/config/actor-names.ts'
import { TOKEN } from '../support/admin.ts'
import { RULES_OF_COLOUR, untilLive, useBrowser } from '../support/browser.ts'
import { markPage, startHostDashboard } from '../support/dashboard.ts'
import { rareTest } from '../support/rare.ts'
import { followTraffic } from '../support/traffic.ts'
import { until } from '../support/until.ts'
import type { Page } from 'playwright-core'
import type { AppView } from '../../server/host/api-apps.ts'

const browser = useBrowser()

const SICK: Partial<AppView> = {
  health: { tone: 'bad', text: '1 of 2 workers serves; slot 2 keeps crashing',
    hint: 'Each restart waits longer than the last, up to a limit.' },
  workers: { ready: 1, desired: 2 },
  openCrashes: 2
}

const namesOn = (page: Page) => page.locator('.apps-name .row-link').allInnerTexts()

test('the list has the sick apps first, follows them, and leads to each', async (t) => {
  const host = await startHostDashboard(t, browser, { names: ['mail', 'search', 'shop'] })
  host.apps.closeApp('mail')
  const page = await host.visit()
  const wasKept = await markPage(page)
  assert.deepEqual(await namesOn(page), ['search', 'shop', 'mail'])
  await page.getByRole('heading', { name: 'All 2 apps are well' }).waitFor()

  host.apps.set('shop', { ...SICK, requestsPerSecond: 1234 })
  await page.getByRole('heading', { name: '1 of 3 apps needs attention' }).waitFor()
  assert.deepEqual(await namesOn(page), ['shop', 'search', 'mail'])
  assert.match(await page.locator('#app-shop').innerText(), /slot 2 keeps crashing[^]*1 \/ 2[^]*1,234/)
  host.apps.open('mail', { name: 'mail' })
  await page.locator('#app-mail').getByText('All 2 workers are ready').waitFor()
  assert.ok(await wasKept(), 'it came by itself')

  // Which app is sick, and why: one click.
  await page.getByRole('link', { name: '2 open crashes of shop' }).waitFor()
  await page.locator('#app-shop .row-link').click()
  await page.waitForURL(`${host.url}/apps/shop/`)
  await untilLive(page)
  await page.getByRole('link', { name: 'All apps' }).click()
  await page.waitForURL(`${host.url}/`)
})

rareTest('a new token is for the apps that are chosen, or for all where none is', async (t) => {
  const host = await startHostDashboard(t, browser, { names: ['mail', 'search', 'shop'] })
  const page = await host.visit('/access')
  const form = page.getByRole('region', { name: 'New token' })
  const create = async (name: string, apps: string[]) => {
    await form.getByLabel('Name').fill(name)
    for (const app of ['mail', 'search', 'shop'])
      await form.getByRole('checkbox', { name: app }).setChecked(apps.includes(app))
    await form.getByLabel('Your token, to confirm').fill(TOKEN)
    const answer = page.waitForResponse((response) => response.url().endsWith('/api/v1/tokens'))
    await form.getByRole('button', { name: 'Create' }).click()
    return (await (await answer).json()).apps
  }
  assert.deepEqual(await create('ci', ['mail', 'shop']), ['mail', 'shop'])
  assert.equal(await create('ada', []), null)
  await page.reload()
  await page.getByText('viewer of mail, shop').waitFor()
})

test('those that are selected are restarted, deployed, stopped and started together, and a refusal names the app', async (t) => {
  const host = await startHostDashboard(t, browser, { names: ['mail', 'search', 'shop'] })
  const page = await host.visit()
  const order = async (action: string) => {
    await page.locator(`#apps-${action}`).click()
    await page.locator(`#dialog-apps-${action} [type=submit]`).click()
  }
  assert.equal(await page.locator('#apps-stop').isVisible(), false)
  for (const name of ['mail', 'shop']) await page.getByLabel(`Select ${name}`).check()
  await page.locator('#apps-restart').click()
  assert.equal(await page.locator('#dialog-apps-restart .apps-chosen').innerText(), 'mail, shop')
  await page.locator('#dialog-apps-restart [type=submit]').click()
  await page.locator('#apps-stop').waitFor({ state: 'hidden' })
  assert.equal(await page.locator('dialog[open]').count(), 0)
  assert.deepEqual(
    ['mail', 'search', 'shop'].map((name) => host.apps.deck(name).dispatched.map(({ kind, actor }) => [kind, actor])),
    [[['restart', OWNER]], [], [['restart', OWNER]]]
  )

  await page.getByLabel('Select all').check()
  await order('deploy')
  await page.getByText(
    'mail: rollout 1 (restart) is running; shop: rollout 1 (restart) is running. Done for the other 1'
  ).waitFor()
  assert.deepEqual(host.apps.deck('search').dispatched.map(({ kind }) => kind), ['deploy'])
  await page.keyboard.press('Escape')

  await page.getByLabel('Select search').uncheck()
  await order('stop')
  await page.locator('#app-mail').getByText('Stopped').waitFor()
  await page.getByLabel('Select mail').check()
  await order('start')
  await page.locator('#app-mail').getByText('All 2 workers are ready').waitFor()
  assert.deepEqual(host.apps.orders.map(({ type, name, actor }) => [type, name, actor]), [['stop', 'mail', OWNER], [
    'stop',
    'shop',
    OWNER
  ], ['start', 'mail', OWNER]])
})

rareTest('a viewer selects nothing, and the page of a stopped app offers its start to an operator', async (t) => {
  const host = await startHostDashboard(t, browser)
  host.apps.closeApp('shop', { state: 'failed', reason: 'workers: expected an integer from 1 to 256, received "many"' })
  const viewer = await host.openPage()
  const { body: { url } } = await host.api('post', '/api/v1/sign-in-links').send({ name: 'ada', role: 'viewer' })
  await viewer.goto(url)
  await viewer.locator('#app-shop').waitFor()
  assert.equal(await viewer.locator('.pick, #app-picks').count(), 0)
  await viewer.goto(`${host.url}/apps/shop/`)
  await viewer.getByRole('heading', { name: 'shop has failed' }).waitFor()
  assert.deepEqual(await viewer.getByRole('main').getByRole('button').allInnerTexts(), [
    'Find a page, worker or release'
  ])

  const page = await host.visit()
  await page.goto(`${host.url}/apps/shop/logs`)
  await page.getByText('workers: expected an integer from 1 to 256, received "many"').waitFor()
  await page.getByRole('button', { name: 'Start shop' }).click()
  await page.waitForURL(`${host.url}/apps/shop/`)
  await untilLive(page)
  assert.deepEqual(host.apps.orders.map(({ type, name }) => [type, name]), [['start', 'shop']])
})

rareTest('an app that stops while its page is open says so there', async (t) => {
  const host = await startHostDashboard(t, browser)
  const page = await host.visit('/apps/shop/')
  page.allow(/response code: 409/)
  host.apps.closeApp('shop', { state: 'stopped' })
  await page.getByRole('heading', { name: 'shop is stopped' }).waitFor()
})

rareTest('from the pages of an app one comes to any other, by its switch, by the palette and by keys', async (t) => {
  const host = await startHostDashboard(t, browser, { names: ['mail', 'shop'], basePath: '/ops' })
  const page = await host.visit('/ops/apps/shop/logs')
  await page.getByLabel('Switch to another app').click()
  assert.equal(await page.locator('.deck-row[aria-current] .deck-name').innerText(), 'shop')
  await page.locator('.deck-row', { hasText: 'mail' }).click()
  await page.waitForURL(`${host.url}/ops/apps/mail/`)
  await untilLive(page)
  await page.keyboard.press('Control+k')
  await page.getByRole('option', { name: /^shop/ }).click()
  await page.waitForURL(`${host.url}/ops/apps/shop/`)
  await untilLive(page)
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.waitForURL(`${host.url}/ops/`)
  await untilLive(page)
  await page.keyboard.press('g')
  await page.keyboard.press('m')
  await page.waitForURL(`${host.url}/ops/docs`)
})

rareTest('many apps are found by a word and by how they are', async (t) => {
  const host = await startHostDashboard(t, browser, { names: Array.from({ length: 12 }, (_, n) => `app-${n}`) })
  host.apps.set('app-7', SICK)
  const page = await host.visit()
  await page.getByRole('searchbox').fill('APP-1')
  await page.waitForURL('**/?q=APP-1')
  await until(async () => (await namesOn(page)).length === 3, 'app-1, app-10 and app-11')
  await page.goto(`${host.url}/?show=sick`)
  assert.deepEqual(await namesOn(page), ['app-7'])
  await untilLive(page)
  host.apps.set('app-7', { health: { tone: 'ok', text: 'All 2 workers are ready', hint: '' } })
  await page.getByText('No app matches').waitFor()
})

rareTest('with one app, twelve and sixty it is within the screen, can be read, and is heard', async (t) => {
  for (const count of [1, 12, 60]) {
    const names = Array.from({ length: count }, (_, n) => n === 1 ? 'a'.repeat(60) : `app-${n}`)
    const host = await startHostDashboard(t, browser, { names })
    if (count > 1) {
      host.apps.set('app-2', { ...SICK,
        lastDeploy: { state: 'rolled-back', release: 'r12', finishedAt: new Date().toISOString() } })
      host.apps.closeApp('app-3', { state: 'failed', reason: 'x'.repeat(400) })
    }
    const page = await host.visit('/', { reducedMotion: 'reduce' })
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      for (const theme of ['light', 'dark'] as const) {
        await page.lookAs(theme)
        assert.deepEqual(await page.audit({ rules: theme === 'light' ? undefined : RULES_OF_COLOUR }), [],
          `${count} apps, ${width}, ${theme}`)
      }
      assert.equal(
        await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth),
        false,
        `${count} apps, ${width}`
      )
    }
  }
})

rareTest('sixty apps come in one small page, and of what changes figures alone and rows alone', async (t) => {
  const host = await startHostDashboard(t, browser, { names: Array.from({ length: 60 }, (_, n) => `app-${n}`) })
  const page = await host.openSignedIn()
  const traffic = await followTraffic(page)
  await page.goto(host.url, { waitUntil: 'networkidle' })
  await untilLive(page)
  assert.ok(traffic.bytes > 20_000 && traffic.bytes < 90_000, `${traffic.bytes} bytes`)
  assert.ok(traffic.requests < 12, traffic.urls.join(' '))
  const updates = () =>
    traffic.messages.filter((message) => message.startsWith('42[')).map((message) =>
      JSON.parse(message.slice(2)).at(-1)
    )
  assert.deepEqual(updates().flatMap(({ fragments }) => fragments), [], 'nothing comes twice')
  traffic.messages.length = 0
  host.apps.set('app-9', { requestsPerSecond: 777 })
  await page.locator('#app-app-9').getByText('777').waitFor()
  assert.deepEqual(updates().flatMap(({ fragments }) => fragments), [])
  host.apps.set('app-9', SICK)
  await page.getByRole('heading', { name: '1 of 60 apps needs attention' }).waitFor()
  const { parts } = updates().flatMap(({ fragments }) => fragments).find(({ id }) => id === 'apps')
  assert.equal(parts.filter((part: unknown) => typeof part === 'object').length, 59)
})

rareTest('the history of the host follows what happens to it, finds it, and leads to its apps', async (t) => {
  const host = await startHostDashboard(t, browser, { names: ['mail', 'shop'] })
  host.events.publish({ type: 'app.added', actor: 'ada', detail: { app: 'shop' } })
  for (const width of [390, 1440]) {
    const page = await host.openSignedIn({ width, colorScheme: width === 390 ? 'dark' : 'light' })
    await page.goto(host.url)
    await page.locator('.nav').getByRole('link', { name: 'History' }).click()
    await page.getByRole('heading', { name: 'History of all apps' }).waitFor()
    await untilLive(page)
    const message = `price ${width} is not a function`
    host.events.publish({ type: 'app.failed', actor: 'system', message, detail: { app: 'shop' } })
    const row = page.locator('#events tbody tr').filter({ hasText: `App shop failed: ${message}` })
    await row.waitFor()
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth),
      false, `${width}`)
    assert.deepEqual(await page.audit(), [])
    await page.locator('#filter-type').selectOption('token.*')
    await row.waitFor({ state: 'detached' })
    await page.locator('#filter-clear').click()
    await row.getByRole('link', { name: 'shop', exact: true }).click()
    await page.waitForURL(`${host.url}/apps/shop/`)
    await page.goto(`${host.url}/alerts`)
    await page.getByRole('heading', { name: 'New alert: Slack' }).waitFor()
    assert.deepEqual(await page.audit(), [])
  }
})
