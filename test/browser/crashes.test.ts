import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilLive, useBrowser } from '../support/browser.ts'
import { aCrash } from '../support/crash-record.ts'
import { markPage, startDashboard } from '../support/dashboard.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { rareTest } from '../support/rare.ts'

const browser = useBrowser()

rareTest('a real crash appears by itself, shows its stack and last words, and is resolved by a click', async (t) => {
  const deck = await startDeckHere(t, 'dies-on-request.cjs', { workers: 2, flags: ['--crash-grace-ms', '100'] })
  await deck.until({ ready: 2 })
  const app = await deck.appUrl()
  const page = await browser.visit(t, deck, '/crashes')
  const isSamePage = await markPage(page)
  await page.getByText('No crashes').waitFor()

  await fetch(`${app}/throw-in-request`).catch(() => null)
  const row = page.getByRole('row').filter({ hasText: 'RangeError boom' })
  await row.waitFor()
  assert.match(await row.innerText(), /throwsError \(test\/fixtures\/dies-on-request\.cjs\)/)
  await page.getByRole('link', { name: 'Crashes 1 open' }).waitFor()
  assert.equal(await isSamePage(), true)

  await row.getByRole('link').click()
  await page.waitForURL('**/crashes/1')
  await untilLive(page)
  await page.getByRole('heading', { level: 1, name: 'RangeError: boom' }).waitFor()
  assert.match(await page.locator('.frame.is-own').first().innerText(),
    /throwsError\s+test\/fixtures\/dies-on-request\.cjs:4:\d+/)
  assert.match(await page.locator('.frame.is-first .is-there').innerText(),
    /^4\s+function throwsError \(\) \{ throw new RangeError\('boom'\) \}$/)
  await page.getByText(/\d+ frames of Node\.js/).click()
  await page.locator('.frame:not(.is-own)').first().waitFor({ state: 'visible' })
  await page.getByText('Its last output on stderr was this stack.').waitFor()
  assert.match(await page.getByRole('group', { name: 'Requests in flight' }).innerText(), /GET\s+\/throw-in-request/)
  assert.deepEqual(await page.audit(), [])

  await deck.until({ ready: 2 })
  await fetch(`${app}/throw-in-request`).catch(() => null)
  await page.locator('.crash-kept li').nth(1).waitFor()
  // What was opened stays open.
  await page.locator('.frame:not(.is-own)').first().waitFor({ state: 'visible' })

  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.getByText('by the owner\'s token').waitFor()
  // Buttons that came by themselves work as well.
  await page.getByRole('button', { name: 'Reopen' }).click()
  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.getByRole('button', { name: 'Reopen' }).waitFor()
  await page.getByRole('link', { name: 'Crashes', exact: true }).first().click()
  await page.getByText('No open crashes').waitFor()
  await page.getByRole('link', { name: 'Resolved 1' }).click()
  await row.waitFor()

  await deck.until({ ready: 2 })
  await fetch(`${app}/throw-in-request`).catch(() => null)
  await page.getByText('No resolved crashes').waitFor()
  await page.getByRole('link', { name: 'Open 1' }).click()
  await page.getByText('Came back').waitFor()
  await page.goto(deck.adminUrl)
  await page.locator('#recent').getByRole('link', { name: 'see crash' }).first().click()
  await page.waitForURL(/\/crashes\/1\?crash=\d+$/)
  await page.getByRole('link', { name: 'Follow the newest' }).waitFor()
  assert.deepEqual(page.problems, [])
})

test('filters go into the address and keep their focus; states are a click away', async (t) => {
  const dashboard = await startDashboard(t, browser)
  for (const errorName of ['TypeError', 'RangeError'])
    dashboard.history.crashes.record(`v1:${errorName}`, aCrash({ errorName, errorMessage: `${errorName} happened` }), {
      culprit: null
    })
  const page = await dashboard.visit('/crashes')
  const isSamePage = await markPage(page)
  const ids = () => page.locator('#crash-groups tbody tr').evaluateAll((rows) => rows.map(({ id }) => id))
  await page.getByLabel('Search').pressSequentially('range')
  await page.waitForURL((url) => url.search === '?q=range')
  assert.deepEqual(await ids(), ['crash-group-2'])
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'crash-q')
  assert.equal(await isSamePage(), true)
  await page.getByRole('link', { name: 'Muted' }).click()
  await page.waitForURL((url) => url.search === '?state=muted&q=range')
  await page.getByText('No crash matches').waitFor()
  await page.getByRole('link', { name: 'Search all' }).click()
  await page.waitForURL((url) => url.search === '?state=all&q=range')
  assert.deepEqual(await ids(), ['crash-group-2'])
})

rareTest('whoever reads one crash keeps it while others happen', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const crash = (worker: number) => {
    dashboard.history.crashes.record('v1:x', aCrash({ worker, stderr: [`words of ${worker}`] }), { culprit: null })
    dashboard.deck.events.publish({ type: 'worker.exited', worker, slot: 1, cause: 'crash',
      detail: { crash: worker, crashGroup: 1 } })
  }
  crash(1)
  const page = await dashboard.visit('/crashes/1')
  const words = page.getByRole('group', { name: 'Last lines of stderr' })
  crash(2)
  await words.getByText('words of 2').waitFor()
  await page.getByRole('link', { name: 'Pin it' }).click()
  await page.waitForURL('**/crashes/1?crash=2')
  await untilLive(page)
  crash(3)
  await page.locator('#kept-3').waitFor()
  assert.match(await words.innerText(), /words of 2/)
  assert.equal(await page.locator('#kept-2 [aria-current]').count(), 1)
  await page.getByRole('link', { name: 'Follow the newest' }).click()
  await words.getByText('words of 3').waitFor()
})

rareTest('the focus goes from the button that has resolved a crash to the one in its place', async (t) => {
  const dashboard = await startDashboard(t, browser)
  dashboard.history.crashes.record('v1:x', aCrash(), { culprit: null })
  const page = await dashboard.visit('/crashes/1')
  await page.locator('#crash-resolve').press('Enter')
  await page.locator('#crash-reopen').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'crash-reopen')
  assert.deepEqual(page.problems, [])
})

rareTest('hostile text stays in its boxes, wide and narrow', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const long =
    `<img src=x onerror="document.title='pwned'"></pre><script>document.title='pwned'</script>\u202e\u0000\u001b[31m${
      'x'.repeat(16_000)
    }`
  dashboard.history.crashes.record('v1:x',
    aCrash({ errorName: long.slice(0, 200), errorMessage: long, stack: long, release: 'r'.repeat(60),
      nodeVersion: long.slice(0, 300), stderr: [long, long],
      requests: Array.from({ length: 40 }, () => ({ method: 'GET', path: long.slice(0, 500), ageMs: 1 })),
      causes: [1, 2, 3, 4, 5, 6].map((depth) => ({ depth, errorName: long, errorMessage: long, stack: long })),
      frames: [{ function: long, file: long, line: 1, column: 1, isInApp: true }, { function: long,
        file: `node_modules/${long}/x`, line: 1, column: 1, isInApp: false }] }), { culprit: long.slice(0, 300) })
  const page = await dashboard.visit('/crashes', { reducedMotion: 'reduce' })
  for (const path of ['/crashes', '/crashes?state=all&q=img', '/crashes/1', '/crashes/1?crash=9']) {
    await page.goto(dashboard.url + path)
    await untilLive(page)
    await page.evaluate(() =>
      document.querySelectorAll('details').forEach((details) => {
        details.open = true
      })
    )
    for (const [width, colorScheme] of [[1440, 'dark'], [390, 'light']] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.lookAs(colorScheme)
      assert.equal(
        await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth),
        true,
        `${path} is wider than a screen of ${width} pixels`
      )
    }
    assert.deepEqual(await page.audit(), [], path)
    assert.equal(await page.locator('img, main script').count(), 0, path)
    assert.doesNotMatch(await page.title(), /pwned$/)
  }
  page.allow(/404 \(Not Found\)/)
})

test('groups are chosen and settled together, and what is chosen outlives an update', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const crash = (errorName: string) =>
    dashboard.history.crashes.record(`v1:${errorName}`, aCrash({ errorName }), { culprit: null })
  for (const name of ['A', 'B', 'C']) crash(name)
  const page = await dashboard.visit('/crashes')
  const pick = (id: number) => page.getByLabel(`Select crash group ${id}`)
  await page.getByRole('button', { name: 'Mute' }).waitFor({ state: 'hidden' })
  await pick(1).check()
  await pick(3).check()
  await page.getByText('2 selected').waitFor()
  assert.deepEqual(await page.audit(), [])
  crash('D')
  dashboard.deck.events.publish({ type: 'crash.group-new', detail: { crashGroup: 4 } })
  await page.locator('#crash-group-4').waitFor()
  assert.deepEqual(await Promise.all([1, 2, 3, 4].map((id) => pick(id).isChecked())), [true, false, true, false])
  await page.getByRole('button', { name: 'Mute' }).click()
  await page.locator('#crash-group-1').waitFor({ state: 'detached' })
  assert.deepEqual([1, 2, 3, 4].map((id) => dashboard.deck.crashes.group(id).state), ['muted', 'open', 'muted', 'open'])
  await page.getByLabel('All on this page').check()
  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.getByText('No open crashes').waitFor()
})
