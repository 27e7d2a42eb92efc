import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { startDashboard } from '../support/dashboard.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/** One of everything: every worker state, a rollout that runs and one that failed, long texts. */
async function busyDashboard (/** @type {import('node:test').TestContext} */ t) {
  const dashboard = await startDashboard(t, browser)
  const { deck } = dashboard
  const [worker] = deck.snapshot().workers
  const states = ['ready', 'starting', 'draining', 'stopping', 'unresponsive']
  deck.dispatch({ type: 'rollout', kind: 'deploy', note: 'a note '.repeat(40), actor: 'cli' })
  dashboard.finishRollout('failed', 'x'.repeat(300))
  deck.set({
    desiredWorkers: 6,
    app: { entry: `/srv/${'folder/'.repeat(30)}app.js`, cwd: '/srv', addresses: ['http://localhost:3000', `unix:/run/${'x'.repeat(90)}.sock`] },
    workers: [
      ...states.map((state, index) => ({ ...worker, id: index + 1, slot: index + 1, state })),
      { ...worker, id: null, pid: null, slot: 6, state: 'backoff', crashLooping: true, restarts: 12, vitals: null, retryAt: new Date(Date.now() + 30_000).toISOString() }
    ]
  })
  deck.webhooks.status = 404
  deck.webhooks.test({ id: 1, actor: 'cli' })
  deck.webhooks.status = 503
  deck.events.publish({ type: 'scale.changed', detail: { to: 6 } })
  deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, cause: 'crash', code: 1, message: 'y'.repeat(400), detail: { stack: 'z'.repeat(400), more: 1 } })
  return dashboard
}

const PAGES = ['/', '/history', '/history?type=worker.exited&rollout=1', '/history?slot=abc', '/history/3', '/logs', '/logs?slot=9', '/webhooks', '/access', '/docs', '/docs/webhooks', '/docs/options', '/docs/how-it-works', '/nowhere']

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const width of [1440, 390]) {
    test(`every page passes axe and fits, ${colorScheme}, ${width} pixels wide`, async (t) => {
      const dashboard = await busyDashboard(t)
      const page = await dashboard.visit('/', { colorScheme, width, reducedMotion: 'reduce' })
      for (const path of PAGES) {
        await page.goto(dashboard.url + path)
        assert.deepEqual(await page.audit(), [], path)
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true, `${path} is wider than the screen`)
      }
      dashboard.deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cli' })
      await page.goto(dashboard.url)
      await page.locator('#rollout-progress').waitFor()
      assert.deepEqual(await page.audit(), [], 'with a rollout')
      // What the page still asks for without its session is not meant.
      await page.goto('about:blank')
      await page.context().clearCookies()
      await page.goto(dashboard.url)
      assert.deepEqual(await page.audit(), [], 'sign-in')
      // Chromium reports the 400 and 404 that were asked for.
      assert.deepEqual(page.problems.filter((problem) => !/status of 40[04]/.test(problem)), [])
    })
  }
}

test('every dialog passes axe', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/', { reducedMotion: 'reduce' })
  for (const opener of ['#open-scale', '#open-restart', '#open-deploy', '#restart-1', '#open-message', '#message-1']) {
    await page.locator(opener).click()
    assert.deepEqual(await page.audit(), [], opener)
    await page.keyboard.press('Escape')
  }
})

test('the first Tab offers to skip to the content', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit()
  await page.keyboard.press('Tab')
  await page.getByRole('link', { name: 'Skip to the content' }).press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main')
})
