import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { io } from 'socket.io-client'
import { createAudit } from '../../server/admin/audit.ts'
import { createAdmin } from '../../server/admin/listener.ts'
import { roleAllows, ROLES, type Role } from '../../server/api/roles.ts'
import { PAGES } from '../../server/dashboard/pages.ts'
import { createEventStream, type DeckEvent } from '../../server/events/stream.ts'
import { behindPort } from '../support/fake-apps.ts'
import { heard, rawRequest, START_MS, startAdmin, TOKEN } from '../support/admin.ts'
import { fake } from '../support/fake.ts'
import { OPERATIONS } from '../support/operations.ts'
import { until } from '../support/until.ts'

/** `role`: null for a stranger; `isOwner`: by the token of the data folder */
type Caller = { name: string, role: Role | null, headers: Record<string, string>, isSession?: boolean,
  isOwner?: boolean }

const PLACES = ['own', 'foreign host', 'cross-site', 'same site, other port'] as const
const FOREIGN = 403
/** The pages that a viewer may not see. */
const ROLES_OF_PAGES: Record<string, Role> = { '/access': 'admin', '/decks': 'admin', '/deploys/preview': 'operator',
  '/fleet/preview': 'operator' }

test('every operation, page and form, for everybody and from everywhere, answers who may and refuses who may not', async (t) => {
  const { admin, callers } = await setUp(t)
  const routes = routesOf()
  assert.ok(routes.length > 60)
  const counts: Map<string, number> = new Map()
  // Of each caller: whose a connection is, is looked up for each new one.
  const agents = new Map(callers.map(({ name }) => [name, new http.Agent({ keepAlive: true })]))
  t.after(() => agents.forEach((agent) => agent.destroy()))
  for (const route of routes) {
    for (const caller of callers) {
      for (const place of PLACES) {
        // A stream has no end for whoever is let in.
        if (route.isStream && caller.role !== null && place === 'own') continue
        const { status } = await rawRequest(admin, { method: route.method, path: route.path,
          headers: { ...caller.headers, ...comingFrom(place, admin.port), ...route.headers }, body: route.body,
          agent: agents.get(caller.name) })
        const isProbe = ['/healthz', '/readyz'].includes(route.path)
        const expected = place === 'own' || (isProbe && place === 'foreign host')
          ? expectedStatus(route, caller)
          : [FOREIGN]
        const isRight = Array.isArray(expected) ? expected.includes(status) : ![401, 403].includes(status)
        assert.ok(isRight,
          `${route.method} ${route.path}, ${caller.name}, ${place}: ${status}, expected ${expected ?? 'to be let in'}`)
        const outcome = `${place === 'own' ? caller.name : 'anybody'}, ${place}: ${
          [303, 401, 403].includes(status) ? status : 'let in'
        }`
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
      }
    }
  }
  for (const [outcome, count] of counts) t.diagnostic(`${outcome} ${count} times`)
})

test('a live page follows what its viewer may see, and shows a viewer nothing that changes it', async (t) => {
  const { admin, callers } = await setUp(t)
  for (const { name, headers, role, isSession } of callers.filter((caller) => !caller.isSession)) {
    const socket = io(admin.url, { transports: ['websocket'], extraHeaders: { ...headers }, reconnection: false })
    t.after(() => socket.close())
    const outcome = await Promise.race([heard(socket, 'connect').then(() => 'connected'),
      heard(socket, 'connect_error').then(() => 'refused')])
    assert.equal(outcome, role === null ? 'refused' : 'connected', `${name} ${isSession}`)
    if (role === null) continue
    socket.emit('watch', '/')
    const [{ fragments }] = await heard(socket, 'fragments')
    const html = fragments.flatMap(({ parts }) => parts).join('')
    assert.equal(/data-dialog=|hx-post=/.test(html), roleAllows(role, 'operator'), name)
    socket.close()
  }
})

test('revoking a token ends its session, its live page, its stream and its waiting call at once', async (t) => {
  const { admin } = await setUp(t)
  const { id, headers: own } = await admin.tokenFor('ada', 'admin')
  const { body: { url } } = await admin.stranger().post('/api/v1/sign-in-links').set(own).send({ name: 'eve',
    role: 'viewer' }).expect(201)
  const cookie = await admin.signIn(url)
  await admin.stranger().get('/api/v1/status').set({ cookie }).expect(200)
  await admin.api('post', '/api/v1/rollouts').send({ kind: 'restart' }).expect(202)
  const socket = io(admin.url, { transports: ['websocket'], extraHeaders: own, reconnection: false })
  await heard(socket, 'connect')
  const signedOut = heard(socket, 'signed-out')
  const stream = await fetch(`${admin.url}/api/v1/events/stream`, { headers: own })
  const reading = stream.text()
  const waiting = fetch(`${admin.url}/api/v1/rollouts/1?wait=5m`, { headers: own })
  reading.catch(() => {})
  waiting.catch(() => {})
  await admin.api('delete', `/api/v1/tokens/${id}`).expect(200)
  await assert.rejects(reading)
  await assert.rejects(waiting)
  await signedOut
  await admin.stranger().get('/api/v1/status').set(own).expect(401)
  await admin.stranger().get('/api/v1/status').set({ cookie }).expect(401)
})

test('nobody gives for longer than they have: what a token has made ends with it, and that with its own', async (t) => {
  const { admin } = await setUp(t)
  const as = (token: string) => ({ authorization: `Bearer ${token}` })
  const make = (by: string, body: object) => admin.stranger().post('/api/v1/tokens').set(as(by)).send(body)
  const isLetIn = async (headers: Record<string, string>) =>
    (await admin.stranger().get('/api/v1/status').set(headers)).status === 200
  const visit = async (url: string) => {
    const { status, headers } = await admin.stranger().get(url.slice(admin.url.length))
    return { status, cookie: String(headers['set-cookie']?.[0]).split(';')[0] }
  }
  const { body: root } = await make(TOKEN, { name: 'root', role: 'admin', ttl: '1h' }).expect(201)
  const refused = await make(root.token, { name: 'child', role: 'admin', ttl: '2h' }).expect(403)
  assert.match(refused.body.detail,
    /^ttl: expected no more than token \d+ has left itself \(it ends .+\), received 7200s$/)
  const { body: child } = await make(root.token, { name: 'child', role: 'admin' }).expect(201)
  assert.deepEqual([child.createdBy, child.createdWith, child.expiresAt], ['root', root.id, root.expiresAt])
  const { body: grandchild } = await make(child.token, { name: 'grandchild', role: 'viewer', ttl: '1m' }).expect(201)
  const { body: { url } } = await admin.stranger().post('/api/v1/sign-in-links').set(as(child.token)).send({
    name: 'eve'
  }).expect(201)
  const { body: { url: unused } } = await admin.stranger().post('/api/v1/sign-in-links').set(as(child.token)).send({
    name: 'eve'
  }).expect(201)
  const { cookie } = await visit(url)
  for (const headers of [as(child.token), as(grandchild.token), { cookie }]) assert.ok(await isLetIn(headers))
  const stream = await fetch(`${admin.url}/api/v1/events/stream`, { headers: as(grandchild.token) })
  const reading = assert.rejects(stream.text())

  const { body: ended } = await admin.api('delete', `/api/v1/tokens/${root.id}`).expect(200)
  const links = ended.alsoEnded.filter((id: number) => ![child.id, grandchild.id].includes(id))
  assert.deepEqual([ended.alsoEnded.length, links.length], [4, 2], 'the two tokens, and the two links for eve')
  await reading
  for (const headers of [as(root.token), as(child.token), as(grandchild.token), { cookie }])
    assert.equal(await isLetIn(headers), false)
  assert.equal((await visit(unused)).status, 401)
  const told = admin.history.page({ type: ['token.revoked'], limit: 5 }).items.map(({ message }) => message)
  assert.deepEqual(told.sort(),
    [...links.map((id: number) => `link ${id} of eve (admin), made with token ${child.id}`),
      `token ${child.id} of child (admin), made with token ${root.id}`,
      `token ${grandchild.id} of grandchild (viewer), made with token ${child.id}`, `token ${root.id} of root (admin)`]
      .sort())
  const { body: { items } } = await admin.api('get', '/api/v1/tokens')
  assert.ok(items.every(({ id }) => id < root.id))
})

test('a session may let somebody look who has a name, for no longer than itself, and nothing more', async (t) => {
  const admin = await startAdmin(t)
  const [link, own] = [{ name: 'grace', role: 'viewer' }, { 'sec-fetch-site': 'same-origin',
    cookie: await admin.signIn() }]
  const make = (body: object, headers = own) => admin.stranger().post('/api/v1/sign-in-links').set(headers).send(body)
  for (const body of [{}, { name: 'grace' }, { role: 'viewer' }, { ...link, role: 'operator' }])
    await make(body).expect(403)
  await make(link, { ...own, 'sec-fetch-site': 'same-site' }).expect(403)
  const { body: made } = await make({ ...link, ttl: '30d' }).expect(201)
  admin.clock.advance(1000)
  const theirs = { 'sec-fetch-site': 'same-origin', cookie: await admin.signIn(made.url) }
  await make(link, theirs).expect(403)
  const { body: { items: [listed] } } = await admin.api('get', '/api/v1/tokens').expect(200)
  assert.deepEqual([listed.name, listed.role, listed.kind, listed.sessions, listed.createdBy, listed.id,
    listed.expiresAt], ['grace', 'viewer', 'link', 1, 'the owner\'s token', made.token, made.until])
  assert.equal(Date.parse(made.until), START_MS + 12 * 60 * 60_000)
  await admin.api('delete', `/api/v1/tokens/${made.token}`).expect(200)
  await admin.stranger().get('/api/v1/status').set(theirs).expect(401)
})

test('no two that are valid have one name, and a list says when each was used last and from where', async (t) => {
  const admin = await startAdmin(t)
  const make = (name: string) => admin.api('post', '/api/v1/tokens').send({ name, role: 'viewer', ttl: '1h' })
  const { body: ada } = await make('ada').expect(201)
  const { body: taken } = await make('Ada').expect(409)
  assert.equal(taken.detail, `name: "ada" is taken by token ${ada.id}: choose another name, or revoke that first`)
  await admin.api('post', '/api/v1/sign-in-links').send({ name: 'ada', role: 'viewer' }).expect(409)
  const list = async () => (await admin.api('get', '/api/v1/tokens').expect(200)).body.items
  assert.deepEqual((await list()).map(({ lastUsedAt, lastUsedFrom }) => [lastUsedAt, lastUsedFrom]), [[null, null]])
  admin.clock.advance(60_000)
  await admin.stranger().get('/api/v1/status').set('authorization', `Bearer ${ada.token}`).expect(200)
  assert.deepEqual((await list()).map(({ lastUsedAt, lastUsedFrom }) => [lastUsedAt, lastUsedFrom]), [[
    '2026-01-01T00:01:00.000Z',
    '127.0.0.1'
  ]])
  assert.equal(admin.history.tokens.get(ada.id)?.usedFrom, '127.0.0.1', 'also for the next master')
  admin.clock.advance(60 * 60_000)
  await make('ada').expect(201)
})

test('what a browser does counts as a use of its token, and the page lists the browsers of the owner too', async (t) => {
  const admin = await startAdmin(t)
  const { id, token } = await admin.tokenFor('ada', 'admin')
  const theirs = { cookie: await admin.signInBy(token) }
  const mine = { cookie: await admin.signIn(admin.admin.signInLink()) }
  admin.clock.advance(60 * 60_000)
  const rowsSeenBy = async (headers: Record<string, string>) => {
    const { text } = await admin.stranger().get('/access').set({ ...headers, accept: 'text/html' }).expect(200)
    return text.split('<li id="token-').slice(1).map((row) => row.replace(/<[^>]*>/g, '').replace(/\s+/g, ' '))
  }
  const [owner, ada] = await rowsSeenBy(mine)
  assert.match(owner, /^owner".* The owner's token admin signed in you In the data folder · last used now from 127/)
  assert.match(ada, /signed in Token 1 · last used 1 h ago /)
  const [ownerOfOther, own] = await rowsSeenBy(theirs)
  assert.match(ownerOfOther, / signed in In the data folder · last used now /)
  assert.match(own, / signed in you Token 1 · last used now /)
  assert.equal(admin.history.tokens.get(id)?.usedAt, START_MS + 60 * 60_000)
})

test('a token is not revoked by whoever has not seen what has become of the tokens', async (t) => {
  const admin = await startAdmin(t)
  const [ada, bob] = [await admin.tokenFor('ada', 'admin'), await admin.tokenFor('bob', 'admin')]
  const { headers: { etag } } = await admin.api('get', '/api/v1/tokens').expect(200)
  await admin.stranger().delete(`/api/v1/tokens/${ada.id}`).set(bob.headers).expect(200)
  const { body: late } = await admin.api('delete', `/api/v1/tokens/${bob.id}`).set('if-match', etag).expect(412)
  assert.match(late.detail, /^bob has revoked the token 1 of ada \(admin\) since you opened this\. If-Match/)
  const { body: gone } = await admin.api('delete', `/api/v1/tokens/${ada.id}`).expect(404)
  assert.equal(gone.detail, 'Token 1 of ada has already been revoked by bob')
  await admin.api('delete', `/api/v1/tokens/${bob.id}`).set('if-match',
    (await admin.api('get', '/api/v1/tokens')).headers.etag).expect(200)
})

test('all tokens end with the one of the data folder', async (t) => {
  const before = await startAdmin(t)
  const { headers } = await before.tokenFor('ada', 'viewer')
  const status = async (owner: string) => {
    const next = createAdmin({ ...behindPort(before.deck, before.history), token: owner, port: 0,
      now: before.clock.now })
    t.after(() => next.close())
    const { url } = await next.listen()
    return (await fetch(`${url}/api/v1/status`, { headers })).status
  }
  assert.deepEqual([await status(TOKEN), await status('another-token-0123456789'), await status(TOKEN)], [200, 401,
    401])
})

test('the history names who did it and from where, and who was refused', async (t) => {
  const { admin, callers } = await setUp(t)
  const viewer = callers.find(({ name }) => name === 'viewer') as Caller
  const operator = callers.find(({ name }) => name === 'operator') as Caller
  await admin.stranger().put('/api/v1/scale').set(viewer.headers).send({ workers: 3 }).expect(403)
  await admin.stranger().put('/api/v1/scale').set(operator.headers).send({ workers: 3 }).expect(200)
  const events = admin.history.page({ limit: 5 }).items
  const of = (type: string) => events.find((event) => event.type === type)
  assert.equal(of('access.refused')?.actor, 'viewer-token')
  assert.match(String(of('access.refused')?.message),
    /^viewer-token \(viewer, API\) from (::ffff:)?127\.0\.0\.1: PUT \/api\/v1\/scale, 403$/)
  assert.equal(of('scale.changed')?.actor, 'operator-token')
  assert.match(String(of('access.used')?.message),
    /^operator-token \(operator, API\) from (::ffff:)?127\.0\.0\.1: PUT \/api\/v1\/scale$/)
})

test('the history says where somebody has asked from whose connection is reset meanwhile', () => {
  const told: DeckEvent[] = []
  const events = createEventStream()
  events.subscribe((event) => told.push(event))
  const { watch } = createAudit({ events, timers: globalThis })
  const req = fake<http.IncomingMessage>({ method: 'POST', url: '/api/v1/rollouts', headers: {},
    socket: { remoteAddress: '192.0.2.7' }, auth: { actor: 'ada', role: 'operator', via: 'token' } })
  const res = Object.assign(new EventEmitter(), { headersSent: false }) as unknown as http.ServerResponse
  watch(req, res)
  req.socket = fake({ remoteAddress: undefined })
  res.emit('close')
  assert.deepEqual(told.map(({ detail }) => detail?.address), ['192.0.2.7'])
})

test('the history names who hangs up before the answer, too', async (t) => {
  const { admin, callers } = await setUp(t)
  const operator = callers.find(({ name }) => name === 'operator') as Caller
  const before = admin.history.lastEventId()
  const told = () => admin.history.page({ type: ['access.used'], limit: 5 }).items.filter(({ id }) => id > before)
  const req = http.request(`${admin.url}/api/v1/rollouts`, { method: 'POST', agent: false,
    headers: { ...operator.headers, 'content-type': 'application/json' } }).on('error', () => {})
  const deploy = admin.deck.deploy
  admin.deck.deploy = async (order) => {
    req.destroy()
    await until(async () => told().length > 0, 'the event')
    return deploy(order)
  }
  req.end('{"kind":"deploy"}')
  await until(async () => told().length > 0, 'the event')
  assert.match(String(told()[0].message),
    /^operator-token \(operator, API\) from (::ffff:)?127\.0\.0\.1: POST \/api\/v1\/rollouts, and hung up before the answer$/)
})

test('a flood of wrong tokens leaves a few lines in the history, and their number', async (t) => {
  const { admin } = await setUp(t)
  const before = admin.history.lastEventId()
  for (let n = 0; n < 40; n++)
    await rawRequest(admin, { path: '/api/v1/status', headers: { authorization: `Bearer wrong-${n}` } })
  admin.clock.advance(60_000)
  const refused = admin.history.page({ type: ['access.refused'], limit: 100 }).items.filter(({ id }) => id > before)
  assert.equal(refused.length, 11)
  assert.equal(refused[0].detail?.count, 30)
})

test('a token has an end, and is stored as a hash', async (t) => {
  const admin = await startAdmin(t)
  const { token, headers } = await admin.tokenFor('ada', 'viewer', { ttl: '2m' })
  const { body: { items } } = await admin.api('get', '/api/v1/tokens').expect(200)
  assert.ok(!JSON.stringify(items).includes(token))
  assert.ok(!JSON.stringify(admin.history.page({ limit: 100 })).includes(token))
  await admin.stranger().get('/api/v1/status').set(headers).expect(200)
  admin.clock.advance(120_000)
  await admin.stranger().get('/api/v1/status').set(headers).expect(401)
})

async function setUp (t: TestContext) {
  const admin = await startAdmin(t, { limits: { requests: 1e6, switches: 1e6, strangerRequests: 1e6 } })
  const signIn = async (token: string) => ({ cookie: await admin.signInBy(token) })
  const tokens = await Promise.all(ROLES.map((role) => admin.tokenFor(`${role}-token`, role)))
  const revoked = await admin.tokenFor('revoked-token', 'admin')
  const expired = await admin.tokenFor('expired-token', 'admin', { ttl: '1m' })
  const revokedSession = await signIn(revoked.token)
  await admin.api('delete', `/api/v1/tokens/${revoked.id}`).expect(200)
  admin.clock.advance(60_000)
  const callers: Caller[] = [{ name: 'nobody', role: null, headers: {} }, { name: 'wrong token', role: null,
    headers: { authorization: 'Bearer cdk_wrong' } }, { name: 'revoked token', role: null, headers: revoked.headers }, {
    name: 'session of a revoked token',
    role: null,
    headers: revokedSession,
    isSession: true
  }, { name: 'expired token', role: null, headers: expired.headers },
    ...(await Promise.all(
      tokens.map(async (
        { role, token, headers }
      ) => [{ name: role, role, headers }, { name: `session of ${role}`, role, headers: await signIn(token),
        isSession: true }]
      )
    )).flat(), { name: 'owner', role: 'admin', headers: { authorization: `Bearer ${TOKEN}` }, isOwner: true }, {
    name: 'session of the owner',
    role: 'admin',
    headers: await signIn(TOKEN),
    isSession: true,
    isOwner: true
  }]
  return { admin, callers }
}

type Route = { method: string, path: string, role: Role | null, body?: string, headers: Record<string, string>,
  isPage?: boolean, isStream?: boolean, isForm?: boolean, isForToken?: boolean, isForOwner?: boolean }

/** @returns all that the API, the pages and the forms have */
function routesOf (): Route[] {
  const operations = [...OPERATIONS.values()].map(({ operation: { name, role, form, byToken }, method, path }) => {
    const isBare = method === 'GET' || method === 'DELETE'
    return {
      name,
      method,
      role,
      form,
      isForToken: byToken !== undefined,
      isStream: path.endsWith('/stream'),
      // What does not exist: whoever is let in changes nothing.
      path: path.replace(':release', 'r999').replace(/[:*]\w+/g, '999'),
      headers: isBare ? {} : { 'content-type': 'application/json' },
      body: isBare ? undefined : '{"nothing":"that it takes"}'
    }
  })
  const pages = PAGES.map(({ path }) => ({ method: 'GET', path: path.replace('{/:id}', '').replace(':id', '999'),
    role: ROLES_OF_PAGES[path] ?? 'viewer', headers: { accept: 'text/html' }, isPage: true,
    isForOwner: path === '/decks' })
  )
  const files = ['/history.csv', '/logs.txt', '/logs.ndjson'].map((path) => ({ method: 'GET', path, role: 'viewer',
    headers: {} })
  )
  const forms = [...operations.filter(({ form }) => form), { name: 'switch', role: 'admin', isForToken: false }].map((
    { name, role, isForToken }
  ) => ({ method: 'POST', path: `/actions/${name}`, role,
    headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'id=999&workers=x&release=x&note=&role=x',
    isForm: true, isForToken, isForOwner: name === 'switch' })
  )
  const live = [{}, { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }].map((headers) => ({ method: 'GET',
      path: `/socket.io/?EIO=4&transport=${'upgrade' in headers ? 'websocket' : 'polling'}`, role: 'viewer', headers })
    )
  return [...operations, ...pages, ...files, ...forms, ...live] as Route[]
}

/** Null: anything but a refusal */
function expectedStatus ({ role, isPage, isForm, isForToken, isForOwner }: Route, caller: Caller): number[] | null {
  if (role === null) return null
  if (caller.role === null) return isPage ? [303] : [401]
  if (isForm && !caller.isSession) return [403]
  if (isForToken && caller.isSession) return [403]
  return roleAllows(caller.role, role) && (!isForOwner || caller.isOwner) ? null : [403]
}

function comingFrom (place: typeof PLACES[number], port: number): Record<string, string> {
  if (place === 'foreign host') return { Host: 'evil.example' }
  if (place === 'cross-site') return { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
  if (place === 'same site, other port')
    return { Origin: `http://127.0.0.1:${port + 1}`, 'Sec-Fetch-Site': 'same-site' }
  return { Origin: `http://127.0.0.1:${port}`, 'Sec-Fetch-Site': 'same-origin' }
}
