import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { RULES_OF_COLOUR, untilLive, useBrowser, type WatchedPage } from '../support/browser.ts'
import { profileOf } from '../support/cpu-profile.ts'
import { startDashboard, visit } from '../support/dashboard.ts'
import { afterTurnsOf, aMember, aRollout, createFakeFleet, failedTurnOf } from '../support/fake-fleet.ts'
import { tempFolder } from '../support/folder.ts'
import { PLACES, type Place } from '../support/places.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { registered } from '../support/registered.ts'
import { rolledBackDeploy } from '../support/rollouts.ts'

const browser = useBrowser()

/** One of everything: every worker state, a rollout that runs and one that failed, long texts. */
async function busyDashboard (t: TestContext) {
  const dashboard = await startDashboard(t, browser)
  const { deck } = dashboard
  const [worker] = deck.snapshot().workers
  const states = ['ready', 'starting', 'draining', 'stopping', 'unresponsive']
  deck.dispatch({ type: 'rollout', kind: 'deploy', note: 'a note '.repeat(40), actor: 'cli' })
  dashboard.finishRollout('failed', 'x'.repeat(300))
  deck.set({ desiredWorkers: 6,
    app: { entry: `/srv/${'folder/'.repeat(30)}app.js`, cwd: '/srv',
      addresses: ['http://localhost:3000', `unix:/run/${'x'.repeat(90)}.sock`] },
    workers: [...states.map((state, index) => ({ ...worker, id: index + 1, slot: index + 1, state })), { ...worker,
      id: null, pid: null, slot: 6, state: 'backoff', crashLooping: true, restarts: 12, vitals: null,
      retryAt: new Date(Date.now() + 30_000).toISOString() }] })
  const file = path.join(tempFolder(), 'one.cpuprofile')
  writeFileSync(file,
    JSON.stringify(
      profileOf([[1, '(root)', [2, 3]], [2, 'a'.repeat(150), [4]], [3, 'b'], [4, 'c']], [[2, 30], [4, 20], [3, 10]])
    ))
  deck.diagnostics.items.unshift({ ...deck.diagnostics.items[0], id: 3, kind: 'heap-snapshot', state: 'failed',
    error: 'w'.repeat(200) }, { ...deck.diagnostics.items[0], id: 2, kind: 'cpu-profile', durationMs: 10_000, file })
  deck.requests.push({ method: 'GET', path: `/${'p'.repeat(400)}`, ageMs: 12 })
  deck.releases.items.push({ ...deck.releases.items[0], id: 'r2',
    git: { ...deck.releases.items[0].git, subject: 's'.repeat(200) } })
  deck.alerts.status = 404
  deck.alerts.test({ id: 'file-1', actor: 'cli' })
  deck.alerts.status = 503
  deck.events.publish({ type: 'scale.changed', detail: { to: 6 } })
  deck.events.publish({ type: 'worker.exited', worker: 13, slot: 1, cause: 'crash', code: 1, uptimeMs: 5000,
    message: 'v'.repeat(400), detail: { crash: 1, crashGroup: 1 } })
  deck.events.publish({ type: 'worker.exited', worker: 1, slot: 1, cause: 'crash', code: 1, message: 'y'.repeat(400),
    detail: { stack: 'z'.repeat(400), more: 1 } })
  deck.events.publish({ type: 'rollout.rolled-back', rollout: 7,
    detail: rolledBackDeploy({ note: 'n'.repeat(300), reason: 'r'.repeat(400) }) })
  dashboard.deck.fleet = busyFleet()
  return dashboard
}

/** Members in every state, and a rollout that waits for a person. */
function busyFleet () {
  const members = [aMember({ member: 'm-1', isOwn: true }),
    aMember({ member: 'm-2', isSilent: true, ageMs: 90_000, host: 'h'.repeat(200), labels: { zone: 'z'.repeat(200) } }),
    aMember({ member: `m-${'l'.repeat(90)}`, app: 'a'.repeat(200), health: { tone: 'bad', text: 't'.repeat(300) },
      openCrashes: 3, url: 'https://far.example' }),
    aMember({ member: 'm-3', version: '0.0.9', code: { version: '1.4.1', commit: null },
      health: { tone: 'info', text: 'Deploying r4' },
      rollout: { id: 3, kind: 'deploy', state: 'rolling', replaced: 1, total: 4 } })]
  const rollout = failedTurnOf(
    afterTurnsOf(aRollout(members.map(({ member }) => member), { note: 'n'.repeat(300), absent: ['m-9'] }), 'm-1'),
    'm-3',
    'r'.repeat(400)
  )
  const fleet = createFakeFleet({ members, rollout, past: [{ ...afterTurnsOf(aRollout(['m-1']), 'm-1'), id: 6 }],
    problem: 'the name m-1 is that of another deck' })
  fleet.history = async () => ({
    items: members.map(({ member, app, host }, index) => ({ seq: 9 - index, at: AT, member, app, host,
      event: { ...CRASH, id: 9 - index } })
    ),
    next: 5
  })
  return fleet
}

const AT = '2026-01-01T12:00:00.000Z'
const CRASH = { at: AT, type: 'worker.exited', cause: 'crash', slot: 1, worker: 5, pid: 4107, release: 'r3',
  rollout: null, actor: null, code: 1, signal: null, uptimeMs: 5000, message: 'v'.repeat(400),
  detail: { stack: 'z'.repeat(400) } }

const FITS_WITHIN_MS = 30_000
/** What there is in that dashboard. */
const SUBJECTS = { worker: 1, ended: 13, event: 3, crash: null, release: 'r1', otherRelease: 'r2', rollout: 1,
  profile: 2, member: 'm-3' }
const IN_ONE_THEME = ['ended', 'docs', 'nowhere']
/** Each is looked at in both themes. */
const PAGES = pathsOf(({ name }) => !IN_ONE_THEME.includes(name))
/**
 * What else a template can show: another state, an empty list, a notice. It is made of the same parts, so one theme
 * will do.
 */
const VARIANTS = [...pathsOf(({ name }) => IN_ONE_THEME.includes(name)), '/?q=5&sort=memory', '/rollouts/7',
  '/history?type=worker.exited&rollout=1', '/history?slot=abc', '/history?slot=99&cause=crash', '/logs?slot=9',
  '/logs?q=nowhere', '/logs?around=2026-01-01', '/fleet?q=nowhere', '/routes?compare=r1', '/docs/how-it-works']

function pathsOf (isMeant: (place: Place) => boolean): string[] {
  return PLACES.filter((place) => !place.isForeign && isMeant(place)).flatMap(({ pathOf }) => pathOf(SUBJECTS) || [])
}

/**
 * From wide to narrow, each width once. All rules have their turn where it is narrow and more of a page scrolls, those
 * of colour in the other theme besides; `npm run screenshots` looks at all rules in both themes at every width.
 * 720: a window of 1440 at a zoom of 200 %. 390 has the layout of 320 with more room.
 */
const LOOKS: readonly { width: number, audits: readonly { rules?: readonly string[] }[] }[] = [{ width: 1440,
  audits: [{ rules: RULES_OF_COLOUR }] }, { width: 720, audits: [] }, { width: 320, audits: [{}] }].slice(
    rareOnly ? -1 : 0
  )
/** What is painted costs more than what is measured, and the rest of a page is measured all the same. */
const HEIGHT = 400

/** A page comes in the theme in which the one before it was left, as another theme is another drawing of all of it. */
const themes: ['light' | 'dark', 'light' | 'dark'] = ['light', 'dark']

async function assertAccessible (page: WatchedPage, what: string, { isVariant = false }: { isVariant?: boolean } = {}) {
  for (const { width, audits } of LOOKS) {
    await page.setViewportSize({ width, height: HEIGHT })
    // A graph is drawn anew after its page has another width.
    const isFitting = page.waitForFunction(
      () => document.documentElement.scrollWidth <= document.documentElement.clientWidth,
      undefined,
      { timeout: FITS_WITHIN_MS }
    )
    await isFitting.catch(async () =>
      assert.fail(`${what} is wider than a screen of ${width} pixels: ${await widest(page)}`)
    )
    for (const { rules } of audits) {
      if (rules && isVariant) continue
      const colorScheme = themes[rules ? 0 : 1]
      await page.lookAs(colorScheme)
      assert.deepEqual(await page.audit({ rules }), [], `${what}, ${colorScheme}, ${width} pixels wide`)
    }
  }
  themes.reverse()
}

/** @returns the beginning of what reaches farthest to the right */
function widest (page: WatchedPage): Promise<string> {
  return page.evaluate(() => {
    const reach = (element: Element) => element.getBoundingClientRect().right
    const all = [...document.body.querySelectorAll('*')].filter((element) => !element.closest('.scroller, .sr-only'))
    return all.reduce((one, other) => reach(other) > reach(one) ? other : one).outerHTML.slice(0, 200)
  })
}

// The variants, the other widths and the other theme of a page are rare.
test(`every page passes axe, has colours to be read in ${rareOnly ? 'one theme' : 'both themes'}, and fits ${rareOnly ? 'into' : 'down to'} 320 pixels`, async (t) => {
  const dashboard = await busyDashboard(t)
  const page = await dashboard.visit('/', { reducedMotion: 'reduce' })
  for (const place of [...PAGES, ...(rareOnly ? [] : VARIANTS)]) {
    await page.goto(dashboard.url + place)
    await assertAccessible(page, place, { isVariant: VARIANTS.includes(place) })
  }
  dashboard.deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cli' })
  await page.goto(dashboard.url)
  await page.locator('#rollout-progress').waitFor()
  await assertAccessible(page, 'with a rollout')
  // What the page still asks for without its session is not meant.
  await page.goto('about:blank')
  await page.context().clearCookies()
  await page.goto(dashboard.url)
  await assertAccessible(page, 'sign-in')
  // Chromium reports the 400 and 404 that were asked for.
  page.allow(/status of 40[04]/)
})

rareTest('every dialog passes axe', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/', { reducedMotion: 'reduce' })
  // What is below a dialog is inert, and has been examined without it.
  const auditDialog = async (opener: string) => {
    await page.locator(opener).click()
    await page.locator('dialog[open]').waitFor()
    assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [], opener)
    await page.keyboard.press('Escape')
    await page.locator('dialog[open]').waitFor({ state: 'detached' })
  }
  for (const opener of ['#open-scale', '#open-restart', '#open-deploy', '#restart-1', '#open-message'])
    await auditDialog(opener)
  await page.goto(`${dashboard.url}/workers/1`)
  for (const opener of ['#worker-kill', '#looks-heap']) await auditDialog(opener)
  dashboard.deck.fleet = busyFleet()
  await page.goto(`${dashboard.url}/fleet`)
  for (const opener of ['#open-fleet-deploy', '#open-fleet-rollback', '#fleet-abort']) await auditDialog(opener)
})

rareTest('the menu of the decks passes axe, and fits', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const GONE = { pid: 2 ** 30, startTime: null }
  dashboard.deck.registered.push(registered({ name: 'n'.repeat(60), cwd: `/srv/${'folder/'.repeat(30)}` }),
    registered({ name: 'restarts', master: GONE }), registered({ name: 'lan', adminUrl: 'http://10.0.0.7:9777' }))
  const page = await dashboard.visit('/', { reducedMotion: 'reduce' })
  await page.getByRole('button', { name: 'Switch to another deck' }).click()
  await page.locator('#decks').getByText('does not answer', { exact: true }).waitFor()
  await assertAccessible(page, 'the menu of the decks')
  const sides = await page.locator('#decks').evaluate((menu) => ({ left: menu.getBoundingClientRect().left,
    right: menu.getBoundingClientRect().right })
  )
  assert.ok(sides.left >= 0 && sides.right <= 320, JSON.stringify(sides))
})

rareTest(
  'with colours of the user\'s own every state is still told by a text beside its dot, and dots keep their colours',
  async (t) => {
    const dashboard = await busyDashboard(t)
    const page = await dashboard.visit('/', { reducedMotion: 'reduce' })
    await page.emulateMedia({ forcedColors: 'active' })
    for (const place of ['/', '/deploys', '/workers/1', '/crashes', '/checks', '/alerts', '/fleet', '/settings']) {
      await page.goto(dashboard.url + place)
      const mute = await page.locator('.badge, .pill, .step, .standing, .health').evaluateAll((all) =>
        all.filter((one) => (one as HTMLElement).checkVisibility() && (one as HTMLElement).innerText.trim() === '').map(
          (one) => one.outerHTML
        )
      )
      assert.deepEqual(mute, [], place)
    }
    await page.goto(dashboard.url)
    const colours = await page.locator('#workers .dot').evaluateAll((dots) =>
      dots.map((dot) => getComputedStyle(dot).backgroundColor)
    )
    assert.ok(new Set(colours).size >= 4,
      `of ready, starting, draining, stopping, unresponsive and crash-looping: ${colours.join(' ')}`)
  }
)

test('nothing moves for who wants less motion', async (t) => {
  const dashboard = await busyDashboard(t)
  dashboard.deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cli' })
  const page = await dashboard.visit('/')
  const moving = () =>
    page.evaluate(() => document.getAnimations().filter(({ playState }) => playState === 'running').length)
  assert.notEqual(await moving(), 0)
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.reload()
  await untilLive(page)
  await page.waitForFunction(() => document.getAnimations().every(({ playState }) => playState !== 'running'))
})

test('the first Tab offers to skip to the content', async (t) => {
  const { page } = await visit(t, browser)
  await page.keyboard.press('Tab')
  await page.getByRole('link', { name: 'Skip to the content' }).press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main')
})
