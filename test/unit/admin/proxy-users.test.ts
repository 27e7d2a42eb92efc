import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { createProxyUsers, type ProxyAuth } from '../../../server/admin/proxy-users.ts'
import { fake } from '../../support/fake.ts'
import type { IncomingMessage } from 'node:http'
import type { DeckError } from '../../../server/errors.ts'

const SECRET = 'a-secret-of-the-proxy'
const OPTIONS: ProxyAuth = { from: ['192.0.2.0/24', '2001:db8::7'], user: 'X-User', groups: 'X-Groups',
  roles: { ops: 'admin', dev: 'operator', guests: 'viewer' } }

type Asked = Partial<ProxyAuth> & { address?: string, headers?: Record<string, string | string[]> }

/** Who is it: their actor and role; else the error, or that they are nobody. */
function judged ({ address = '192.0.2.9', headers = { 'x-user': 'ada', 'x-groups': 'dev' }, ...options }: Asked) {
  try {
    const auth = createProxyUsers({ ...OPTIONS, ...options }, { now: () => 0 })(requestOf(address, headers))
    return auth ? `${auth.actor}: ${auth.role}` : 'nobody'
  } catch (error) {
    return `${(error as DeckError).code}: ${(error as DeckError).message}`
  }
}

function requestOf (address: string, headers: Record<string, string | string[]>) {
  return fake<IncomingMessage>({
    headers: Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [values].flat().join(', ')])),
    headersDistinct: Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [values].flat()])),
    socket: { remoteAddress: address, localAddress: '192.0.2.1', remotePort: 1, localPort: 2 }
  })
}

const user = (name: string) =>
  judged({ headers: { 'x-user': Buffer.from(name).toString('latin1'), 'x-groups': 'dev' } })
const groups = (text: string, roles: ProxyAuth['roles'] = OPTIONS.roles) =>
  judged({ headers: { 'x-user': 'ada', 'x-groups': text }, roles })

test('the headers count from the named addresses alone, and never from this machine without a secret', () => {
  const own =
    Object.values(networkInterfaces()).flatMap((each) => each ?? []).find(({ internal, family }) =>
      !internal && family === 'IPv4'
    )?.address ?? '127.0.0.9'
  for (const [address, more, expected] of [['192.0.2.9', {}, 'ada (proxy): operator'], ['::ffff:192.0.2.9', {},
    'ada (proxy): operator'], ['2001:db8::7', {}, 'ada (proxy): operator'], ['2001:db8::8', {}, 'nobody'], ['192.0.3.9',
    {}, 'nobody'], ['', {}, 'nobody'], ['192.0.2.9', { from: [] }, 'nobody'], ['192.0.2.9', {
    headers: { 'x-groups': 'ops' }
  }, 'nobody'], ['192.0.2.9', { headers: { 'x-user': '', 'x-groups': 'ops' } }, 'nobody'], ['192.0.3.9', {
    headers: { 'x-user': 'ada', 'x-groups': 'dev', 'x-forwarded-for': '192.0.2.9' }
  }, 'nobody'], ['127.0.0.1', { from: ['127.0.0.1'] }, 'nobody'], [own, { from: [own] }, 'nobody'], [own, { from: [own],
    secret: SECRET, headers: { 'x-user': 'ada', 'x-groups': 'dev', 'x-proxy-secret': SECRET } },
    'ada (proxy): operator']] as [string, Asked, string][])
    assert.equal(judged({ address, ...more }), expected, `${address} ${JSON.stringify(more)}`)
})

test('where there is a secret, a request without it, with another one or with two of them is one without headers', () => {
  const withSecret = (secret: string | string[]) =>
    judged({ secret: SECRET, headers: { 'x-user': 'ada', 'x-groups': 'dev', 'x-proxy-secret': secret } })
  assert.equal(withSecret(SECRET), 'ada (proxy): operator')
  for (const wrong of ['', `${SECRET}x`, SECRET.slice(0, -1), [SECRET, SECRET], [], SECRET.toUpperCase()])
    assert.equal(withSecret(wrong), 'nobody', JSON.stringify(wrong))
})

test('of several groups the highest role counts, by their exact names', () => {
  for (const [text, expected] of [['dev', 'operator'], ['guests, ops,dev', 'admin'], ['guests dev', 'operator'], [
    ',, guests ,',
    'viewer'
  ], ['ops;dev guests', 'viewer']]) assert.equal(groups(text), `ada (proxy): ${expected}`, text)
  const none = 'forbidden: "ada" has no role: admin.proxyAuth.roles has none of their groups'
  for (const text of ['', 'OPS', 'ops2', 'op', 'o\u0440s', 'constructor', '__proto__', 'toString', '*'])
    assert.equal(groups(text), none, text)
  assert.equal(groups('others', { ops: 'admin', '*': 'viewer' }), 'ada (proxy): viewer')
  assert.equal(groups('ops', { ops: 'admin', '*': 'viewer' }), 'ada (proxy): admin')
})

test('where the groups are the user, the role is that of the whole name', () => {
  const byName = (name: string) =>
    judged({ groups: 'X-USER', roles: { 'ada@example.com': 'admin' },
      headers: { 'x-user': name, 'x-groups': 'ada@example.com' } })
  assert.equal(byName('ada@example.com'), 'ada@example.com (proxy): admin')
  assert.match(byName('mallory ada@example.com'), /^forbidden: "mallory ada@example\.com" has no role/)
})

test('a user has a name that is short, of one line and no more than a name', () => {
  for (const name of ['ada', 'system', 'Zoë Müller', 'EXAMPLE\\ada', '<b>ada</b>', 'a'.repeat(90)])
    assert.equal(user(name), `${name} (proxy): operator`)
  for (const name of ['a'.repeat(91), 'a\nb', 'a\u0000b', 'a\u001b[31m', 'a\u0085b', 'a\u202eb', 'a\u2028b', 'a\u00a0b',
    'ada (proxy)', 'ada, admin', '\u{1f600}'.repeat(46)])
    assert.match(user(name), /^bad-request: X-User: expected a name of at most 90 visible characters/,
      JSON.stringify(name))
  assert.match(judged({ headers: { 'x-user': 'ad\xe4', 'x-groups': 'dev' } }), /^bad-request/, 'no UTF-8')
})

test('a header that is there twice is refused', () => {
  assert.equal(judged({ headers: { 'x-user': ['ada', 'ada'], 'x-groups': 'dev' } }),
    'bad-request: X-User: expected once, received 2 times')
  assert.equal(judged({ headers: { 'x-user': 'ada', 'x-groups': ['dev', 'ops', 'x'] } }),
    'bad-request: X-Groups: expected once, received 3 times')
})

test('what the proxy has said counts for a quarter of an hour, and then nothing else of the same request does', () => {
  let now = 0
  const find = createProxyUsers(OPTIONS, { now: () => now })
  const req = requestOf('192.0.2.9', { 'x-user': 'ada', 'x-groups': 'dev' })
  assert.equal(find(req)?.until, 900_000)
  now = 899_999
  Object.assign(req.socket, { remoteAddress: undefined })
  assert.equal(find(req)?.name, 'ada (proxy)')
  now = 900_000
  assert.equal(find(req), null)
})
