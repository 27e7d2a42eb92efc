import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createCrashRecorder } from '../../server/crashes/recorder.js'
import { openBrowser } from '../support/browser.js'
import { startDashboard } from '../support/dashboard.js'

const HOSTILE = '<img src=x onerror="document.title=\'pwned\'"></dd><script>document.title="pwned"</script>\u202e\u001b[31m & \'quoted\''

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/** A dashboard with a recorder: `crash` is what the master does when a worker dies. @param {import('node:test').TestContext} t */
async function start (t) {
  const dashboard = await startDashboard(t, browser)
  const second = (/** @type {number} */ n) => ({ at: new Date(n * 1000).toISOString(), rssBytes: 5e7 + n * 1e6, cpuPercent: n, loopDelayP99Ms: n, latencyP99Ms: n % 10 ? n : null, inFlight: n % 3 })
  const recorder = createCrashRecorder({ logs: { tail: () => ['first line', 'last words'] }, vitals: { lastMinute: () => Array.from({ length: 60 }, (_, n) => second(n)) }, lackedMemory: () => null })
  recorder.open({ store: dashboard.history.crashes, events: dashboard.deck.events })
  return {
    ...dashboard,
    crash (/** @type {string} */ name, /** @type {{ message?: string, file?: string, library?: string }} */ { message = 'boom', file = '/srv/app/shop.js', library = '/srv/app/node_modules/lib/index.js' } = {}) {
      const causes = [{ depth: 1, errorName: 'Error', errorMessage: `inner ${message}`, stack: 'Error: inner\n    at inner (/srv/app/db.js:1:1)' }]
      const requests = [{ method: 'GET', path: '/orders/1', ageMs: 1234 }]
      const memory = { rssBytes: 1e8, heapTotalBytes: 5e7, heapUsedBytes: 4e7, externalBytes: 1e6, arrayBuffersBytes: 0 }
      const stack = `TypeError: ${message}\n    at ${name} (${file}:12:3)\n    at call (${library}:1:1)\n    at emit (node:events:5:5)`
      const note = /** @type {any} */ ({ kind: 'exception', errorName: 'TypeError', errorMessage: message, stack, causes, requests, memory, nodeVersion: 'v20.0.0' })
      const exit = { type: 'worker.exited', cause: 'crash', code: 1, signal: null, slot: 1, worker: 7, pid: 9, release: 'r1', rollout: null, uptimeMs: 65_000, message: `worker 7 (slot 1) exited with code 1: ${message}`, detail: {} }
      dashboard.deck.events.publish(recorder.record(exit, { note, root: '/srv/app', ...recorder.examine({ slot: 1, worker: 7, pid: 9, code: 1, signal: null }) }))
    }
  }
}

test('a crash appears by itself, tells where it was and what was going on, and is resolved and comes back', async (t) => {
  const dashboard = await start(t)
  const page = await dashboard.visit('/crashes')
  await page.getByText('No open crashes').waitFor()
  dashboard.crash('total')
  await page.locator('.crash-item').waitFor()
  dashboard.crash('total')
  await page.locator('.crash-count', { hasText: '2 times' }).waitFor()
  assert.match(await page.locator('.crash-item').innerText(), /TypeError\s+boom\s+total \(shop\.js\)\s+crash\s+new in r1/)

  await page.locator('.crash-title').click()
  await page.waitForURL('**/crashes/1')
  await page.locator('html[data-live=on]').waitFor()
  assert.match(await page.locator('.frame.is-in-app').innerText(), /^total\s+shop\.js:12:3$/)
  assert.equal(await page.locator('.frame-fold summary').innerText(), '2 frames of packages and Node')
  assert.match(await page.locator('.crash-record').innerText(), /Caused by\s+Error: inner boom[^]*first line\s+last words[^]*GET\s+\/orders\/1\s+1\.2s[^]*Memory/)
  assert.ok(await page.locator('.sparkline path').evaluateAll((paths) => paths.length === 5 && paths.every((path) => String(path.getAttribute('d')).startsWith('M'))))
  assert.deepEqual(await page.locator('.occurrences a').evaluateAll((links) => links.map((link) => link.getAttribute('href'))), ['/crashes/1?crash=2', '/crashes/1?crash=1'])

  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.locator('.crash-head .badge', { hasText: 'Resolved' }).waitFor()
  assert.match(await page.locator('.crash-head-text').innerText(), /by dashboard/)
  dashboard.crash('total')
  await page.locator('.crash-head', { hasText: 'came back' }).waitFor()
  await page.locator('#crash-3').waitFor()
  await page.getByRole('button', { name: 'Mute' }).click()
  await page.locator('.crash-head .badge', { hasText: 'Muted' }).waitFor()
  assert.deepEqual(dashboard.history.page({ type: 'crash.*' }).items.map((/** @type {any} */ { type, actor }) => [type, actor]), [
    ['crash.group-muted', 'dashboard'], ['crash.group-returned', 'system'], ['crash.group-resolved', 'dashboard'], ['crash.group-new', 'system']
  ])
  await page.goto(`${dashboard.url}/crashes?state=muted`)
  await page.locator('.crash-item').waitFor()
  assert.deepEqual(page.problems, [])
})

test('groups are found by words and release, and the address says so', async (t) => {
  const dashboard = await start(t)
  dashboard.crash('checkout', { message: 'no such order' })
  dashboard.crash('login', { message: 'no such user' })
  const page = await dashboard.visit('/crashes')
  await page.getByRole('searchbox').pressSequentially('order')
  await page.waitForURL((url) => url.search === '?q=order')
  await page.locator('.crash-item').filter({ hasText: 'login' }).waitFor({ state: 'detached' })
  assert.equal(await page.locator('.crash-item').count(), 1)
  await page.getByLabel('Release').fill('r9')
  await page.getByText('No crash matches').waitFor()
  await page.goto(`${dashboard.url}/crashes?state=nonsense`)
  await page.getByText('state: expected open, resolved, muted or all, received "nonsense"').waitFor()
  await page.goto(`${dashboard.url}/crashes/99`)
  await page.getByText('There is no crash group 99').waitFor()
  await page.goto(`${dashboard.url}/crashes/1?crash=99`)
  await page.getByText('keeps no crash 99').waitFor()
})

test('whatever was thrown, the pages stay whole, fit the screen and pass axe', async (t) => {
  const dashboard = await start(t)
  dashboard.crash(HOSTILE, { message: HOSTILE, file: `/srv/app/${HOSTILE}.js` })
  dashboard.crash('long', { message: 'x'.repeat(16_000), file: `/srv/app/${'folder/'.repeat(60)}a.js` })
  for (const [colorScheme, width] of /** @type {const} */ ([['light', 1440], ['dark', 390]])) {
    const page = await dashboard.visit('/crashes?state=all', { colorScheme, width, reducedMotion: 'reduce' })
    for (const path of ['/crashes?state=all', '/crashes?state=resolved', '/crashes/1', '/crashes/2', '/history/1']) {
      await page.goto(dashboard.url + path)
      assert.deepEqual(await page.audit(), [], path)
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true, `${path} is wider than the screen`)
      assert.doesNotMatch(await page.title(), /^pwned$/)
    }
    await page.getByRole('link', { name: 'What it died of' }).click()
    await page.waitForURL('**/crashes/1?crash=1')
    assert.deepEqual(page.problems, [])
  }
})
