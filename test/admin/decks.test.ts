import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { idOf } from '../../server/system/other-deck.ts'
import { rawRequest, startAdmin, TOKEN, type Admin } from '../support/admin.ts'
import { registered } from '../support/registered.ts'

/** Two decks of this user, of which the first knows the second. */
async function setUp (t: TestContext,
  { here: hereOptions, there: thereOptions, fields }: { here?: object, there?: object, fields?: object } = {})
{
  const here = await startAdmin(t, { limits: { switches: 5 }, ...hereOptions })
  const there = await startAdmin(t, thereOptions)
  const mail = registered({ adminUrl: there.url, ...fields }, TOKEN)
  here.deck.registered.push(mail)
  return { here, there, mail, id: idOf(mail) }
}

const switchTo = (admin: Admin, cookie: string, deck: string, headers: Record<string, string> = {}) =>
  admin.post('switch', `deck=${deck}`, { cookie, 'HX-Current-URL': `${admin.url}/logs`, ...headers })

const newest = (admin: Admin, type: string) => admin.history.page({ type: [type], limit: 1 }).items[0]

test('who has signed in by the token of this deck sees the other one and its health, and comes in there', async (t) => {
  const { here, there, id } = await setUp(t)
  there.deck.set({ readyWorkers: 1 })
  const cookie = await here.signIn()
  const { text } = await rawRequest(here, { path: '/decks', headers: { cookie, 'HX-Current-URL': `${here.url}/` } })
  assert.match(text, /mail[^]*degraded[^]*1\/2[^]*\/srv\/mail/)
  assert.equal(text.split('aria-current').length, 2)

  const { status, headers } = await switchTo(here, cookie, id)
  assert.equal(status, 204)
  const link = String(headers['hx-redirect'])
  assert.match(link, new RegExp(`^${there.url}/sign-in\\?code=[\\w-]{43}$`))
  assert.equal((await rawRequest(here, { path: link.slice(there.url.length) })).headers['set-cookie'], undefined,
    'it is no link of this deck')
  const visit = await rawRequest(there, { path: link.slice(there.url.length),
    headers: { cookie, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } })
  assert.equal(visit.headers.location, '/')
  const own = String(visit.headers['set-cookie']).split(';')[0]
  assert.notEqual(own.split('=')[0], cookie.split('=')[0], 'both sessions live side by side')
  assert.equal((await there.visit('/access', { cookie: `${cookie}; ${own}` })).status, 200)
  assert.equal((await here.visit('/access', { cookie: `${cookie}; ${own}` })).status, 200)

  assert.match(String(newest(here, 'access.switched').message),
    new RegExp(`^the owner's token \\(admin\\) switched to the deck mail at ${there.url}$`))
  assert.match(String(newest(there, 'access.signed-in').message),
    /^the owner's token \(admin\) from (::ffff:)?127\.0\.0\.1, by the dashboard of app$/)
  assert.ok(
    !JSON.stringify([here.history.page({ limit: 100 }), there.history.page({ limit: 100 })]).includes(link.slice(-43)),
    'no history has the code'
  )
})

test('nobody is signed in there for longer than here', async (t) => {
  const { here, there, id } = await setUp(t)
  const { body: { url } } = await here.api('post', '/api/v1/sign-in-links').send({ ttl: '1h' }).expect(201)
  const { headers: { 'set-cookie': cookies } } = await rawRequest(here, { path: url.slice(here.url.length) })
  const cookie = String(cookies).split(';')[0]
  here.clock.advance(20 * 60_000)
  const { headers } = await switchTo(here, cookie, id)
  const visit = await rawRequest(there, { path: String(headers['hx-redirect']).slice(there.url.length) })
  assert.match(String(visit.headers['set-cookie']), /; Max-Age=2400;/)
  const own = String(visit.headers['set-cookie']).split(';')[0]
  there.clock.advance(40 * 60_000)
  assert.equal((await rawRequest(there, { path: '/api/v1/status', headers: { cookie: own } })).status, 401)
})

test('whoever was let in by a token with a name, also as an admin, gets neither the list nor a link, and nothing is asked for them', async (t) => {
  const { here, there, id } = await setUp(t)
  for (const role of ['viewer', 'operator', 'admin'] as const) {
    const cookie = await here.signInBy((await here.tokenFor(`ada-${role}`, role)).token)
    assert.equal((await switchTo(here, cookie, id)).status, 403)
    const page = await here.visit('/', { cookie })
    assert.ok(!page.text.includes('decks-open'), role)
    assert.ok(!(await rawRequest(here, { path: '/palette', headers: { cookie } })).text.includes('Switch to'), role)
  }
  assert.equal(there.history.page({ type: ['access.used'], limit: 10 }).items.length, 0)
})

test('a page of a deck that is alone has nothing of others', async (t) => {
  const admin = await startAdmin(t)
  const visit = async () => (await admin.visit('/')).text
  const alone = await visit()
  assert.ok(!alone.includes('decks'))
  admin.deck.registered.push(registered())
  admin.clock.advance(2000)
  assert.match(await visit(), /popovertarget="decks"/)
  admin.deck.registered.pop()
  admin.clock.advance(2000)
  assert.ok(!(await visit()).includes('decks'))
})

test('the palette finds the other decks, for who may go there', async (t) => {
  const { here, id } = await setUp(t, { fields: { name: 'mail <b>' } })
  const { text } = await here.visit('/palette')
  assert.match(text, new RegExp(`hx-post="/actions/switch" hx-vals='{"deck":"${id}"}'[^]*Switch to mail &lt;b&gt;`))
})

test('through a proxy or another port it leads to where people reach that deck, or says how to come there', async (t) => {
  const { here, there, mail, id } = await setUp(t, {
    there: { publicUrl: 'https://ops.example.com/mail', allowedHosts: [] }
  })
  const cookie = await here.signIn()
  for (const page of ['https://ops.example.com/', `http://127.0.0.1:${here.port + 1}/`]) {
    const refused = await switchTo(here, cookie, id, { 'HX-Current-URL': page })
    assert.equal(refused.status, 409)
    assert.match(refused.json().detail,
      new RegExp(
        `^mail has its admin page at ${there.url}\\. Not reachable from here\\. Run ssh -L ${there.port}:127\\.0\\.0\\.1:${there.port} `
      ))
    assert.equal(refused.headers['hx-redirect'], undefined)
    const { text } = await rawRequest(here, { path: '/decks', headers: { cookie, 'HX-Current-URL': page } })
    assert.ok(!text.includes('/actions/switch') && text.includes('ssh -L'), page)
  }
  here.deck.registered[0] = { ...mail, publicUrl: 'https://ops.example.com/mail' }
  const led = await switchTo(here, cookie, id, { 'HX-Current-URL': 'https://ops.example.com/shop/' })
  assert.match(String(led.headers['hx-redirect']), /^https:\/\/ops\.example\.com\/mail\/sign-in\?code=[\w-]{43}$/)
  assert.match(String((await switchTo(here, cookie, id)).headers['hx-redirect']),
    new RegExp(`^${there.url}/sign-in\\?code=`))
})

test('what is no deck, runs no more or does not answer leads nowhere, and says so', async (t) => {
  const { here, there, mail, id } = await setUp(t)
  const cookie = await here.signIn()
  for (const [deck, status] of [['', 422], ['mail', 422], [encodeURIComponent('http://evil.example/'), 422], [
    '0'.repeat(16),
    404
  ]] as [string, number][]) {
    assert.equal((await switchTo(here, cookie, deck)).status, status, deck)
  }
  await there.admin.close()
  const silent = await switchTo(here, cookie, id)
  assert.deepEqual([silent.status, silent.headers['hx-redirect']], [503, undefined])
  assert.match(silent.json().detail, new RegExp(`^${mail.name} `))
  assert.equal(here.history.page({ type: ['access.switched'], limit: 1 }).items.length, 0)
})

test('switching has a limit of its own, and is for pages of this dashboard', async (t) => {
  const { here, there, id } = await setUp(t)
  const cookie = await here.signIn()
  assert.equal((await switchTo(here, cookie, id, { 'sec-fetch-site': 'same-site' })).status, 403)
  assert.equal((await switchTo(here, cookie, id, { Origin: there.url })).status, 403)
  assert.equal((await here.api('post', '/actions/switch').type('form').send({ deck: id })).status, 403)
  const answers = []
  for (let n = 0; n < 6; n++) answers.push((await switchTo(here, cookie, id)).status)
  assert.deepEqual(answers, [204, 204, 204, 204, 204, 429])
})
