import assert from 'node:assert/strict'
import { test } from 'node:test'
import { useBrowser } from '../support/browser.ts'
import { markPage } from '../support/dashboard.ts'
import { startDeck } from '../support/deck.ts'

const browser = useBrowser()

test('a real cluster: sign in by a link, see a kill, deploy by a click, find the kill in the history', async (t) => {
  const deck = await startDeck(t, 'boots-slowly.js', { workers: 2, env: { BOOT_MS: '1000' } })
  const { workers } = await deck.until({ ready: 2 })
  const page = await browser.visit(t, deck)
  await page.getByRole('heading', { level: 1, name: 'All 2 workers are ready' }).waitFor()
  const isSamePage = await markPage(page)

  process.kill(workers[1].pid, 'SIGKILL')
  await page.locator('#workers tbody').getByText('Starting').waitFor()
  await page.locator('#recent').getByText(/Worker 2 \(slot 2\) was ended by SIGKILL/).waitFor()
  await page.getByRole('heading', { level: 1, name: 'All 2 workers are ready' }).waitFor()

  await page.getByRole('button', { name: 'Rolling deploy' }).click()
  await page.getByRole('dialog').getByRole('button', { name: /deploy|roll out/i }).click()
  const progress = page.getByRole('progressbar')
  await progress.waitFor()
  assert.equal(await progress.getAttribute('max'), '2')
  await page.locator('#rollout-progress[value="1"]').waitFor()
  await page.locator('#rollout').getByText('Deploy of r2 succeeded').waitFor()
  assert.equal(await isSamePage(), true)
  const after = await deck.until({ ready: 2 })
  assert.deepEqual(after.workers.map(({ release }) => release), ['r2', 'r2'])

  await page.getByRole('link', { name: 'History', exact: true }).first().click()
  await page.locator('main').getByLabel('Type').selectOption({ label: 'Exits' })
  await page.waitForURL(/type=/)
  const killed = page.getByRole('row').filter({ hasText: 'SIGKILL' })
  // What was there before the filter goes once its answer is there.
  await page.getByRole('row').filter({ hasText: 'crash.group-new' }).waitFor({ state: 'detached' })
  await killed.waitFor()
  assert.equal(await killed.count(), 1)
  assert.match(await killed.innerText(), /killed/)
  assert.equal(await page.getByRole('row').filter({ hasText: 'worker.ready' }).count(), 0)
  assert.deepEqual(page.problems, [])
})
