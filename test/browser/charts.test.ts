import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createVitals } from '../../server/vitals/vitals.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { type Dashboard, startDashboard, visit } from '../support/dashboard.ts'
import { rareTest } from '../support/rare.ts'
import { report } from '../support/vitals.ts'
import type { Page } from 'playwright-core'
import type { DeckEvent, NewEvent } from '../../server/events/stream.ts'

const BLANK = Object.fromEntries(
  ['cause', 'slot', 'worker', 'pid', 'release', 'rollout', 'actor', 'code', 'signal', 'uptimeMs', 'message', 'detail']
    .map((name) => [name, null])
)

const browser = useBrowser()

/** What both workers report of one second. */
function live ({ deck }: Dashboard, second: number, fields: Parameters<typeof report>[0]) {
  for (const worker of [1, 2]) deck.vitals.accept(worker, worker, report(fields))
  deck.vitals.turn(second)
}

/**
 * Goes on to report each second as it ends, since a page that comes late, as on a busy machine, shows no value of then
 * as one of now.
 * @returns ends it
 */
function keepLive (t: TestContext, dashboard: Parameters<typeof live>[0], fields: Parameters<typeof report>[0],
  now: () => number = Date.now): () => void
{
  let next = Math.floor(now() / 1000)
  const timer = setInterval(() => {
    for (; next < Math.floor(now() / 1000); next++) live(dashboard, next, fields)
  }, 100)
  const end = () => clearInterval(timer)
  t.after(end)
  return end
}

/** `page`: what a chart says to whoever hears it */
async function valueText (page: Page, chart: string) {
  return String(await page.locator(`#chart-${chart} .chart-place`).getAttribute('aria-valuetext'))
}

/** `page`: how many pixels of a chart have this colour, give or take what smoothing does */
function pixelsLike (page: Page, chart: string, variable: string) {
  return page.locator(`#chart-${chart} canvas`).evaluate((canvas, name) => {
    const probe = document.createElement('i')
    probe.style.color = `var(${name})`
    document.body.append(probe)
    const wanted = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number)
    probe.remove()
    const { width, height } = canvas as HTMLCanvasElement
    const pixels =
      ((canvas as HTMLCanvasElement).getContext('2d') as CanvasRenderingContext2D).getImageData(0, 0, width, height)
        .data
    let count = 0
    for (let at = 0; at < pixels.length; at += 4)
      if (pixels[at + 3] > 100 && wanted.slice(0, 3).every((value, part) => Math.abs(value - pixels[at + part]) < 24))
        count++
    return count
  }, variable)
}

rareTest('what was measured a minute ago is drawn, and is no value of now', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const second = Math.floor(Date.now() / 1000)
  for (let at = second - 120; at < second - 60; at++)
    live(dashboard, at, { latenciesMs: [5], rssBytes: 100 * 1024 * 1024 })
  const page = await dashboard.visit()
  await page.locator('#charts[data-state=shown]').waitFor()
  assert.deepEqual([...new Set(await page.locator('#charts [data-column]').allTextContents())], ['–'])
})

test('the charts are there in a browser whose language nobody knows', async (t) => {
  const page = await (await startDashboard(t, browser)).visit()
  await page.addInitScript(() => {
    Object.defineProperty(Object.getPrototypeOf(navigator), 'language', { get: () => 'en-US@posix' })
  })
  await page.reload()
  await page.locator('#charts canvas').first().waitFor()
})

rareTest('the charts show the last minutes, go on live, and mark deploys and deaths', async (t) => {
  let aheadMs = 0
  const now = () => Date.now() + aheadMs
  const dashboard = await startDashboard(t, browser, { now })
  const second = () => Math.floor(now() / 1000)
  const fields = { latenciesMs: [5, 5, 5, 5, 500], rssBytes: 100 * 1024 * 1024 }
  for (let at = second() - 120; at < second(); at++) live(dashboard, at, fields)
  const endLive = keepLive(t, dashboard, fields, now)
  const page = await dashboard.openPage({ reducedMotion: 'reduce' })
  await page.clock.install()
  await page.goto(dashboard.admin.signInLink())
  await untilLive(page)
  const value = (column: string) => page.locator(`[data-column="${column}"]`)
  await value('requestsPerSecond').getByText('10/s', { exact: true }).waitFor()
  await value('rssBytes').getByText('200 MB').waitFor()
  await value('cpuPercent').getByText('100%').waitFor()
  for (const column of ['requestsPerSecond', 'latencyP99Ms', 'cpuPercent', 'rssBytes'])
    assert.equal(await page.locator(`#facts [data-figure=${column}]`).innerText(), await value(column).innerText())
  assert.match(await value('latencyP50Ms').innerText(), /^(4\.8|4\.9|5|5\.[01])\d* ms$/)
  assert.match(await value('latencyP99Ms').innerText(), /^(4[89]|5[01])\d ms$/)
  assert.equal(await page.locator('#charts canvas').count(), 5)
  for (const [chart, colour] of [['requests', '--info'], ['latency', '--drain'], ['memory', '--info'], ['loop',
    '--warn']]) assert.ok(await pixelsLike(page, chart, colour) > 20, `a line in the chart of ${chart}`)

  // A second that has begun after the page came, and is over.
  endLive()
  aheadMs = 2000
  keepLive(t, dashboard, { latenciesMs: Array(30).fill(5), statuses: [30, 0, 0, 12, 0, 0] }, now)
  await value('requestsPerSecond').getByText('84/s', { exact: true }).waitFor()
  await value('requests5xxPerSecond').getByText('24/s', { exact: true }).waitFor()

  const before = await pixelsLike(page, 'memory', '--bad')
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, cause: 'crash', code: 1, message: 'boom' })
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 2, slot: 2, cause: 'deploy', code: 0 })
  dashboard.deck.events.publish({ type: 'worker.exited', worker: 3, slot: 2, cause: 'master-lost', code: 0 })
  await page.locator(`#chart-news[data-event="${dashboard.deck.snapshot().lastEventId}"]`).waitFor({
    state: 'attached'
  })
  // However much happens, it is not asked for at once again.
  await page.clock.fastForward(3000)
  await page.locator('#charts-marks li').waitFor()
  const told = await page.locator('#charts-marks').innerText()
  assert.match(told, /^(\d+ \w+ )?\d\d:\d\d:\d\d (crash|master lost)/)
  assert.deepEqual(told.match(/crash|master lost|deploy/g)?.sort(), ['crash', 'master lost'])
  while (await pixelsLike(page, 'memory', '--bad') <= before)
    await page.evaluate(() => new Promise(requestAnimationFrame))

  assert.deepEqual(await page.audit(), [])
  await page.locator('[data-theme-toggle]').click()
  assert.ok(await pixelsLike(page, 'latency', '--drain') > 30, 'drawn anew in the other theme')
  const asked = page.waitForRequest((request) =>
    request.url().includes('/api/v1/vitals') && request.url().includes('step=1m')
  )
  await page.getByLabel('Range').selectOption('24h')
  await asked
})

rareTest(
  'a storm of crashes is one mark with all of them, which leads to exactly these events, beside the deploy that it followed',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const begin = Date.now() - 600_000
    const record = (id: number, ms: number, fields: NewEvent) =>
      dashboard.history.record({ ...BLANK, id, at: new Date(begin + ms).toISOString(), ...fields } as DeckEvent)
    record(1, 0, { type: 'rollout.started', cause: 'deploy', rollout: 4,
      detail: { id: 4, state: 'succeeded', kind: 'deploy', steps: [], progress: { total: 2, replaced: 2 },
        startedAt: new Date(begin).toISOString(), finishedAt: new Date(begin).toISOString() } })
    for (let id = 2; id <= 601; id++)
      record(id, 5000 + id, { type: 'worker.exited', cause: id % 3 === 0 ? 'killed' : 'crash', slot: 1, worker: id })
    const page = await dashboard.visit('/?range=3h')
    const marks = page.locator('#charts-marks a')
    await marks.nth(1).waitFor()
    assert.deepEqual(await marks.evaluateAll((all) => all.map(({ lastChild }) => lastChild?.textContent?.trim())), [
      '400 × crash, 200 × killed from outside',
      'deploy started'
    ])
    assert.equal(await marks.last().getAttribute('href'), '/history/1')
    const exported = await page.request.get(
      dashboard.url + String(await marks.first().getAttribute('href')).replace('/history?', '/history.csv?')
    )
    assert.equal((await exported.text()).trimEnd().split('\n').length, 1 + 600)
    await page.locator('#chart-cpu .chart-place').focus()
    for (let presses = 0; presses < 8 && !/crash/.test(await valueText(page, 'cpu')); presses++)
      await page.keyboard.press('ArrowLeft')
    assert.match(await valueText(page, 'cpu'), /400 × crash, 200 × killed/)
    assert.match(await page.locator('#chart-cpu .chart-flag').innerText(), /^(\d+ \w+ )?\d\d:\d\d\n.*400 × crash/s)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/history\?type=worker\.exited/)
  }
)

test('the cursor says when it is and what was measured then, by mouse and by keys, and nothing where nobody measured', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const second = Math.floor(Date.now() / 1000)
  for (let at = second - 800; at < second - 600; at++)
    live(dashboard, at, { latenciesMs: [5], rssBytes: 100 * 1024 * 1024 })
  const fields = { latenciesMs: [5, 5], rssBytes: 200 * 1024 * 1024 }
  for (let at = second - 300; at < second; at++) live(dashboard, at, fields)
  keepLive(t, dashboard, fields)
  const page = await dashboard.visit()
  await page.locator('#charts[data-state=shown]').waitFor()
  const box = await page.locator('#chart-memory .u-over').boundingBox() as { x: number, y: number, width: number }
  const shownAt = async (part: number) => {
    await page.mouse.move(box.x + box.width * part, box.y + 20)
    const flags = await page.locator('.chart-flag').allTextContents()
    assert.equal(new Set(flags).size, 1, 'all charts point at the same moment')
    // Of yesterday there is a day in front.
    const [hours, minutes, seconds] = flags[0].split(' ').at(-1)?.split(':').map(Number) ?? []
    return { ms: (hours * 3600 + minutes * 60 + seconds) * 1000,
      memory: await page.locator('[data-column=rssBytes]').textContent(),
      requests: await page.locator('[data-column=requestsPerSecond]').textContent() }
  }
  const [early, gap, late] = [await shownAt(0.25), await shownAt(0.5), await shownAt(0.9)]
  assert.deepEqual([early, gap, late].map(({ memory, requests }) => [memory, requests]), [['200 MB', '2/s'], ['–', '–'],
    ['400 MB', '4/s']])
  const day = 24 * 60 * 60_000
  for (const [from, to, partMs] of [[early, gap, 225_000], [gap, late, 360_000]] as const)
    assert.ok(Math.abs((to.ms - from.ms + day) % day - partMs) < 15_000, `${from.ms} to ${to.ms}`)

  await page.mouse.move(5, 5)
  await page.locator('#chart-memory .chart-place').focus()
  assert.match(await valueText(page, 'memory'), /^now, 400 MB$/)
  await page.keyboard.press('Home')
  assert.match(await valueText(page, 'memory'), /, –$/)
  for (const key of ['PageUp', 'PageUp', 'Shift+ArrowRight']) await page.keyboard.press(key)
  assert.match(await valueText(page, 'memory'), /^(\d+ \w+ )?\d\d:\d\d:\d\d, 200 MB$/)
  assert.equal(await page.locator('[data-column=requestsPerSecond]').textContent(), '2/s', 'the other charts follow')
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('.chart-flag').first().isVisible(), false)
  assert.equal(await page.locator('#charts-state').innerText(), 'Live: figures of the last second')
  await page.goto(`${dashboard.url}/?since=2025-01-01T00:00:00Z&until=2025-01-01T01:00:00Z`)
  await page.getByText('Figures are kept for 30 days; this range is older.').waitFor()
  assert.equal(await page.locator('#charts-state').innerText(), 'Past time, not live')
})

rareTest('what a drag marks is looked into, stays over a reload, and leads to the history and the logs of that time',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const second = Math.floor(Date.now() / 1000)
    for (let at = second - 800; at < second; at++) live(dashboard, at, { latenciesMs: [5] })
    const page = await dashboard.visit()
    await page.getByLabel('Range').selectOption('3h')
    assert.equal(new URL(page.url()).search, '?range=3h')
    await page.reload()
    assert.equal(await page.getByLabel('Range').inputValue(), '3h')
    await untilLive(page)

    const box = await page.locator('#chart-latency .u-over').boundingBox() as { x: number, y: number, width: number }
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.75, box.y + 20, { steps: 4 })
    assert.ok(
      await page.locator('.u-select').evaluateAll((all) =>
        all.length === 5 && all.every(({ clientWidth }) => clientWidth > 50)
      ),
      'all charts show what is marked'
    )
    await page.mouse.up()
    await page.locator('.time-chosen').waitFor()
    await page.getByText('Past time, not live').waitFor()
    const params = new URL(page.url()).searchParams
    const [since, until] = ['since', 'until'].map((name) => Date.parse(String(params.get(name))))
    assert.ok(Math.abs(until - since - 45 * 60_000) < 120_000, `${until - since} ms`)
    for (const name of ['history', 'logs'])
      await page.locator(`.time-chosen a[href="/${name}?${params}"]`).waitFor()
    await page.reload()
    await page.locator('.time-chosen').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('since'), params.get('since'))
    await untilLive(page)
    await page.locator('#workers').getByText('Workers of that time').waitFor()
    await page.getByLabel('Range').selectOption('15m')
    assert.equal(new URL(page.url()).search, '')
    dashboard.setWorker(1, {
      vitals: { at: new Date().toISOString(), rssBytes: 1e8, cpuPercent: 5, requestsPerSecond: 78, latencyP99Ms: 1 }
    })
    await page.locator('#workers .rate', { hasText: '78' }).waitFor()
  })

rareTest('a finger marks a part of the charts, and up and down it scrolls the page', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const second = Math.floor(Date.now() / 1000)
  for (let at = second - 800; at < second; at++) live(dashboard, at, { latenciesMs: [5] })
  const page = await dashboard.visit('/', { width: 390, hasTouch: true })
  await page.locator('#charts[data-state=shown]').waitFor()
  await page.locator('#chart-cpu').scrollIntoViewIfNeeded()
  const box = await page.locator('#chart-cpu .u-over').boundingBox() as { x: number, y: number, width: number }
  const session = await page.context().newCDPSession(page)
  const draw = async (points: [part: number, y: number][]) => {
    for (const [index, [part, y]] of points.entries())
      await session.send('Input.dispatchTouchEvent', { type: index === 0 ? 'touchStart' : 'touchMove',
        touchPoints: [{ x: box.x + box.width * part, y: box.y + y }] })
    await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
  }
  await draw([[0.5, 90], [0.5, 60], [0.5, 20], [0.5, -40]])
  await page.waitForFunction(() => scrollY > 0)
  assert.equal(await page.locator('.time-chosen').count(), 0)
  await page.locator('#chart-cpu').scrollIntoViewIfNeeded()
  Object.assign(box, await page.locator('#chart-cpu .u-over').boundingBox())
  await draw([[0.3, 30], [0.35, 30], [0.5, 30], [0.6, 30]])
  await page.getByText('Past time, not live').waitFor()
})

rareTest('after a restart of the master the seconds before it come from the disk, with a gap in which there was none',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const second = Math.floor(Date.now() / 1000)
    const before = createVitals({ store: dashboard.history.vitals })
    for (let at = second - 800; at < second - 400; at++) {
      before.accept(1, 1, report({ latenciesMs: [5, 5, 5], statuses: [3, 0, 0, 2, 0, 0] }))
      before.turn(at)
    }
    before.stop()
    for (let at = second - 200; at < second; at++) live(dashboard, at, { latenciesMs: [5] })
    for (const place of ['/', '/workers/1']) {
      const page = await dashboard.visit(place)
      // Below the first screen they come once somebody has scrolled there.
      await page.locator('#charts').scrollIntoViewIfNeeded()
      await page.locator('#charts[data-state=shown]').waitFor()
      const box = await page.locator('#chart-requests .u-over').boundingBox() as { x: number, y: number, width: number }
      const seen = []
      for (const part of [0.4, 0.66, 0.9]) {
        await page.mouse.move(box.x + box.width * part, box.y + 20)
        seen.push(await page.locator('#chart-requests [data-column]').allTextContents())
      }
      assert.deepEqual(seen, [['5/s', '2/s'], ['–', '–'], place === '/' ? ['2/s', '0/s'] : ['1/s', '0/s']], place)
      await page.close()
    }
  })

rareTest(
  'a hidden tab asks for nothing, and one that is seen asks for marks only when something has happened, however much does',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    live(dashboard, Math.floor(Date.now() / 1000) - 2, { latenciesMs: [5] })
    const page = await dashboard.openPage()
    await page.clock.install()
    await page.addInitScript(() =>
      Object.defineProperty(document, 'hidden', { get: () => sessionStorage.getItem('isHidden') === 'yes' })
    )
    const asked = [] as string[]
    page.on('request', (request) => {
      asked.push(...new URL(request.url()).pathname.match(/vitals$|events\/counts$|time-strip$/) ?? [])
    })
    const counts = () => asked.filter((path) => path === 'events/counts').length
    await page.goto(dashboard.admin.signInLink())
    await untilLive(page)
    while (counts() < 1 || !asked.includes('vitals')) await page.evaluate(() => new Promise(requestAnimationFrame))
    const exit = () =>
      dashboard.deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, cause: 'crash', code: 1 })
    const heard = (id: number) => page.locator(`#chart-news[data-event="${id}"]`).waitFor({ state: 'attached' })

    const ready = dashboard.deck.events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
    await page.locator(`#recent-${ready.id}`).waitFor()
    // The looks of the strip of time are answered between the steps.
    for (let step = 0; step < 3; step++) await page.clock.runFor(20_000)
    assert.equal(counts(), 1, 'nothing has happened that is marked')
    const time = () => page.evaluate(() => performance.now())
    const beganAt = await time()
    for (let storm = 0; storm < 10; storm++) {
      exit()
      await heard(dashboard.deck.snapshot().lastEventId)
      await page.clock.runFor(200)
    }
    await page.clock.runFor(3000)
    // The clock of the page goes on by itself too; there is a pause of three seconds between two looks.
    const most = 2 + Math.ceil((await time() - beganAt) / 3000)
    assert.ok(counts() >= 2 && counts() <= most, `${counts()} looks at a storm, of ${most}`)

    const setHidden = (isHidden: string) =>
      page.evaluate((text) => {
        sessionStorage.setItem('isHidden', text)
        document.dispatchEvent(new Event('visibilitychange'))
      }, isHidden)
    await setHidden('yes')
    await page.clock.runFor(1000)
    asked.length = 0
    // Of this it is not told, either.
    exit()
    await page.clock.runFor(60_000)
    await page.reload()
    await untilLive(page)
    await page.clock.runFor(60_000)
    assert.equal(asked.join(), '')
    await setHidden('no')
    await page.locator('#charts-marks li').first().waitFor()
    assert.ok(asked.includes('vitals'))
  }
)

test('a worker\'s row tells its requests and latency; without any vitals there are dashes, and nothing breaks', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/')
  assert.match(await page.locator('#chart-requests figcaption').innerText(), /all\s*–\s*5xx\s*–/)
  dashboard.setWorker(1, { vitals: { rssBytes: 1e8, cpuPercent: 5, requestsPerSecond: 1234.5, latencyP99Ms: 12.34 } })
  await page.locator('#workers .rate', { hasText: '1,235' }).waitFor()
  assert.deepEqual(await page.locator('#workers tbody tr').first().locator('.rate').allInnerTexts(), ['1,235',
    '12.3 ms'])
})
