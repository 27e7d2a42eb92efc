import assert from 'node:assert/strict'
import { appendFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { OWNER } from '../../server/config/actor-names.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { profileOf } from '../support/cpu-profile.ts'
import { aMember, createFakeFleet } from '../support/fake-fleet.ts'
import { markPage, startDashboard, visit } from '../support/dashboard.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import type { Locator, Page } from 'playwright-core'

const browser = useBrowser()

rareTest('one reads from page to page, and a link to a heading leads below the top bar', async (t) => {
  const { page } = await visit(t, browser, '/')
  await page.getByRole('link', { name: 'Manual' }).click()
  await page.locator('.doc').getByRole('link', { name: 'How it works' }).click()
  await page.getByRole('heading', { level: 1, name: 'How it works' }).waitFor()
  await page.getByRole('link', { name: 'Upgrade' }).click()
  await page.waitForURL('**/docs/deploying#upgrade')
  const [heading, bar] = await Promise.all([page.getByRole('heading', { name: 'Upgrade' }).boundingBox(),
    page.locator('.topbar').boundingBox()])
  assert.ok(heading && bar && heading.y >= bar.height && heading.y < 900, `at ${heading?.y}`)
  await page.getByRole('link', { name: 'Next: Releases' }).click()
  await page.getByRole('heading', { level: 1, name: 'Releases' }).waitFor()
})

rareTest('on a narrow screen each option is a card, no code is cut off, and the index is one step away', async (t) => {
  const { page } = await visit(t, browser, '/docs/options', { width: 390 })
  const cells = page.locator('.doc-table tr', { hasText: 'how many workers run' }).locator('td')
  const [key, flag] = await Promise.all([0, 2].map((index) => cells.nth(index).boundingBox()))
  assert.ok(key && flag && flag.y > key.y && flag.x === key.x)
  assert.deepEqual(
    await page.locator('.doc-table, .doc pre').evaluateAll((all) =>
      all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ textContent }) => textContent)
    ),
    []
  )
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390)
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Manual' }).click()
  await page.getByRole('heading', { level: 1, name: 'Manual' }).waitFor()
})

test('on a narrow screen no field and no page is cut, and the count of the fleet stays in sight', async (t) => {
  const members = [aMember({ member: 'web-1', isOwn: true }), aMember({ member: 'web-2', isSilent: true })]
  const dashboard = await startDashboard(t, browser)
  dashboard.deck.fleet = createFakeFleet({ members })
  const page = await dashboard.visit('/docs', { width: 390 })
  const within = (box: { x: number, width: number } | null) => box && box.x >= 0 && box.x + box.width <= 390
  assert.ok(within(await page.locator('#silent-count').boundingBox()))
  assert.ok(within(await page.locator('.nav [aria-current]').boundingBox()))
  for (const [path, label] of [['/logs', 'Go to UTC'], ['/history', 'From UTC'], ['/history', 'To UTC']]) {
    await page.goto(dashboard.url + path)
    const field = page.getByRole('textbox', { name: label })
    assert.ok(within(await field.boundingBox()))
    await field.fill('2026-12-31 23:59:59')
    assert.ok(await field.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth), `${label} is cut`)
  }
})

test('on a narrow screen what scrolls sideways fades at its end, and figures and runs stay in sight', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { deck } = dashboard
  const inside = { items: deck.snapshot().workers.map((worker) => ({ ...worker, orphan: false, drifted: false })) }
  deck.fleet = createFakeFleet({ answer: () => ({ status: 200, body: inside }) })
  Object.assign(deck.metricsOfApp, { times: [Date.now() - 15_000, Date.now()], releases: ['r1', 'r1'],
    metrics: [{ name: 'carts', help: '', type: 'gauge',
      series: [{ labels: {}, lines: [{ label: '', values: [1, 2] }] }] }] })
  for (const code of [1, ...Array.from({ length: 19 }, () => 0)]) {
    await deck.jobs.runNow('nightly', { actor: 'ada' })
    await deck.jobs.commands.at(-1)?.finish({ code })
  }

  const page = await dashboard.visit('/app-metrics', { width: 390 })
  const widthOf = async (selector: string) => Number((await page.locator(selector).first().boundingBox())?.width)
  assert.ok(await widthOf('.spark svg') > 250)
  await page.goto(`${dashboard.url}/jobs`)
  const heightOf = async (row: Locator) => Number((await row.first().boundingBox())?.height)
  assert.ok(await heightOf(page.locator('#job-runs tbody tr')) < 45, 'a run has one line')
  for (const place of ['/jobs', `/jobs/runs/${deck.jobs.runs('nightly', {}).items[0].id}`]) {
    await page.goto(dashboard.url + place)
    const strip = page.locator('.strip', { has: page.locator('.tone-bad:visible') })
    assert.ok(await heightOf(strip) < 30, `${place} shows the run that failed, in one line`)
  }
  deck.configure({ wanted: { 'rollout.minReadyMs': 7000 }, actor: 'ben' })
  await page.goto(`${dashboard.url}/settings`)
  const setting = page.locator('#setting-rollout-minReadyMs')
  const middleOf = async (part: Locator) => {
    const { y = 0, height = 0 } = await part.boundingBox() ?? {}
    return y + height / 2
  }
  const [mark, change] = [setting.getByText('changed', { exact: true }),
    setting.getByRole('button', { name: 'Change rollout' })]
  assert.ok(Math.abs(await middleOf(mark) - await middleOf(change)) < 4, 'what changes a value stands beside it')
  assert.ok(await setting.locator('.setting-short').evaluate((text) => text.scrollWidth <= text.clientWidth))
  await page.goto(`${dashboard.url}/fleet/members/web-2`)
  assert.match(await page.locator('.fleet-inside tbody tr').first().innerText(), /#1\nr1\n\d/, 'release and uptime')

  for (const path of ['/', '/history', '/logs', '/settings']) {
    await page.goto(dashboard.url + path)
    // What scrolls up and down as well is no menu.
    const rows = await page.locator('nav, nav *, fieldset').evaluateAll((all) =>
      all.filter((row) => row.scrollWidth > row.clientWidth && getComputedStyle(row).overflowX === 'auto').map(
        (row) => {
          const { position, width } = getComputedStyle(row, '::after')
          return [row.className, position === 'sticky' && parseFloat(width) >= 40]
        }
      )
    )
    assert.ok(rows.length > 0 && rows.every(([, fades]) => fades), `${path}: ${JSON.stringify(rows)}`)
  }
})

test('the pages of a log begin and end where the top bar does', async (t) => {
  const { page } = await visit(t, browser, '/logs', { width: 1920 })
  const edges = (selector: string) =>
    page.locator(selector).evaluate((
      element
    ) => [element.getBoundingClientRect().left, element.getBoundingClientRect().right])
  const [[left], [, right]] = [await edges('.topbar .brand'), await edges('.topbar-end')]
  assert.deepEqual(await edges('#log'), [left, right])
})

function untilTitle (page: Page, start: string) {
  return page.waitForFunction((expected) => document.title.startsWith(expected), start)
}

test('every page says whose it is, and its tab how much is wrong, or that nobody can tell', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/docs')
  const icon = () => page.locator('#trouble').getAttribute('href')
  assert.equal(await page.title(), `Manual · app on ${os.hostname()}`)
  assert.match(await page.locator('.topbar .brand').innerText(), new RegExp(`app\\W+on\\W+${os.hostname()}`))
  assert.match(String(await icon()), /favicon\.svg/)

  dashboard.setWorker(1, { state: 'unresponsive' })
  await untilTitle(page, '(1) Manual')
  assert.match(String(await icon()), /favicon-bad\.svg/)
  dashboard.setWorker(1, { state: 'ready' })
  await untilTitle(page, 'Manual')
  assert.match(String(await icon()), /favicon\.svg/)

  page.allow(/ERR_INTERNET_DISCONNECTED/)
  await page.context().setOffline(true)
  await page.evaluate(() => window.dispatchEvent(new Event('offline')))
  await untilTitle(page, '(no connection) Manual')
  assert.match(String(await icon()), /favicon-lost\.svg/)
  await page.context().setOffline(false)
  await untilTitle(page, 'Manual')
  assert.match(String(await icon()), /favicon\.svg/)
})

rareTest('times are those of the browser or UTC, as somebody has chosen last', async (t) => {
  const dashboard = await startDashboard(t, browser)
  dashboard.deck.events.publish({ type: 'scale.changed', detail: { to: 6 } })
  const page = await dashboard.visit('/history', { timezoneId: 'Asia/Tokyo' })
  const hours = async () => Number((await page.locator('time[data-clock]').last().innerText()).slice(-8, -6))
  const local = await hours()
  await page.getByRole('button', { name: 'Local time: switch to UTC' }).click()
  await page.getByRole('button', { name: 'UTC: switch to local time' }).waitFor()
  assert.equal((await hours() + 9) % 24, local)
  await page.reload()
  await page.getByRole('button', { name: 'UTC: switch to local time' }).waitFor()
  assert.equal((await hours() + 9) % 24, local)
})

test('a setting is changed by a click, and the page says where each value comes from', async (t) => {
  const { page } = await visit(t, browser, '/')
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.waitForURL('**/settings')
  await untilLive(page)
  const isSamePage = await markPage(page)
  const row = page.locator('#setting-drain-deadlineMs')
  assert.match(await row.innerText(), /^drain\.deadlineMs\s+30 s\s+How long a draining worker may [^]*Change/)
  await row.getByText('drain.deadlineMs').first().click()
  await row.getByText('A change applies at once.').waitFor()

  await row.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog', { name: 'Change drain.deadlineMs' })
  assert.match(await dialog.innerText(),
    /Expected: an integer from 0 to 2147483647, or one with its unit such as "30 s"/)
  const value = dialog.getByLabel('Value')
  assert.equal(await value.inputValue(), '30000')
  await value.fill('5 MB')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await page.getByText(
    'drain.deadlineMs: expected an integer from 0 to 2147483647, or one with its unit such as "30 s", received "5 MB"'
  ).waitFor()
  for (const typed of ['90000', '1.5 min']) {
    await value.fill(typed)
    await dialog.getByText('= 1 min 30 s').waitFor()
  }
  await value.fill('10 s')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await page.locator('#group-changed').getByText('10 s').waitFor()
  assert.match(await row.innerText(),
    /10 s changed default 30 s[^]*Changed by the owner's token[^]*Configured: 30 s, default/)
  assert.equal(await dialog.isVisible(), false)

  await page.reload()
  assert.equal(await page.locator('.setting-list summary > .mono').first().innerText(), 'drain.deadlineMs')
  await page.getByRole('searchbox').fill('nowhere')
  await page.getByText('No setting matches “nowhere”.').waitFor()
  await page.getByRole('searchbox').fill('idle grace')
  await page.locator('#setting-drain-idleGraceMs').getByText('A change applies').waitFor()
  assert.equal(await isSamePage(), false)
})

rareTest('a change that is based on what somebody else has changed meanwhile is refused, and said', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/settings')
  await untilLive(page)
  await page.locator('#setting-drain-deadlineMs').getByRole('button', { name: 'Change' }).click()
  dashboard.deck.configure({ wanted: { 'drain.deadlineMs': 7000 }, actor: 'ben' })
  await page.locator('#setting-drain-deadlineMs').getByText('7 s').waitFor()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Value').fill('9000')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await dialog.getByText('ben has set it to 7000 since you opened this. Nothing was changed.').waitFor()
  assert.equal(dashboard.deck.settings.list().find(({ name }) => name === 'drain.deadlineMs')?.value, 7000)
})

test('the form of a webhook shows what its body comes to while it is typed, and what is wrong with it', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.visit('/alerts?new=webhook')
  const shown = page.locator('#alert-body-shown')
  const plain = await shown.innerText()
  const field = page.getByLabel(/^Body/)
  await field.fill('{ "summary": "{{title}}", "id": "{{id}}" }')
  assert.deepEqual(JSON.parse(await shown.innerText()), { summary: 'app: New crash', id: '4711' })
  await field.fill('{ "summary": "{{titel}}" }')
  assert.match(await shown.innerText(), /^Expected placeholders among .*, received \{\{titel\}\}$/)
  await page.getByLabel('Address').fill('https://example.com/hook')
  await page.getByRole('button', { name: 'Add and send a test' }).click()
  assert.equal(await field.evaluate((area) => area.matches(':invalid')), true, 'it is not sent')
  await field.fill('')
  assert.equal(await shown.innerText(), plain)
  await field.fill('{ "text": "{{title}}" }')
  await page.getByRole('button', { name: 'Add and send a test' }).click()
  await page.waitForURL(`${dashboard.url}/alerts`)
  assert.equal(dashboard.deck.alerts.list()[0].hasBody, true)
})

test('three clicks from the overview tell a channel of Slack, and the page says what it answered; a failure is sent again by another click', async (t) => {
  const dashboard = await startDashboard(t, browser)
  dashboard.deck.alerts.status = 404
  const page = await dashboard.visit('/')
  await page.getByRole('link', { name: 'Alerts' }).click()
  await page.getByRole('link', { name: 'Slack' }).click()
  await page.getByLabel('Webhook URL').fill('https://hooks.example.com/services/T0/B0/hidden-key')
  await page.getByRole('button', { name: 'Add and send a test' }).click()
  const alert = page.getByRole('region', { name: /^Slack/ })
  await alert.getByText('answered 404').first().waitFor()
  await untilLive(page)
  assert.equal(new URL(page.url()).search, '')
  assert.match(await alert.innerText(), /All problems[^]*added .+ by the owner's token[^]*Nobody has this address/)

  const isSamePage = await markPage(page)
  dashboard.deck.alerts.status = 204
  await alert.getByText('1 message, 1 not delivered').click()
  await alert.getByRole('button', { name: 'Try again' }).click()
  await alert.getByText('The last message arrived').waitFor()
  assert.equal(await isSamePage(), true)
  assert.doesNotMatch(await page.content(), /hidden-key/)
  const { items } = dashboard.history.page({ type: ['alert.*'] })
  assert.deepEqual(items.map(({ type, actor }) => [type, actor]), [['alert.retried', OWNER], ['alert.failed', 'system'],
    ['alert.tested', OWNER], ['alert.added', OWNER]])

  await alert.getByRole('button', { name: 'Pause' }).click()
  await alert.getByText('Paused').waitFor()
  await alert.getByRole('link', { name: 'Change' }).click()
  await page.getByLabel('Name').fill('night')
  await page.getByLabel('A job failed').uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  const renamed = page.getByRole('region', { name: /^night/ })
  await renamed.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog', { name: 'Delete night?' }).getByRole('button', { name: 'Delete' }).click()
  await renamed.waitFor({ state: 'detached' })
})

/** A profile of 100 ms in which `hot` took most, below `handler`. Returns its file. */
function profileFile (): string {
  const file = path.join(tempFolder(), '2.cpuprofile')
  const profile = profileOf([[1, '(root)', [2, 6, 7]], [2, 'handler', [3, 4]], [3, 'hot', [5]], [4, 'cold'], [5,
    '<img src=x onerror=alert(1)>\u202e'], [6, 'handler', [], { url: 'node:internal/other', lineNumber: 1 }], [7,
    '(idle)']], [[3, 60], [5, 10], [4, 20], [6, 10], [7, 900]])
  writeFileSync(file, JSON.stringify(profile))
  return file
}

rareTest(
  'from the overview to what makes a worker hot: its page, a profile, its busiest functions, and one of them alone',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const { items } = dashboard.deck.diagnostics
    const page = await dashboard.visit()
    await page.getByRole('link', { name: 'Worker 1', exact: true }).click()
    await untilLive(page)
    await page.getByRole('button', { name: 'Record CPU profile' }).click()
    await page.getByRole('progressbar', { name: 'Progress of CPU profile 2' }).waitFor()
    assert.equal(await page.locator('#looks-heap').getAttribute('aria-disabled'), 'true')
    items[0] = { ...items[0], state: 'done', bytes: 1000, finishedAt: new Date().toISOString(), file: profileFile() }
    await page.getByRole('link', { name: 'Busiest functions' }).click()
    const table = page.getByRole('table', { name: 'Functions' })
    assert.match(await table.getByRole('row').nth(1).innerText(), /^hot app\.js:4\s+60\.0%\s+70\.0%/)
    assert.match(await table.innerText(), /<img src=x onerror=alert\(1\)><U\+202E>/)
    assert.deepEqual(await page.audit(), [])

    const widthOf = async () => (await page.getByRole('link', { name: /^hot / }).boundingBox())?.width ?? 0
    const narrow = await widthOf()
    await page.getByRole('link', { name: /^hot / }).click()
    await page.getByRole('link', { name: 'Show all' }).waitFor()
    assert.ok(await widthOf() > narrow)
  }
)

test('a file that is no profile is told, and the page goes on', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const file = path.join(tempFolder(), 'x')
  writeFileSync(file, '{"nodes": []}')
  dashboard.deck.diagnostics.items.unshift({ ...dashboard.deck.diagnostics.items[0], id: 2, kind: 'cpu-profile', file })
  const page = await dashboard.visit('/workers/1?profile=2')
  await page.getByText('The file of these diagnostics is no CPU profile').waitFor()
})

test('the page shows live what is in flight and what the slot writes, as text, and tells the end', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { deck } = dashboard
  const page = await dashboard.visit('/workers/1')
  await page.locator('#worker-requests-empty').getByText('None.').waitFor()
  deck.requests.push({ method: 'GET', path: '/<b>slow</b>\u202e', ageMs: 12_300 })
  await page.locator('#worker-requests-rows tr').waitFor()
  assert.deepEqual(await page.locator('#worker-requests-rows td').allInnerTexts(), ['GET', '/<b>slow</b><U+202E>',
    '12 s'])
  appendFileSync(path.join(deck.logs.folder, 'slot-1.stdout.log'), 'a new line\n')
  await page.locator('#worker-log-lines').getByText('a new line').waitFor()

  await page.locator('#worker-kill').click()
  await page.getByRole('button', { name: 'Kill worker' }).click()
  await page.locator('dialog[open]').waitFor({ state: 'hidden' })
  assert.deepEqual(deck.dispatched, [{ type: 'kill-worker', worker: 1, actor: deck.dispatched[0].actor }])
  deck.events.publish({ type: 'worker.forked', worker: 1, slot: 1, pid: 4001, release: 'r1' })
  deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, pid: 4001, release: 'r1', cause: 'killed',
    signal: 'SIGKILL', uptimeMs: 1000, message: 'worker 1 (slot 1) was ended by SIGKILL' })
  deck.set({ workers: deck.snapshot().workers.filter(({ id }) => id !== 1) })
  deck.events.publish({ type: 'worker.forked', worker: 3, slot: 1, pid: 4003, release: 'r1' })
  await page.getByText('Worker 3 replaced it').waitFor()
  assert.match(await page.locator('#worker-head').innerText(), /Ended by SIGKILL/)
  assert.equal(await page.locator('#worker-kill').count(), 0)
  // It may have asked what is in flight just when the worker had gone.
  page.allow(/404 \(Not Found\)/)
})
