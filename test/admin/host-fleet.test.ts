import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { rawRequest, startHostAdmin } from '../support/admin.ts'
import { aMember, aRollout, createFakeFleet, createFakeHostFleet, inTurnOf } from '../support/fake-fleet.ts'
import type { HostFleet } from '../../server/fleet/api-answers.ts'

const OLD = { version: '1.3.0', commit: null }
const NEW = { version: '1.4.0', commit: null }
/** web-2 is behind with shop, and its mail is ill; web-3 is silent, and has no mail. */
const MEMBERS = [aMember({ member: 'web-1', app: 'mail', isOwn: true, code: NEW }),
  aMember({ member: 'web-1', app: 'shop', isOwn: true, code: NEW }),
  aMember({ member: 'web-2', app: 'mail', code: NEW, url: 'https://web-2.example.com',
    health: { tone: 'bad', text: 'No worker is ready' }, workers: { ready: 0, desired: 4 } }),
  aMember({ member: 'web-2', app: 'shop', code: OLD }),
  aMember({ member: 'web-3', app: 'search', code: NEW, url: 'https://web-3.example.com' })]

async function start (t: TestContext) {
  const shop = createFakeFleet({ members: MEMBERS.filter(({ app }) => app === 'shop'),
    rollout: inTurnOf(aRollout(['web-1', 'web-2'], { kind: 'restart' }), 'web-1') })
  const members = MEMBERS.map((each) => each.member === 'web-3' ? { ...each, isSilent: true, ageMs: 90_000 } : each)
  const host = await startHostAdmin(t, { names: ['mail', 'shop'],
    fleet: () => createFakeHostFleet(members, { fleets: [shop] }) })
  host.apps.deck('shop').fleet = shop
  return host
}

test('a host says that it is in no fleet, or is about to join it', async (t) => {
  const pageOf = async (host: Awaited<ReturnType<typeof startHostAdmin>>) =>
    (await rawRequest(host, { path: '/fleet', headers: { cookie: await host.signIn(), accept: 'text/html' } })).text
  const alone = await startHostAdmin(t)
  assert.deepEqual((await alone.api('get', '/api/v1/host/fleet').expect(409)).body.code, 'no-fleet')
  assert.match(await pageOf(alone), /This host is in no fleet/)
  assert.doesNotMatch(await pageOf(alone), /<a href="\/fleet"/)
  const joining = await startHostAdmin(t, { fleet: () => null })
  assert.deepEqual((await joining.api('get', '/api/v1/host/fleet').expect(503)).body.code, 'fleet-away')
  assert.match(await pageOf(joining), /Joining the fleet/)
  assert.match(await pageOf(joining), /<a href="\/fleet" aria-current="page"/)
})

test('all hosts are listed with their apps, and with who is behind', async (t) => {
  const host = await start(t)
  const { body } = await host.api('get', '/api/v1/host/fleet').expect(200)
  assert.deepEqual(
    body.members.map(({ member, isSilent, apps }) => [member, isSilent, apps.map(({ app, mark }) =>
      `${app} ${mark?.label ?? ''}`.trim()
    )]),
    [['web-1', false, ['mail', 'shop']], ['web-2', false, ['mail', 'shop Behind']], ['web-3', true, ['search']]]
  )
  assert.deepEqual(body.rollouts.map(({ app, id, state, progress }) => ({ app, id, state, progress })), [{ app: 'shop',
    id: 7, state: 'running', progress: { total: 2, done: 0, failed: 0 } }])
})

test('the page has hosts by apps, the sick first, with a way to each', async (t) => {
  const host = await start(t)
  const cookie = await host.signIn()
  const { text } = await rawRequest(host, { path: '/fleet', headers: { cookie, accept: 'text/html' } })
  assert.deepEqual(Array.from(text.matchAll(/id="host-(web-\d)"/g), ([, name]) => name), ['web-3', 'web-2', 'web-1'])
  assert.match(text, /<h1[^>]*>1 host silent, 1 app not well, 1 behind<\/h1>/)
  for (const href of ['/apps/shop/fleet', '/apps/shop/fleet/rollouts/7', '/apps/mail/fleet/members/web-2',
    'https://web-3.example.com']) assert.ok(text.includes(`href="${href}"`), href)
  assert.match(text, /restart running, 0 of 2 done/)
  assert.match(text, /host-fleet-why">No worker is ready/)
  assert.match(text,
    /<a href="#host-web-3">web-3 has been silent for 1 min 30 s\. When last heard, it ran search r3 \(4 of 4 workers ready\)<\/a>/)
  const own = await rawRequest(host, { path: '/apps/shop/fleet', headers: { cookie, accept: 'text/html' } })
  assert.ok(own.text.includes('href=\'/fleet\''), 'the page of an app leads back')
})

test('the list of apps says which host is silent and what ran there, and the top bar counts it', async (t) => {
  const host = await start(t)
  const { text } = await rawRequest(host, { path: '/', headers: { cookie: await host.signIn(), accept: 'text/html' } })
  assert.match(text, /<a href="\/fleet#host-web-3">web-3 has been silent for/)
  assert.match(text, /When last heard, it ran search r3/)
  assert.match(text, /id="silent-count">1<span class="sr-only"> silent/)
})

test('a role for one app sees that app alone, on the hosts that have it', async (t) => {
  const host = await start(t)
  const { token } =
    (await host.api('post', '/api/v1/tokens').send({ name: 'ci', role: 'viewer', apps: ['shop'] }).expect(201)).body
  const ask = async (path: string, accept: string) =>
    await rawRequest(host, { path, headers: { authorization: `Bearer ${token}`, accept } })
  const { members } = (await ask('/api/v1/host/fleet', 'application/json')).json<HostFleet>()
  assert.deepEqual(members.map(({ member, apps }) => [member, apps.map(({ app }) => app)]), [['web-1', ['shop']], [
    'web-2',
    ['shop']
  ]])
  assert.equal((await ask('/api/v1/apps/shop/fleet', 'application/json')).json().app, 'shop')
  const operator =
    (await host.api('post', '/api/v1/tokens').send({ name: 'cd', role: 'operator', apps: ['shop'] }).expect(201)).body
      .token
  await host.stranger().delete('/api/v1/host/fleet/members/web-3').set('authorization', `Bearer ${operator}`).expect(
    403
  )
  await host.api('delete', '/api/v1/host/fleet/members/web-3').expect(200)
  const { text } = await ask('/fleet', 'text/html')
  const apps = await ask('/', 'text/html')
  for (const hidden of ['mail', '<bdi>search', 'web-3'])
    assert.ok(!text.includes(hidden) && !apps.text.includes(hidden), hidden)
})
