import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHistory } from '../../db/history.ts'
import { createSessions } from '../../server/admin/sessions.ts'
import { rawRequest, startAdmin } from '../support/admin.ts'
import { fake } from '../support/fake.ts'
import type { IncomingMessage } from 'node:http'
import type { Session } from '../../db/sessions.ts'

type Sessions = ReturnType<typeof createSessions>

const TTL_MS = 60_000
const START_MS = 1_700_000_000_000
const NAME = 'clusterdeck_9777'
const ADMIN = { name: null, role: 'admin', token: null, until: null }
const SESSION = { actor: 'the owner\'s token', via: 'session', client: 'dashboard', ...ADMIN, until: START_MS + TTL_MS }

test('ends a session when its time is up, however much it was used', () => {
  const { sessions, clock } = setUp()
  const cookie = cookieOf(sessions.open(request({})))
  clock.now += TTL_MS - 1
  assert.deepEqual(sessions.authenticate(request({ cookie })), SESSION)
  clock.now += 1
  assert.equal(sessions.authenticate(request({ cookie })), null)
  clock.now -= TTL_MS
  assert.equal(sessions.authenticate(request({ cookie })), null, 'not even a clock that is set back revives it')
})

test('knows its sessions after a restart of the master', () => {
  const { sessions, restart } = setUp()
  const cookie = cookieOf(sessions.open(request({})))
  assert.deepEqual(restart().authenticate(request({ cookie })), SESSION)
})

test('the token in the data folder of an app of a host opens that app alone', () => {
  const { restart } = setUp()
  const sessions = restart({ tokensOfApps: () => [['shop', 'of-shop'], ['mail', 'of-mail']] })
  const by = (token: string) => sessions.authenticate(request({ authorization: `Bearer ${token}` }))
  assert.deepEqual(by('of-mail'), { ...ADMIN, actor: 'the token of mail', name: 'the token of mail', via: 'token',
    client: 'api', apps: ['mail'] })
  assert.equal(by('secret')?.apps, undefined)
  assert.equal(by('of-another'), null)
})

test('ends every session when the token is another one', () => {
  const { sessions, restart } = setUp()
  const cookie = cookieOf(sessions.open(request({})))
  assert.equal(restart({ token: 'rotated' }).authenticate(request({ cookie })), null)
})

test('stores nothing that could sign anybody in', () => {
  const { sessions, stored } = setUp()
  const secret = cookieOf(sessions.open(request({}))).split('=')[1]
  const [session] = stored()
  assert.equal(session.hash.length, 43)
  assert.ok(!JSON.stringify(session).includes(secret))
  assert.equal(sessions.authenticate(request({ cookie: `${NAME}=${session.hash}` })), null)
})

test('ends all sessions at once, on the disk too', () => {
  const { sessions, restart } = setUp()
  const cookies = [cookieOf(sessions.open(request({}))), cookieOf(sessions.open(request({})))]
  sessions.revokeAll()
  for (const cookie of cookies) {
    assert.equal(sessions.authenticate(request({ cookie })), null)
    assert.equal(restart().authenticate(request({ cookie })), null)
  }
})

test('finds its cookie among others, those of its own name included', () => {
  const { sessions } = setUp()
  const cookie = cookieOf(sessions.open(request({})))
  const shadow = `${NAME}=${'A'.repeat(43)}`
  assert.deepEqual(sessions.authenticate(request({ cookie: `theme=dark; ${shadow}; ${cookie}; x=${NAME}` })), SESSION)
  for (const other of ['', ';;;', '=', shadow, `other_${cookie}`, cookie.replace(NAME, 'clusterdeck_9778'),
    `${cookie}x`, cookie.slice(0, -1), `${NAME}=${'x'.repeat(10_000)}`])
  {
    assert.equal(sessions.authenticate(request({ cookie: other })), null, other)
  }
})

test('takes the token as a bearer, and takes nothing else for it', () => {
  const { sessions } = setUp()
  assert.deepEqual(sessions.authenticate(request({ authorization: 'Bearer secret' })), { actor: 'the owner\'s token',
    via: 'token', client: 'api', ...ADMIN })
  assert.deepEqual(sessions.authenticate(request({ authorization: 'bearer  secret ' })), { actor: 'the owner\'s token',
    via: 'token', client: 'api', ...ADMIN })
  assert.deepEqual(sessions.authenticate(request({ authorization: 'Bearer secret', 'x-clusterdeck-client': 'cli' })), {
    actor: 'the owner\'s token',
    via: 'token',
    client: 'cli',
    ...ADMIN
  })
  for (const authorization of ['', 'Bearer', 'Bearer ', 'Bearer secre', 'Bearer secrets', 'Bearer SECRET',
    'Basic secret', 'secret', 'Bearer secret secret'])
  {
    assert.equal(sessions.authenticate(request({ authorization })), null, authorization)
  }
})

test('does not let a session make a wrong token good', () => {
  const { sessions } = setUp()
  const cookie = cookieOf(sessions.open(request({})))
  assert.equal(sessions.authenticate(request({ cookie, authorization: 'Bearer wrong' })), null)
})

test('keeps people signed in, and lets more sign in, while the database fails', () => {
  const { sessions, store } = setUp()
  const before = cookieOf(sessions.open(request({})))
  store.isBroken = true
  const during = cookieOf(sessions.open(request({})))
  assert.deepEqual(sessions.authenticate(request({ cookie: before })), SESSION)
  assert.deepEqual(sessions.authenticate(request({ cookie: during })), SESSION)
  assert.equal(sessions.authenticate(request({ cookie: `${NAME}=${'A'.repeat(43)}` })), null)
})

test('does not revive a session that was ended while the database failed', () => {
  for (const end of [(sessions, cookie) => sessions.close(request({ cookie })),
    (sessions) => sessions.revokeAll()] as ((sessions: Sessions, cookie: string) => void)[])
  {
    const { sessions, store } = setUp()
    const cookie = cookieOf(sessions.open(request({})))
    store.isBroken = true
    end(sessions, cookie)
    store.isBroken = false
    assert.equal(sessions.authenticate(request({ cookie })), null)
  }
})

test('a session of one admin port is none of another', async (t) => {
  const [one, other] = [await startAdmin(t), await startAdmin(t)]
  const Cookie = await one.signIn()
  const path = '/api/v1/status'
  assert.equal((await rawRequest(one, { path, headers: { Cookie } })).status, 200)
  assert.equal((await rawRequest(other, { path, headers: { Cookie } })).status, 401)
  const renamed = Cookie.replace(one.cookieName, other.cookieName)
  assert.equal((await rawRequest(other, { path, headers: { Cookie: renamed } })).status, 401)
})

test('signs everybody out when main says so', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  admin.admin.revokeSessions()
  assert.equal((await rawRequest(admin, { path: '/api/v1/status', headers: { Cookie } })).status, 401)
})

function setUp () {
  const { sessions: table } = openHistory({ file: ':memory:' })
  const clock = { now: START_MS }
  const stored: Session[] = []
  const store = { isBroken: false, create: (session: Session) => {
    check()
    stored.push(session)
    table.create(session)
  }, find: (hash: string) => {
    check()
    return table.find(hash)
  }, revoke: (hash: string) => {
    check()
    table.revoke(hash)
  }, countByToken: () => new Map(), revokeAll: () => {
    check()
    table.revokeAll()
  } }
  const check = () => {
    if (store.isBroken) throw new Error('disk I/O error')
  }
  const restart = ({ token = 'secret', tokensOfApps }: Partial<Parameters<typeof createSessions>[0]> = {}) =>
    createSessions({ store, token, tokensOfApps, ttlMs: TTL_MS, cookieName: NAME, now: () => clock.now })
  return { sessions: restart(), restart, store, clock, stored: () => stored }
}

function request (headers: Record<string, string>) {
  return fake<IncomingMessage>({ headers, socket: { remoteAddress: '192.0.2.7', localAddress: '192.0.2.1' } })
}

function cookieOf (setCookie: string) {
  return setCookie.split(';')[0]
}
