import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { OWNER } from '../../server/config/actor-names.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { startDashboard } from '../support/dashboard.ts'
import { afterTurnsOf, aMember, aRollout, createFakeFleet, failedTurnOf, inTurnOf } from '../support/fake-fleet.ts'
import { startFleet } from '../support/fleet.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { followTraffic } from '../support/traffic.ts'

const browser = useBrowser()

const NAMES = ['a-1', 'b-2', 'c-3']
const MEMBERS = NAMES.map((member, index) => aMember({ member, isOwn: index === 0 }))

async function startFleetPage (t: TestContext, given: Parameters<typeof createFakeFleet>[0] = { members: MEMBERS }) {
  const dashboard = await startDashboard(t, browser)
  const fleet = createFakeFleet(given)
  dashboard.deck.fleet = fleet
  return { dashboard, fleet }
}

test('one look says who is silent and how far the rollout is, and one click pauses it', async (t) => {
  const rollout = inTurnOf(afterTurnsOf(aRollout(NAMES), 'a-1'), 'b-2')
  const { dashboard, fleet } = await startFleetPage(t, { members: MEMBERS, rollout })
  const page = await dashboard.visit('/fleet', { reducedMotion: 'reduce' })
  await page.getByRole('heading', { name: 'All 3 members are well' }).waitFor()
  assert.match(await page.locator('#fleet-rollout .rollout-count').innerText(), /^1 of 3 done/)
  assert.deepEqual(
    await page.locator('.fleet-step.is-current').allInnerTexts().then((texts) =>
      texts.map((text) => text.split(/\s/)[0])
    ),
    ['done', 'running', 'waiting']
  )
  assert.match(await page.locator('#open-fleet-deploy').getAttribute('aria-disabled') ?? '', /true/)

  fleet.set({ members: [...MEMBERS.slice(0, 2), { ...MEMBERS[2], isSilent: true, ageMs: 65_000 }] })
  await page.getByRole('heading', { name: '3 members: 1 silent' }).waitFor()
  await page.locator('#member-c-3').getByText('Silent for 1 min').waitFor()
  assert.equal(await page.locator('#fleet-members tbody tr').first().getAttribute('id'), 'member-c-3')

  await page.locator('#fleet-pause').click()
  await page.getByRole('heading', { name: 'Deploy to the fleet: paused' }).waitFor()
  assert.deepEqual(fleet.asked, [{ order: 'pause', actor: 'the owner\'s token' }])
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'fleet-resume')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Deploy to the fleet: running' }).waitFor()

  fleet.set({ rollout: failedTurnOf(rollout, 'c-3', 'connect ECONNREFUSED') })
  await page.getByRole('heading', { name: 'Deploy to the fleet: held' }).waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('heading', { name: 'Deploy to the fleet: running' }).waitFor()
  assert.deepEqual(fleet.asked.map(({ order }) => order), ['pause', 'resume', 'resume'])
})

test('a deploy goes out as the dialog says, and the second operator reads who was first', async (t) => {
  const { dashboard, fleet } = await startFleetPage(t)
  const page = await dashboard.visit('/fleet', { reducedMotion: 'reduce' })
  await page.keyboard.press('g')
  await page.keyboard.press('f')
  await untilLive(page)
  await page.locator('#open-fleet-deploy').click()
  const dialog = page.getByRole('dialog', { name: 'Deploy to the fleet?' })
  await dialog.getByLabel('Note').fill('faster')
  await dialog.getByLabel('Members at a time').fill('50%')
  await dialog.getByLabel('Pause between').selectOption('30 s')
  await dialog.getByLabel('Order').selectOption('by the label zone')
  await dialog.getByLabel('Canary').fill('c-3')
  await dialog.getByLabel('If a member fails').selectOption('roll all members back, last first')
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
  await dialog.getByText('As a command').click()
  assert.match(await dialog.locator('[data-command=cli]').innerText(),
    /^clusterdeck fleet deploy --note faster --batch 50% --pause 30000ms --order zone --canary c-3 --on-failure rollback$/)
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click()
  await page.locator('.fleet-matrix').waitFor()
  assert.deepEqual(fleet.asked, [{ order: 'begin', actor: 'the owner\'s token',
    wanted: { kind: 'deploy', note: 'faster', batch: '50%', pauseMs: 30_000, order: 'zone', canary: 'c-3',
      onFailure: 'rollback' } }])
  assert.match(await page.locator('#fleet-rollout').innerText(), /30 s between · a failure rolls all hosts back/)

  await page.evaluate(() => document.querySelector('#open-fleet-restart')?.removeAttribute('aria-disabled'))
  await page.locator('#open-fleet-restart').click()
  await page.getByRole('dialog', { name: 'Restart the fleet?' }).getByRole('button', { name: 'Restart', exact: true })
    .click()
  await page.getByText(/Rollout 1 of the fleet \(deploy by the owner's token\) is running/).waitFor()
})

rareTest('members that say something new send figures alone, move no row, and a row that differs goes by itself',
  async (t) => {
    const { dashboard, fleet } = await startFleetPage(t)
    const page = await dashboard.openSignedIn()
    const traffic = await followTraffic(page)
    await page.goto(`${dashboard.url}/fleet`, { waitUntil: 'networkidle' })
    await untilLive(page)
    const updates = () => traffic.messages.map((message) => JSON.parse(message.slice(message.indexOf('['))).at(-1))
    assert.deepEqual(updates().flatMap(({ fragments }) => fragments), [], 'nothing of the page comes twice')
    await page.evaluate(() => {
      window.shifts = []
      new PerformanceObserver((list) =>
        window.shifts.push(...list.getEntries().map((entry) => (entry as PerformanceEntry & { value: number }).value))
      ).observe({ type: 'layout-shift', buffered: false })
    })
    traffic.messages.length = 0
    fleet.set({
      members: MEMBERS.map((member) => ({ ...member, ageMs: 3,
        vitals: { requestsPerSecond: 1234.5, latencyP99Ms: 9 } })
      )
    })
    await page.locator('#member-b-2').getByText('1,235').waitFor()
    assert.deepEqual(updates().flatMap(({ fragments }) => fragments), [])
    // The unit beside a figure moves with it.
    assert.ok(await page.evaluate(() => window.shifts.reduce((sum, shift) => sum + shift, 0)) < 0.001)

    fleet.set({ members: [MEMBERS[0], { ...MEMBERS[1], openCrashes: 3 }, MEMBERS[2]] })
    await page.locator('#member-b-2 .fleet-short').waitFor()
    const { parts } = updates().flatMap(({ fragments }) => fragments).find(({ id }) => id === 'fleet-members')
    const sent = JSON.stringify(parts)
    assert.match(sent, /{"row":"member-a-1"}/)
    assert.match(sent, /<tr [^>]*id=\\"member-b-2\\"/)
  })

rareTest('filters are links and a form, and stay in the address', async (t) => {
  const { dashboard } = await startFleetPage(t, {
    members: [MEMBERS[0], aMember({ member: 'down', labels: { zone: 'x' }, isSilent: true }),
      aMember({ member: 'far', url: 'https://far.example/deck' })]
  })
  const page = await dashboard.visit('/fleet')
  await page.locator('#fleet-tabs').getByRole('link', { name: 'Silent 1' }).click()
  await page.waitForURL(/\/fleet\?health=silent$/)
  assert.deepEqual(await page.locator('#fleet-members .row-link').allInnerTexts(), ['down'])
  await page.locator('#fleet-tabs').getByRole('link', { name: 'All 3' }).click()
  await page.locator('#fleet-label').selectOption('zone:x')
  await page.waitForURL(/\/fleet\?label=zone:x$/)
  assert.deepEqual(await page.locator('#fleet-members .row-link').allInnerTexts(), ['down'])
  await page.locator('#fleet-clear').click()
  await page.locator('#fleet-q').fill('fa')
  await page.waitForURL(/\/fleet\?q=fa$/)
  const link = page.locator('#member-far .row-link')
  assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel')], ['https://far.example/deck',
    'noopener'])
  await page.locator('#member-far').getByRole('link', { name: 'more' }).click()
  await page.getByRole('heading', { name: 'far' }).waitFor()
})

rareTest('what is typed before the page listens is searched for', async (t) => {
  const { dashboard } = await startFleetPage(t)
  const page = await dashboard.visit('/fleet')
  let goOn = () => {}
  const held = new Promise((resolve) => {
    goOn = () => resolve(undefined)
  })
  await page.route('**/libraries.js*', async (route) => {
    await held
    await route.continue()
  })
  await page.goto(`${dashboard.url}/fleet?q=a`, { waitUntil: 'commit' })
  await page.locator('#fleet-q').fill('b-')
  goOn()
  await page.waitForURL(/\/fleet\?q=b-$/)
  assert.deepEqual(await page.locator('#fleet-members .row-link').allInnerTexts(), ['b-2'])
})

test('a viewer sees the fleet, and has nothing to order it about with; a deck that is alone has no entry for it', async (t) => {
  const { dashboard, fleet } = await startFleetPage(t, { members: MEMBERS, rollout: aRollout(NAMES) })
  const { body: { token } } = await dashboard.api('post', '/api/v1/tokens').send({ name: 'eve', role: 'viewer' })
  const page = await dashboard.openPage()
  await page.goto(dashboard.url)
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Fleet' }).click()
  await page.locator('.fleet-matrix').waitFor()
  assert.equal(await page.locator('main button, dialog').count(), 0)
  dashboard.deck.fleet = null
  await page.reload()
  await page.getByText('This host is in no fleet').waitFor()
  assert.equal(await page.getByRole('link', { name: 'Fleet', exact: true }).count(), 0)
  dashboard.deck.fleet = fleet
})

rareTest('five hundred members are painted within a second, in a page that is small', async (t) => {
  const members = Array.from({ length: 500 },
    (_, index) =>
      aMember({ member: `host-${String(index).padStart(3, '0')}-shop`, isOwn: index === 0,
        labels: { zone: 'abc'[index % 3], rack: String(index % 20) } }))
  const names = members.map(({ member }) => member)
  const { dashboard } = await startFleetPage(t, { members,
    rollout: inTurnOf(afterTurnsOf(aRollout(names), ...names.slice(0, 200)), names[200]) })
  const page = await dashboard.openSignedIn()
  const traffic = await followTraffic(page)
  await page.goto(`${dashboard.url}/fleet`, { waitUntil: 'networkidle' })
  await untilLive(page)
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)
  t.diagnostic(`${traffic.bytes} bytes, ${traffic.requests} requests, first paint after ${Math.round(paint)} ms`)
  assert.ok(traffic.bytes < 110_000, `${traffic.bytes} bytes`)
  assert.equal(await page.locator('#fleet-members tbody tr').count(), 100)
  assert.equal(await page.locator('.fleet-matrix tbody tr').count(), 12)
  await page.goto(`${dashboard.url}/fleet/rollouts/7`)
  await untilLive(page)
  assert.equal(await page.locator('.fleet-matrix tbody tr').count(), 500)
})

test('a click deploys to two decks, one after the other, and the matrix shows it', { skip: withoutNats || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const members = await startFleet(t, ['one', 'two'], { servers: nats.url })
    const [deck] = members
    for (const member of members) member.put('v2')
    const page = await browser.visit(t, deck, '/', { reducedMotion: 'reduce' })
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Fleet' }).click()
    await page.getByRole('heading', { name: 'All 2 members are well' }).waitFor()
    await untilLive(page)
    await page.evaluate(() => {
      window.seen = []
      new MutationObserver(() => {
        const cells = Array.from(document.querySelectorAll('.fleet-step.is-current'),
          (cell) => String(cell.textContent).trim().split(/\s/)[0]).join(' ')
        const { seen } = window
        if (cells && seen.at(-1) !== cells) seen.push(cells)
      }).observe(document.querySelector('#main') ?? document, { subtree: true, childList: true, characterData: true,
        attributes: true })
    })
    await page.locator('#open-fleet-deploy').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy', exact: true }).click()
    await page.getByRole('heading', { name: 'Deploy to the fleet: succeeded' }).waitFor()
    const seen = await page.evaluate(() => window.seen)
    assert.ok(seen.some((cells: string) => /^running\d* waiting|^done\d* running/.test(cells)), JSON.stringify(seen))
    await page.getByRole('link', { name: 'Rollout 1', exact: true }).click()
    await page.getByRole('heading', { name: 'What happened' }).waitFor()
    assert.deepEqual(
      await page.locator('.fleet-step.is-current').allInnerTexts().then((texts) =>
        texts.map((text) => text.split(/\s/)[0])
      ),
      ['done', 'done']
    )
    assert.deepEqual(await Promise.all(members.map((member) => member.version())), ['v2', 'v2'])
    assert.deepEqual(page.problems, [])
  })

test('a member is looked into and ordered about from the page of another one, and its history names who did', {
  skip: withoutNats || rareOnly
}, async (t) => {
  const nats = await startNats(t)
  const [one, two] = await startFleet(t, ['one', 'two'], { servers: nats.url })
  const page = await browser.visit(t, one, '/fleet/members/two', { reducedMotion: 'reduce' })
  const dialog = page.getByRole('dialog')
  const rowOf = (worker: number) => page.locator('.workers tbody tr').filter({ hasText: `#${worker}` })
  await rowOf(1).getByText('Ready').waitFor()
  assert.deepEqual(await page.audit(), [])

  await page.getByRole('button', { name: 'Scale' }).click()
  await dialog.getByText('As a command').click()
  await dialog.getByLabel('Workers').fill('2')
  assert.equal(await dialog.locator('[data-command=cli]').innerText(), 'clusterdeck scale 2 --member two')
  assert.deepEqual(await page.audit({ within: 'dialog[open]' }), [])
  await dialog.getByRole('button', { name: 'Scale' }).click()
  await rowOf(2).getByText('Ready').waitFor()

  await rowOf(2).getByRole('button', { name: 'Kill worker 2 in slot 2' }).click()
  await dialog.getByRole('heading', { name: 'Kill worker 2 in slot 2 of two?' }).waitFor()
  await dialog.getByRole('button', { name: 'Kill worker' }).click()
  await rowOf(3).getByText('Ready').waitFor()

  await rowOf(1).getByRole('button', { name: 'Restart worker 1 in slot 1' }).click()
  await dialog.getByRole('button', { name: 'Restart worker' }).click()
  await rowOf(4).getByText('Ready').waitFor()
  await two.untilStatus(({ rollout }) => rollout === null, 'the end of the restart')

  await page.getByRole('button', { name: 'Restart all' }).click()
  await dialog.getByRole('button', { name: 'Restart all' }).click()
  await rowOf(6).getByText('Ready').waitFor()
  const orders = (await two.history('limit=200')).filter(({ type, actor }) =>
    actor === `${OWNER} on one` && /^(scale\.changed|worker\.killed|rollout\.started)$/.test(type)
  )
  assert.deepEqual(orders.map(({ type }) => type).reverse(), ['scale.changed', 'worker.killed', 'rollout.started',
    'rollout.started'])
  assert.deepEqual(page.problems, [])
})
