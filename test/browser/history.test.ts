import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHistory } from '../../db/history.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { type Dashboard, markPage, startDashboard, visit } from '../support/dashboard.ts'
import { rareTest } from '../support/rare.ts'
import type { Page } from 'playwright-core'
import type { DeckEvent } from '../../server/events/stream.ts'

/** The event of whoever looks at what was seeded. */
const SIGN_IN = '4'
const HOSTILE =
  '<img src=x onerror="document.title=\'pwned\'"></td><script>document.title="pwned"</script> "quoted" & \'single\''

const browser = useBrowser()

function seed ({ deck }: Dashboard) {
  deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, cause: 'crash', code: 1,
    message: 'TypeError: total is not a function' })
  deck.events.publish({ type: 'worker.exited', worker: 2, slot: 2, cause: 'killed', signal: 'SIGKILL', uptimeMs: 1500 })
}

/** @returns ids, as they stand */
function shownIds (page: Page): Promise<string[]> {
  return page.locator('#events tbody tr').evaluateAll((rows) => rows.map(({ id }) => id.replace('event-', '')))
}

test('filters go into the address, without the empty ones, and come back with it', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  const page = await dashboard.visit('/history')
  const isSamePage = await markPage(page)
  assert.deepEqual(await shownIds(page), [SIGN_IN, '3', '2', '1'])

  await page.locator('main').getByLabel('Type').selectOption('Exits')
  await page.waitForURL((url) => url.search === '?type=worker.exited')
  assert.deepEqual(await shownIds(page), ['3', '2'])
  await page.getByLabel('Search').pressSequentially('typeerror')
  await page.waitForURL((url) => url.search === '?q=typeerror&type=worker.exited')
  assert.deepEqual(await shownIds(page), ['2'])
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'filter-q')
  assert.equal(await isSamePage(), true)

  await page.reload()
  assert.deepEqual(await shownIds(page), ['2'])
  assert.equal(await page.locator('main').getByLabel('Type').inputValue(), 'worker.exited')
  assert.equal(await page.getByLabel('Search').inputValue(), 'typeerror')

  await page.getByText('Clear').click()
  await page.waitForURL((url) => url.pathname === '/history' && url.search === '')
  assert.deepEqual(await shownIds(page), [SIGN_IN, '3', '2', '1'])
})

rareTest('an update of the page as it was before its filters comes to nothing', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  const page = await dashboard.visit()
  let isHeld = true
  const held: (() => void)[] = []
  await page.routeWebSocket(/socket\.io/, (viewer) => {
    viewer.connectToServer().onMessage((message) => {
      const pass = () => viewer.send(message)
      if (isHeld && String(message).includes('"fragments"')) held.push(pass)
      else pass()
    })
  })
  await page.goto(`${dashboard.url}/history`)
  await untilLive(page)
  await page.locator('main').getByLabel('Type').selectOption('Exits')
  await page.waitForURL((url) => url.search === '?type=worker.exited')
  assert.deepEqual(await shownIds(page), ['3', '2'])

  assert.ok(held.length > 0)
  isHeld = false
  held[0]()
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)))
  assert.deepEqual(await shownIds(page), ['3', '2'])
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 3, slot: 1, cause: 'killed', signal: 'SIGKILL' })
  await page.locator('#event-5').waitFor()
  assert.deepEqual(await shownIds(page), ['5', '3', '2'])
})

rareTest('the back button brings the filters before back', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  const page = await dashboard.visit('/history')
  await page.getByRole('textbox', { name: 'Slot' }).fill('2')
  await page.waitForURL((url) => url.search === '?slot=2')
  await page.getByLabel('Cause').selectOption('crash')
  await page.waitForURL((url) => url.search === '?cause=crash&slot=2')
  await page.getByText('No event matches these filters').waitFor()
  await page.goBack()
  await page.locator('#event-3').waitFor()
  assert.deepEqual(await shownIds(page), ['3'])
  assert.equal(new URL(page.url()).search, '?slot=2')
  assert.equal(await page.getByLabel('Cause').inputValue(), '')
})

test('new events appear at the top by themselves, if the filters let them', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  const page = await dashboard.visit('/history')
  await page.locator('main').getByLabel('Type').selectOption('Exits')
  await page.waitForURL((url) => url.search === '?type=worker.exited')

  dashboard.deck.events.publish({ type: 'worker.ready', worker: 3, slot: 2 })
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 3, slot: 2, cause: 'crash' })
  await page.locator('#event-6').waitFor()
  assert.deepEqual(await shownIds(page), ['6', '3', '2'])
})

test('new events push nothing away at once: what is below glides, but for those who want calm', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  const page = await dashboard.visit('/history')
  await untilLive(page)
  const tell = async () => {
    const seen = page.evaluate(async () => {
      const topOf = () => document.getElementById('event-1')?.getBoundingClientRect().top ?? 0
      const before = topOf()
      await new Promise((resolve) =>
        new MutationObserver(resolve).observe(document.querySelector('#events tbody') as Element, { childList: true })
      )
      const atOnce = topOf()
      await Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => null)))
      return { atOnce: atOnce - before, after: topOf() - before }
    })
    await page.evaluate(() => null)
    dashboard.deck.events.publish({ type: 'worker.exited', worker: 9, slot: 1, cause: 'crash', code: 1,
      message: 'ended' })
    return await seen
  }
  const { atOnce, after } = await tell()
  assert.ok(Math.abs(atOnce) < 1, `moved by ${atOnce} at once`)
  assert.ok(after > 20, `moved by ${after}`)
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const calm = await tell()
  assert.ok(calm.atOnce > 20)
  assert.equal(calm.atOnce, calm.after)
})

test('pages go older and newer, and only the first one is live', async (t) => {
  const dashboard = await startDashboard(t, browser)
  for (let n = 1; n <= 120; n++) dashboard.deck.events.publish({ type: 'worker.ready', worker: n, slot: 1 })
  const page = await dashboard.visit('/history?slot=1')
  const ends = async () => [(await shownIds(page)).at(0), (await shownIds(page)).at(-1)]
  const go = async (name: string) => {
    await page.getByRole('link', { name, exact: true }).click()
    await page.waitForLoadState()
  }

  assert.deepEqual(await ends(), ['120', '71'])
  await go('Older')
  assert.deepEqual(await ends(), ['70', '21'])
  await go('Older')
  assert.deepEqual(await ends(), ['20', '1'])
  assert.equal(await page.getByRole('link', { name: 'Older', exact: true }).count(), 0)
  await go('Newer')
  assert.deepEqual(await ends(), ['70', '21'])

  dashboard.deck.events.publish({ type: 'worker.ready', worker: 121, slot: 1 })
  assert.match(String(await page.locator('.pager-status').textContent()), /not live/)
  await go('Newer')
  assert.deepEqual(await ends(), ['122', '72'])
  assert.equal(await page.getByRole('link', { name: 'Newer', exact: true }).count(), 0)
})

test('a fold that somebody has opened stays open while events come, and over pages and back', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { events } = dashboard.deck
  const page = await dashboard.visit('/history')
  for (let n = 1; n <= 10; n++) events.publish({ type: 'worker.ready', worker: n, slot: 1 })
  for (let n = 1; n <= 90; n++) events.publish({ type: 'worker.exited', worker: n, slot: 1, cause: 'crash', code: 1 })
  for (let n = 1; n <= 30; n++) events.publish({ type: 'worker.ready', worker: n, slot: 1 })
  const fold = page.locator('.fold details').filter({ hasText: '30 workers became ready' })
  await fold.locator('summary').click()
  const first = await fold.getAttribute('id')
  events.publish({ type: 'worker.ready', worker: 31, slot: 1 })
  await page.locator(`#${first}`).getByText('31 workers became ready').waitFor()
  assert.equal(await page.locator(`#${first}`).getAttribute('open'), '')
  await page.getByRole('link', { name: 'Older', exact: true }).click()
  await page.locator('.fold summary').getByText('10 workers became ready').waitFor()
  await page.getByRole('link', { name: 'Newer', exact: true }).click()
  await page.locator(`#${first}[open]`).waitFor()
})

test('an event has a permalink with all of its fields, and a way to those like it', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 7, slot: 2, pid: 4711, cause: 'crash', code: 3,
    uptimeMs: 65_000, message: 'Error: boom',
    detail: { errorName: 'Error', stack: 'Error: boom\n    at app.js:1:2', extra: 5 } })
  const page = await dashboard.visit('/history')
  await page.locator('#event-4 .row-link').press('Enter')
  await page.waitForURL('**/history/4')
  await page.getByRole('heading', { level: 1, name: 'Error: boom' }).waitFor()
  const fields = await page.locator('.fields > div').evaluateAll((rows) =>
    Object.fromEntries(rows.map((row) => [row.querySelector('dt')?.textContent, row.querySelector('dd')?.textContent]))
  )
  assert.deepEqual(fields, { Cause: 'crash', Slot: '2', Worker: '7', PID: '4711', 'Exit code': '3',
    'Lived for': '1 min 05 s', Extra: '5', Type: 'Worker exited' })
  assert.equal(await page.getByLabel('Stack').textContent(), 'Error: boom\n    at app.js:1:2')

  await page.getByRole('link', { name: '2', exact: true }).click()
  await page.waitForURL('**/history?slot=2')
  assert.deepEqual(await shownIds(page), ['4', '3'])
})

test('text that an app threw is shown as text, on every page and by live update', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const crash = { type: 'worker.exited', worker: 1, slot: 1, cause: '<b>', release: HOSTILE, message: HOSTILE,
    detail: { errorName: HOSTILE, stack: HOSTILE, more: [HOSTILE] } }
  dashboard.deck.events.publish(crash)
  for (const path of ['/', '/history', '/history/1',
    `/history?q=${encodeURIComponent(HOSTILE.slice(0, 60))}&type=${encodeURIComponent('<script>')}`])
  {
    const page = await dashboard.visit(path)
    if (path === '/')
      dashboard.deck.set({
        app: { entry: HOSTILE, cwd: '/', addresses: ['javascript:document.title="pwned"', HOSTILE] }
      })
    if (!path.includes('?')) {
      dashboard.deck.events.publish(crash)
      await page.getByText('<img src=x onerror=').first().waitFor()
    }
    await page.locator('#offline').waitFor({ state: 'hidden' })
    assert.equal(await page.locator('img').count(), 0, path)
    assert.equal(await page.locator('main script').count(), 0, path)
    assert.equal(await page.locator('a[href^="javascript"]').count(), 0, path)
    assert.doesNotMatch(await page.title(), /pwned/)
    page.allow(/400 \(Bad Request\)/)
  }
})

rareTest('a filter that cannot be read is named; an event or page that is not there gets a page of ours', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/history?slot=abc')
  page.allow(/status of 40[04]/)
  await page.getByText('slot: expected a positive integer, received "abc"').waitFor()
  const answer = await page.goto(`${dashboard.url}/history/99`)
  assert.equal(answer?.status(), 404)
  await page.getByText('Event "99" does not exist').waitFor()
  await page.goto(`${dashboard.url}/nowhere`)
  await page.getByText('No such page: /nowhere').waitFor()
  await untilLive(page)
  await page.getByRole('button', { name: 'Find a page, worker or release' }).click()
  await page.locator('#palette[open]').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Back to the overview' }).click()
  await page.getByRole('heading', { name: 'All 2 workers are ready' }).waitFor()
})

test('exports what the filters show as CSV', async (t) => {
  const dashboard = await startDashboard(t, browser)
  seed(dashboard)
  const page = await dashboard.visit('/history?type=worker.exited')
  const [download] = await Promise.all([page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export CSV' }).click()])
  assert.equal(download.suggestedFilename(), 'clusterdeck-events.csv')
  const chunks = []
  for await (const chunk of await download.createReadStream()) chunks.push(chunk)
  const ids = Buffer.concat(chunks).toString().trim().split('\r\n').map((line) => line.split(',')[0])
  assert.deepEqual(ids, ['id', '3', '2'])
})

const BLANK = Object.fromEntries(
  ['cause', 'slot', 'worker', 'pid', 'release', 'rollout', 'actor', 'code', 'signal', 'uptimeMs', 'message', 'detail']
    .map((name) => [name, null])
)
const HOUR_MS = 3_600_000

/** A history with these exits, told as how many hours ago. `hours`: oldest first. */
function pastOf (hours: number[], now: number = Date.now()) {
  const history = openHistory({ file: ':memory:', clock: () => 0 })
  for (const [index, ago] of hours.entries()) {
    history.record(
      { ...BLANK, id: index + 1, at: new Date(now - ago * HOUR_MS).toISOString(), type: 'worker.exited', cause: 'crash',
        slot: 1 + index % 3, worker: index + 1, message: `death ${index + 1}` } as DeckEvent
    )
  }
  return history
}

rareTest('a drag over the graph shows that part of the time, and any time is one click away', async (t) => {
  const dashboard = await startDashboard(t, browser, { history: pastOf([40, 20.5, 20, 19.5, 1]) })
  const page = await dashboard.visit('/history?type=worker.exited')
  const box = await page.locator('#timeline-choice').boundingBox() as { x: number, y: number, width: number,
    height: number }
  await page.mouse.move(box.x + box.width * 0.3, box.y + 5)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.7, box.y + 15)
  assert.match(String(await page.locator('#timeline-read').textContent()), / – .*: 3 problems$/)
  await page.mouse.up()
  await page.waitForURL((url) =>
    url.searchParams.has('since') && url.searchParams.has('until') && url.searchParams.get('type') === 'worker.exited'
  )
  assert.deepEqual(await shownIds(page), ['4', '3', '2'])
  assert.equal(await page.locator('#timeline-graph strong').textContent(), '3 problems')

  await page.getByRole('link', { name: 'Any time' }).click()
  await page.waitForURL((url) => url.search === '?type=worker.exited')
  assert.deepEqual(await shownIds(page), ['5', '4', '3', '2', '1'])
})

rareTest('the fields say the time as the clock of whoever looks does', async (t) => {
  const dashboard = await startDashboard(t, browser, { history: pastOf([40, 20, 1]) })
  const page = await dashboard.visit('/history?type=worker.exited', { timezoneId: 'Asia/Tokyo' })
  const from = page.getByLabel('From Asia/Tokyo')
  const at = Math.floor(Date.now() / 1000) * 1000 - 30 * HOUR_MS
  await from.fill(new Date(at + 9 * HOUR_MS).toISOString().slice(0, 19).replace('T', ' '))
  await from.press('Enter')
  await page.waitForURL((url) =>
    url.searchParams.get('since') === new Date(at).toISOString() && !url.searchParams.has('until')
  )
  assert.deepEqual(await shownIds(page), ['3', '2'])
  await page.getByRole('button', { name: 'Local time: switch to UTC' }).click()
  const inUtc = new Date(at).toISOString().slice(0, 19).replace('T', ' ')
  assert.equal(await page.getByLabel('From UTC').inputValue(), inUtc)
})

rareTest('new events reach the graph by themselves', async (t) => {
  // By this clock the rest between two counts is short.
  const begin = Date.now()
  const dashboard = await startDashboard(t, browser, { history: pastOf([2]),
    now: () => begin + (Date.now() - begin) * 20 })
  const page = await dashboard.visit('/history?type=worker.exited')
  await page.getByText('1 problem', { exact: true }).waitFor()
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 9, slot: 1, cause: 'deploy' })
  await page.getByText('2 events, 1 problem', { exact: true }).waitFor()
})

rareTest('filters are saved by a name, found again, and removed', async (t) => {
  const dashboard = await startDashboard(t, browser, { history: pastOf([3, 2, 1]) })
  const page = await dashboard.visit('/history?type=worker.exited&slot=2')
  await page.getByRole('button', { name: 'Save these filters' }).click()
  await page.keyboard.type('<b>slot two</b>')
  await page.keyboard.press('Enter')
  await page.goto(`${dashboard.url}/history`)
  await page.getByRole('link', { name: '<b>slot two</b>', exact: true }).click()
  await page.waitForURL((url) => url.search === '?type=worker.exited&slot=2')
  assert.deepEqual(await shownIds(page), ['2'])
  await page.getByRole('button', { name: 'Remove the saved filters <b>slot two</b>' }).click()
  await page.reload()
  assert.equal(await page.getByRole('link', { name: 'slot two' }).count(), 0)
})

rareTest('yesterday\'s exits are exported in three clicks, and a death of last night is read after two', async (t) => {
  const midnight = Math.floor(Date.now() / HOUR_MS / 24) * 24
  const dashboard = await startDashboard(t, browser, {
    history: pastOf([-36, -12.5, -1, 6].map((hour) => -hour), midnight * HOUR_MS)
  })
  const page = await dashboard.visit()
  await page.getByRole('link', { name: 'Exits', exact: true }).click()
  await page.getByRole('link', { name: 'Yesterday' }).click()
  await page.waitForURL((url) =>
    url.searchParams.get('range') === 'yesterday' && url.searchParams.get('zone') === 'UTC'
  )
  const [download] = await Promise.all([page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export CSV' }).click()])
  const chunks = []
  for await (const chunk of await download.createReadStream()) chunks.push(chunk)
  assert.deepEqual(Buffer.concat(chunks).toString().trim().split('\r\n').map((line) => line.split(',')[0]), ['id', '3',
    '2'])

  dashboard.setWorker(1, { restarts: 1 })
  await page.goto(dashboard.url)
  await page.getByRole('link', { name: '1 restart, exits of slot 1' }).click()
  await page.getByRole('link', { name: 'Last night' }).click()
  await page.getByText('death 4').waitFor()
  assert.deepEqual(await shownIds(page), ['4'])
})

rareTest('where nothing matches, it is told without which filter something would', async (t) => {
  const dashboard = await startDashboard(t, browser, { history: pastOf([3, 2, 1]) })
  const page = await dashboard.visit('/history?cause=crash&slot=9')
  await page.getByText('No event matches these filters').waitFor()
  assert.equal(await page.locator('.nearest a').count(), 1)
  await page.getByRole('link', { name: 'In any slot' }).click()
  await page.waitForURL((url) => url.search === '?cause=crash')
  assert.deepEqual(await shownIds(page), ['3', '2', '1'])
})
