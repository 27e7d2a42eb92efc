import assert from 'node:assert/strict'
import { appendFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { profileOf } from '../support/cpu-profile.js'
import { startDashboard } from '../support/dashboard.js'
import { tempFolder } from '../support/folder.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/** A profile of 100 ms in which `hot` took most, below `handler`. @returns {string} its file */
function profileFile () {
  const file = path.join(tempFolder(), '2.cpuprofile')
  const profile = profileOf([
    [1, '(root)', [2, 6, 7]], [2, 'handler', [3, 4]], [3, 'hot', [5]], [4, 'cold'], [5, '<img src=x onerror=alert(1)>\u202e'], [6, 'handler', [], { url: 'node:internal/other', lineNumber: 1 }], [7, '(idle)']
  ], [[3, 60], [5, 10], [4, 20], [6, 10], [7, 900]])
  writeFileSync(file, JSON.stringify(profile))
  return file
}

test('from the overview to what makes a worker hot: its page, a profile, and the flame graph', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { items } = dashboard.deck.diagnostics
  const page = await dashboard.visit()
  await page.getByRole('link', { name: 'Worker 1', exact: true }).click()
  await page.locator('html[data-live=on]').waitFor()
  await page.getByRole('button', { name: 'Record CPU profile' }).click()
  await page.getByRole('progressbar', { name: 'Progress of CPU profile 2' }).waitFor()
  assert.equal(await page.locator('#looks-heap').getAttribute('aria-disabled'), 'true')
  items[0] = { ...items[0], state: 'done', bytes: 1000, finishedAt: new Date().toISOString(), file: profileFile() }
  await page.getByRole('link', { name: 'Flame graph' }).click()

  const frames = page.locator('.flame-frame')
  await page.getByText('Busy for 100 ms of 1.0 s (10.0%)').waitFor()
  const widths = new Map(await frames.evaluateAll((all) => all.map((one) => /** @type {[string, number]} */ ([String(one.querySelector('text')?.textContent), Number(one.querySelector('rect')?.getAttribute('width'))]))))
  const whole = Number(widths.get('All')) + 1
  assert.ok(Math.abs((Number(widths.get('hot')) + 1) / whole - 0.7) < 0.01, 'as wide as its share of the busy time')

  const rows = page.locator('#flame-functions tr')
  assert.deepEqual((await rows.first().innerText()).split(/\s+/).slice(0, 6), ['hot', 'app.js:4', '60', 'ms', '70', 'ms'])
  assert.match(await page.locator('#flame-functions').innerText(), /<img src=x onerror=alert\(1\)><U\+202E>/)

  await frames.filter({ hasText: 'hot' }).click()
  await page.locator('#flame-reset[aria-disabled=false]').waitFor()
  assert.deepEqual(await frames.locator('text').allTextContents().then((texts) => texts.slice(0, 3)), ['All', 'handler', 'hot'])
  assert.match(await page.locator('#flame-detail').innerText(), /^hot app\.js:4 · total 70 ms \(70\.0%\) · self 60 ms$/)
  await page.locator('#flame-reset').click()
  await frames.filter({ hasText: 'cold' }).waitFor()

  await page.getByLabel('Find functions and files').fill('HANDLER')
  await page.getByText('2 frames marked: 100 ms, 100% of the busy time.').waitFor()
  await rows.first().getByRole('button').focus()
  await page.keyboard.press('Enter')
  await page.getByText('1 frame marked: 70 ms, 70.0% of the busy time.').waitFor()
  assert.equal(await page.locator('.flame-frame.is-marked').textContent(), 'hot')
  assert.deepEqual(await page.audit(), [])
  assert.deepEqual(page.problems, [])
})

test('a file that is no profile is told, and the page goes on', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const file = path.join(tempFolder(), 'x')
  writeFileSync(file, '{"nodes": []}')
  dashboard.deck.diagnostics.items.unshift({ ...dashboard.deck.diagnostics.items[0], id: 2, kind: 'cpu-profile', file })
  const page = await dashboard.visit('/workers/1?profile=2')
  await page.getByText('The profile cannot be shown: This file is no CPU profile.').waitFor()
  assert.deepEqual(page.problems, [])
})

test('the page shows live what is in flight and what the slot writes, as text, and tells the end', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { deck } = dashboard
  const page = await dashboard.visit('/workers/1')
  await page.getByText('No requests in flight.').waitFor()
  deck.requests.push({ method: 'GET', path: '/<b>slow</b>\u202e', ageMs: 12_300 })
  await page.locator('#worker-requests-rows tr').waitFor()
  assert.deepEqual(await page.locator('#worker-requests-rows td').allInnerTexts(), ['GET', '/<b>slow</b><U+202E>', '12 s'])
  appendFileSync(path.join(deck.logs.folder, 'slot-1.stdout.log'), 'a new line\n')
  await page.locator('#worker-log-lines').getByText('a new line').waitFor()

  await page.locator('#worker-kill').click()
  await page.getByRole('button', { name: 'Kill worker' }).click()
  await page.locator('dialog[open]').waitFor({ state: 'hidden' })
  assert.deepEqual(deck.dispatched, [{ type: 'kill-worker', worker: 1, actor: deck.dispatched[0].actor }])
  deck.events.publish({ type: 'worker.forked', worker: 1, slot: 1, pid: 4001, release: 'r1' })
  deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, pid: 4001, release: 'r1', cause: 'killed', signal: 'SIGKILL', uptimeMs: 1000, message: 'worker 1 (slot 1) was ended by SIGKILL' })
  deck.set({ workers: deck.snapshot().workers.filter((/** @type {any} */ { id }) => id !== 1) })
  deck.events.publish({ type: 'worker.forked', worker: 3, slot: 1, pid: 4003, release: 'r1' })
  await page.getByText('Then worker 3 got slot 1.').waitFor()
  assert.match(await page.locator('#worker-head').innerText(), /Worker 1 \(slot 1\) was ended by SIGKILL/)
  assert.equal(await page.locator('#worker-kill').count(), 0)
  // It may have asked what is in flight just when the worker had gone.
  assert.deepEqual(page.problems.filter((problem) => !problem.includes('404 (Not Found)')), [])
})
