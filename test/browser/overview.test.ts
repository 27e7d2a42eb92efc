import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { untilLive, useBrowser } from '../support/browser.ts'
import { markPage, startDashboard, visit } from '../support/dashboard.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import { report } from '../support/vitals.ts'
import type { WorkerRow } from '../../server/deck.ts'
import type { NewEvent } from '../../server/events/stream.ts'
import type { Parts } from '../support/fake.ts'

const browser = useBrowser()

test('shows a worker that changed, without a reload', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  const isSamePage = await markPage(page)
  const row = page.locator('#worker-2-2')
  await row.getByText('Ready').waitFor()

  dashboard.setWorker(2, { state: 'draining' })
  dashboard.deck.events.publish({ type: 'worker.draining', slot: 2, worker: 2, cause: 'restart' })
  await row.getByText('Draining').waitFor()
  dashboard.deck.events.publish({ type: 'worker.exited', slot: 2, worker: 2, cause: 'restart', code: 0 })
  await page.locator('#recent').getByText('Worker 2 (slot 2) exited with code 0').waitFor()

  assert.equal(await isSamePage(), true)
})

rareTest('shows vitals that no event tells of', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  dashboard.setWorker(1, { vitals: { rssBytes: 200 * 1024 * 1024, cpuPercent: 91.5, at: new Date().toISOString() } })
  await page.locator('#worker-1-1').getByText('91.5%').waitFor()
  await page.locator('#worker-1-1').getByText('200 MB').waitFor()
})

test('says in one sentence how the cluster is, and counts down to the next try', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.getByRole('heading', { level: 1, name: 'All 2 workers are ready' }).waitFor()

  dashboard.setWorker(2, { id: null, pid: null, state: 'backoff', vitals: null, restarts: 1,
    retryAt: new Date(Date.now() + 60_000).toISOString() })
  await page.getByRole('heading', { level: 1, name: '1 of 2 workers is restarting' }).waitFor()
  const countdown = page.locator('#worker-2-none .retry time')
  const before = await countdown.textContent()
  assert.match(String(before), /^in (59 s|1 min 00 s)$/)
  await page.waitForFunction((text) => document.querySelector('.retry time')?.textContent !== text, before)

  dashboard.setWorker(2, { crashLooping: true })
  await page.getByRole('heading', { level: 1, name: '1 of 2 workers serves; slot 2 keeps crashing' }).waitFor()
})

test('a chosen time stands on the whole overview: who served then and what was measured, no button of now, and no news', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const { deck } = dashboard
  const second = Math.floor(Date.now() / 1000)
  for (let at = second - 600; at < second; at++) {
    const figures = at < second - 300
      ? { latenciesMs: [5, 5, 5], cpuPercent: 25 }
      : { latenciesMs: [5], cpuPercent: 75 }
    for (const worker of [1, 2]) deck.vitals.accept(worker, worker, report(figures))
    deck.vitals.turn(at)
  }
  const page = await dashboard.visit()
  await page.locator('#open-deploy').waitFor()

  const bar = page.locator('.time-strip a[aria-label*=" 6 requests/s"]').nth(3)
  await bar.locator('.bin').click()
  await page.getByRole('link', { name: 'Back to now' }).waitFor()
  await untilLive(page)
  await page.getByRole('heading', { level: 1, name: 'All 2 workers served, running r1', exact: true }).waitFor()
  assert.match(await page.locator('#facts').innerText(), /Requests mean\s+6\/s[^]*CPU mean\s+50\.0%/)
  await page.locator('#workers').getByText('Workers of that time').waitFor()
  assert.match(String(await page.locator('#workers .row-link').first().getAttribute('href')),
    /^\/workers\/\d+\?at=.*&since=/)
  assert.equal(await page.locator('main [data-dialog]').count(), 0)

  dashboard.setWorker(2, { id: null, pid: null, state: 'backoff', crashLooping: true, vitals: null, restarts: 1 })
  const exit = deck.events.publish({ type: 'worker.exited', slot: 2, worker: 2, cause: 'crash', code: 1 })
  await page.locator('#trouble[data-count="1"]').waitFor({ state: 'attached' })
  assert.equal(await page.locator('h1').innerText(), 'All 2 workers served, running r1')
  assert.equal(await page.locator(`#recent-${exit.id}`).count(), 0)

  await page.getByRole('link', { name: 'Back to now' }).click()
  await page.getByRole('heading', { level: 1, name: '1 of 2 workers serves; slot 2 keeps crashing' }).waitFor()
  await page.locator('#open-deploy').waitFor()
})

test('the page of a worker that dies says how it ended, offers nothing more of it, and takes no line of the next one for its own', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/workers/2')
  page.allow(/status of 404/)
  const isSamePage = await markPage(page)
  const write = (text: string) =>
    appendFileSync(path.join(dashboard.deck.logs.folder, 'slot-2.stdout.log'), `${text}\n`)
  await page.locator('#looks-profile').waitFor()
  write('its own line')
  await page.locator('#worker-log-lines').getByText('its own line').waitFor()
  await page.locator('#worker-kill').click()
  await page.getByRole('dialog').waitFor()

  dashboard.setWorker(2, { id: 3, pid: 4003 })
  dashboard.deck.events.publish({ type: 'worker.exited', slot: 2, worker: 2, cause: 'crash', code: 1,
    message: 'worker 2 (slot 2) exited with code 1: boom', detail: { crash: 5, crashGroup: 3 } })
  await page.locator('#worker-end').getByText('Exited with code 1: boom').waitFor()
  assert.equal(await page.locator('#worker-end .crash-link').first().getAttribute('href'), '/crashes/3?crash=5')
  await page.locator('#worker-looks[hidden]').waitFor({ state: 'attached' })
  assert.equal(await page.locator('main [data-dialog]').count(), 0)
  assert.equal(await page.getByRole('dialog').count(), 1, 'what was open stays open')
  const session = await page.context().newCDPSession(page)
  const streamed: string[] = []
  session.on('Network.eventSourceMessageReceived', ({ data }) => streamed.push(data))
  await session.send('Network.enable')
  // Once the second has come, the page has taken the first.
  for (const text of ['the next one listens', 'the next one serves']) {
    write(text)
    await until(() => streamed.some((data) => data.includes(text)), text)
  }
  assert.equal(await page.locator('#worker-log-lines').getByText('the next one').count(), 0)
  assert.equal(await isSamePage(), true)
})

test('deploys by keyboard alone, and shows the progress while buttons wait with the reason', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.locator('#open-deploy').focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Roll out a new release?' }).waitFor()
  await page.keyboard.type('faster totals')
  await page.keyboard.press('Enter')

  await page.locator('#rollout').getByRole('heading', { name: 'Deploy of r2' }).waitFor()
  assert.equal(await page.getByRole('dialog').count(), 0)
  assert.deepEqual(dashboard.deck.dispatched, [{ type: 'rollout', kind: 'deploy', note: 'faster totals',
    actor: 'the owner\'s token', client: 'dashboard' }])
  assert.equal(await page.locator('#rollout-progress').getAttribute('value'), '0')
  assert.equal(await page.locator('#open-restart').getAttribute('aria-disabled'), 'true')
  await page.locator('#actions-reason').getByText('Rollout 1 is running').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'open-deploy')

  const rollout = present(dashboard.deck.snapshot().rollout)
  dashboard.deck.set({
    rollout: { ...rollout, progress: { total: 2, replaced: 1 },
      steps: [{ ...rollout.steps[0], state: 'done', newWorker: 3 }, rollout.steps[1]] }
  })
  await page.locator('#step-1-1').getByText('Replaced').waitFor()
  assert.equal(await page.locator('#rollout-progress').getAttribute('value'), '1')
})

rareTest('a refused button says why instead of opening its dialog', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  dashboard.deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cli' })
  await page.locator('#open-restart[aria-disabled=true]').waitFor()
  await page.locator('#open-restart').press('Enter')
  await page.getByRole('alert').getByText('Rollout 1 is running. Only one can run at a time.').waitFor()
  assert.equal(await page.getByRole('dialog').count(), 0)
})

rareTest('the outcome of a rollout stays, with its reason, over a reload', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  dashboard.deck.dispatch({ type: 'rollout', kind: 'deploy', actor: 'cli' })
  await page.locator('#rollout-progress').waitFor()
  dashboard.finishRollout('failed', 'worker 3 (slot 1) was not ready within 30 s')

  await page.locator('#rollout').getByText('Deploy of r2 failed').waitFor()
  await page.reload()
  await page.locator('#rollout').getByText('worker 3 (slot 1) was not ready within 30 s').waitFor()
  assert.equal(await page.locator('#open-deploy').getAttribute('aria-disabled'), null)
})

test('the preview of a deploy follows what is typed: one request at a time, the last one wins, and until then it is pale', async (t) => {
  const { page } = await visit(t, browser)
  const asked: (string | null)[] = []
  let [open, most] = [0, 0]
  let letGo: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  await page.locator('#open-deploy').click()
  const preview = page.getByRole('region', { name: 'What it will do' })
  await preview.getByText('2 workers, one at a time').waitFor()
  await page.route('**/deploys/preview?*', async (route) => {
    asked.push(new URL(route.request().url()).searchParams.get('strategy.canary.workers'))
    most = Math.max(most, ++open)
    await held
    open--
    await route.continue()
  })
  const field = page.getByRole('dialog').getByLabel('Canary workers')
  await field.fill('1')
  await until(() => asked.length === 1, 'the request for 1')
  await field.fill('12')
  await field.fill('128')
  assert.equal(await preview.getAttribute('aria-busy'), 'true')
  letGo()
  await until(() => asked.length === 2, 'the request for 128')
  await page.locator('#deploy-preview:not([aria-busy])').waitFor()
  assert.deepEqual([asked, most], [['1', '128'], 1])
})

test('what the viewer opened stays open while the page goes on changing', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/deploys')
  const { jobs } = dashboard.deck
  const { id } = jobs.runSteps({ name: 'deploy --git main', git: 'main', option: 'hooks.build.timeoutMs',
    timeoutMs: 60_000, actor: 'ada', async steps ({ exec, tell }) {
    tell('$ npm ci')
    await exec({ name: 'npm ci', command: ['npm', 'ci'], cwd: '/', env: {} })
  } })
  const row = page.locator(`#build-${id}`)
  await row.getByText('Building').waitFor()
  await row.getByText('npm ci ·').waitFor()
  jobs.commands[0].write('lost connection\n')
  await row.getByText('lost connection').waitFor()
  await row.locator('summary').press('Enter')
  await row.getByText('lost connection').waitFor({ state: 'hidden' })
  await jobs.commands[0].finish({ code: 1 })
  await row.getByText('npm ci exited with code 1', { exact: true }).waitFor()
  assert.equal(await row.locator('details').getAttribute('open'), null)
  await row.locator('summary').press('Enter')
  dashboard.deck.events.publish({ type: 'config.changed', actor: 'ada' })
  dashboard.deck.set({ desiredWorkers: 7 })
  await page.locator('#open-scale[data-fill-workers="7"]').waitFor()
  assert.equal(await row.getByText('lost connection').isVisible(), true)
  assert.deepEqual(await page.audit(), [])
})

rareTest('Escape and Cancel close a dialog without effect and give the focus back', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  for (const close of [() => page.keyboard.press('Escape'),
    () => page.getByRole('dialog').getByText('Cancel').press('Enter')])
  {
    await page.locator('#open-restart').press('Enter')
    await page.getByRole('dialog', { name: 'Restart all workers?' }).waitFor()
    await close()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'open-restart')
  }
  assert.deepEqual(dashboard.deck.dispatched, [])
})

rareTest('an open dialog keeps focus and text while the page changes beneath it', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.locator('#open-deploy').click()
  await page.getByRole('dialog').waitFor()
  await page.keyboard.type('half a no')
  dashboard.setWorker(1, { state: 'unresponsive' })
  await page.locator('#worker-1-1').getByText('Unresponsive').waitFor()
  await page.keyboard.type('te')
  assert.equal(await page.getByRole('dialog').getByLabel('Note').inputValue(), 'half a note')
  await page.keyboard.press('Escape')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'open-deploy')
})

rareTest('scales from the size that is wanted now, and refuses what is out of range', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.locator('#open-scale').click()
  const field = page.getByRole('dialog').getByLabel('Workers')
  assert.equal(await field.inputValue(), '2')
  await field.fill('257')
  await field.press('Enter')
  assert.equal(await field.evaluate((input: HTMLInputElement) => input.validity.rangeOverflow), true)
  await field.fill('6')
  await field.press('Enter')
  await page.locator('#facts').getByText('/ 6 ready').waitFor()
  assert.deepEqual(dashboard.deck.dispatched, [{ type: 'scale', workers: 6, actor: 'the owner\'s token' }])
})

test('a dialog that was opened before somebody else has scaled says so, does nothing, and asks once more', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.getByRole('button', { name: 'Scale' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.locator('[name=workers]').fill('4')
  dashboard.deck.dispatch({ type: 'scale', workers: 6, actor: 'bob' })
  await dialog.getByRole('button', { name: 'Scale', exact: true }).click()
  await dialog.getByRole('alert').getByText('bob has set it to 6 workers since you opened this. Nothing was changed.')
    .waitFor()
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
  assert.equal(dashboard.deck.snapshot().desiredWorkers, 6)
  await dialog.getByRole('button', { name: 'Scale anyway' }).click()
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(dashboard.deck.snapshot().desiredWorkers, 4)
  await page.getByRole('button', { name: 'Scale' }).click()
  await dialog.getByRole('button', { name: 'Scale', exact: true }).waitFor()
  assert.equal(await dialog.getByRole('alert').count(), 0)
})

rareTest('restarts the one worker whose row was clicked', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.getByRole('button', { name: 'Restart worker 2 in slot 2' }).click()
  await page.getByRole('dialog', { name: 'Restart worker 2 in slot 2?' }).getByRole('button', {
    name: 'Restart worker'
  }).click()
  await page.locator('#rollout-progress').waitFor()
  assert.deepEqual(dashboard.deck.dispatched, [{ type: 'restart-worker', worker: 2, actor: 'the owner\'s token',
    client: 'dashboard' }])
})

rareTest('sends a message to all workers, or to the one whose page it is', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/workers/2')
  await page.locator('#worker-message').click()
  await page.getByRole('dialog', { name: 'Send a message to worker 2 in slot 2' }).getByLabel('Type').fill('log-level')
  await page.getByLabel('Data').fill('{"level": "debug"}')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  await page.goto(dashboard.url)
  await page.locator('#open-message').click()
  await page.getByRole('dialog', { name: 'Send a message to all workers' }).getByLabel('Type').fill('reload')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  assert.deepEqual(dashboard.deck.dispatched.map(({ order }) => order), [{ type: 'log-level', data: { level: 'debug' },
    worker: 2, actor: 'the owner\'s token' }, { type: 'reload', actor: 'the owner\'s token' }])
})

rareTest('a message that is refused stays in its dialog, to be mended', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.locator('#open-message').click()
  await page.getByLabel('Type').fill('reload')
  await page.getByLabel('Data').fill('{level: 1}')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('alert').getByText('data: expected JSON, received "{level: 1}"').waitFor()
  assert.equal(await page.getByLabel('Data').inputValue(), '{level: 1}')
  await page.getByLabel('Data').fill('')
  await page.getByLabel('Type').fill('shutdown')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('alert').getByText('not a reserved one: shutdown').waitFor()
  assert.deepEqual(dashboard.deck.dispatched, [])
})

test('of 64 workers the sick come first, each is a click away, and what somebody sorts and searches stays while figures come', async (t) => {
  const dashboard = await startDashboard(t, browser)
  setManyWorkers(dashboard, (worker) => worker.slot === 41 ? { ...worker, ...LOOPING } : worker)
  const page = await dashboard.visit()
  const slots = () => page.locator('#workers tbody th').allInnerTexts()
  assert.deepEqual((await slots()).map(Number), [41, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  await page.getByText('12 of 64 workers').waitFor()
  assert.equal(await page.getByRole('list', { name: 'Each worker, by slot' }).getByRole('link').count(), 64)

  await page.locator('#restart-5').focus()
  dashboard.setWorker(5, { state: 'unresponsive' })
  await page.locator('#worker-5-5 + #worker-41-none').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'restart-5')

  await page.getByRole('link', { name: 'Memory', exact: true }).press('Enter')
  await page.waitForURL('**/?sort=memory')
  await page.locator('th[aria-sort=descending]').getByText('Memory').waitFor()
  assert.deepEqual((await slots()).slice(0, 2), ['64', '63'])
  dashboard.setWorker(62, { vitals: { at: STAYS_FRESH, rssBytes: 62 * 2 ** 20, cpuPercent: 91.5 } })
  await page.locator('#worker-63-63 + #worker-62-62').getByText('91.5%').waitFor()
  const shades = await page.locator('.slots .heat rect').evaluateAll((all) =>
    all.map((each) => each.getAttribute('fill-opacity'))
  )
  assert.deepEqual([shades[60], shades[61]], ['0.03', '0.46'])

  await page.locator('#workers-q').pressSequentially('41')
  await page.waitForURL('**/?sort=memory&q=41')
  dashboard.setWorker(5, { state: 'ready' })
  await page.locator('#show-unresponsive').waitFor({ state: 'detached' })
  assert.deepEqual(await slots(), ['41'])
  assert.deepEqual(
    await page.locator('#workers-q').evaluate((
      field: HTMLInputElement
    ) => [field.value, document.activeElement === field]),
    ['41', true]
  )
  await page.reload()
  assert.deepEqual(await slots(), ['41'])
  await page.getByRole('link', { name: 'Slot 17: worker 17, ready' }).click()
  await page.getByRole('heading', { level: 1, name: 'Worker 17' }).waitFor()
})

test('an action that fails is told in the words of the problem', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  await page.locator('#open-restart').click()
  await page.getByRole('dialog', { name: 'Restart all workers?' }).waitFor()
  dashboard.deck.dispatch({ type: 'rollout', kind: 'deploy', actor: 'cli' })
  await page.getByRole('dialog').getByRole('button', { name: 'Restart all' }).click()
  await page.getByRole('alert').getByText(
    'A rollout is running: cli has started a deploy (rollout 1) since you opened this'
  ).waitFor()
})

rareTest('a notice goes once an operator acknowledges it, with who did in the history', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  dashboard.deck.events.publish({ type: 'master.stopped', cause: 'master-lost',
    message: 'the master (pid 7) ended without stopping its workers' })
  const notice = page.locator('#notice-master-lost')
  await notice.getByText('The master (pid 7) ended').waitFor()
  await page.locator('#health.tone-warn').waitFor()
  await notice.getByRole('button', { name: 'Acknowledge' }).click()
  await notice.waitFor({ state: 'detached' })
  await page.locator('#health.tone-ok').waitFor()
  assert.equal(dashboard.history.page({ type: 'notice.acknowledged' }).items[0].actor, 'the owner\'s token')
})

rareTest('however wide the window and however many slots loop, nothing is out of sight to the side', async (t) => {
  const dashboard = await startDashboard(t, browser)
  setManyWorkers(dashboard,
    (worker) =>
      Number(worker.slot) % 2
        ? worker
        : { ...worker, ...LOOPING, restarts: 1234, retryAt: new Date(Date.now() + 599_000).toISOString() })
  const page = await dashboard.visit()
  for (const width of [1440, 1024, 768, 390, 320]) {
    await page.setViewportSize({ width, height: 900 })
    // Charts follow the width a frame later.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
    const over = await page.evaluate(() =>
      ['html', '#workers', '.slots'].filter((selector) => {
        const { scrollWidth, clientWidth } = document.querySelector(selector) as HTMLElement
        return scrollWidth > clientWidth
      })
    )
    assert.deepEqual(over, [], `at ${width}`)
    const height = await page.evaluate(() => document.documentElement.scrollHeight)
    assert.ok(height < 4000, `${height} at ${width}`)
  }
})

rareTest(
  'on a phone with 64 workers, one press shows what killed a worker and its last lines, three restart another one, and two scale',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const { deck } = dashboard
    setManyWorkers(dashboard, (worker) => worker.slot === 2 ? { ...worker, ...LOOPING } : worker)
    appendFileSync(path.join(deck.logs.folder, 'slot-2.stderr.log'), 'TypeError: no such price\n    at priceOf\n')
    deck.events.publish(
      { type: 'worker.forked', worker: 2, slot: 2, at: new Date(Date.now() - 60_000).toISOString() } as NewEvent
    )
    deck.events.publish({ type: 'worker.exited', worker: 2, slot: 2, cause: 'crash', code: 1,
      message: 'worker 2 (slot 2) exited with code 1: TypeError: no such price' })
    const page = await dashboard.visit('/', { width: 390, height: 844 })
    await page.getByRole('link', { name: 'last #2' }).click()
    await page.locator('#worker-head').getByText('exited with code 1: TypeError: no such price').waitFor()
    await page.locator('#worker-output').getByText('at priceOf').waitFor()

    await page.goto(dashboard.url)
    await page.getByRole('link', { name: 'Slot 50: worker 50, ready' }).click()
    await page.locator('#worker-restart').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restart worker' }).click()
    await page.locator('#worker-reason').getByText('Rollout 1 is running').waitFor()
    deck.set({ rollout: null })

    await page.goto(dashboard.url)
    await page.locator('#open-scale').click()
    await page.getByRole('dialog').getByLabel('Workers').fill('65')
    await page.getByRole('dialog').getByRole('button', { name: 'Scale' }).click()
    await page.locator('#facts').getByText('/ 65 ready').waitFor()
    assert.deepEqual(deck.dispatched.map(({ type, worker, workers }) => [type, worker ?? workers]), [['restart-worker',
      50], ['scale', 65]])
  }
)

/** Figures that are older than some seconds are not shown. */
const STAYS_FRESH = new Date(Date.now() + 3_600_000).toISOString()
/** A slot without a worker. */
const LOOPING = Object.freeze({ id: null, pid: null, state: 'backoff', crashLooping: true, vitals: null })

/** 64 of them, the higher the slot the more memory. */
function setManyWorkers ({ deck }: Awaited<ReturnType<typeof startDashboard>>,
  change: (worker: Parts<WorkerRow>) => Parts<WorkerRow>)
{
  const [worker] = deck.snapshot().workers
  const workers = Array.from({ length: 64 },
    (_, index) =>
      change({ ...worker, id: index + 1, slot: index + 1,
        vitals: { at: STAYS_FRESH, rssBytes: (index + 1) * 2 ** 20, cpuPercent: 5 } }))
  deck.set({ desiredWorkers: 64, readyWorkers: workers.filter(({ state }) => state === 'ready').length, workers })
}
