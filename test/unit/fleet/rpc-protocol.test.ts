import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_RESPONSE_BYTES, MAX_REQUEST_BYTES, parseResponse, parseRequest, roleFor, encodeResponse,
  encodeRequest } from '../../../server/fleet/rpc-protocol.ts'

const QUESTION = { home: 'h', app: 'shop', method: 'GET', path: '/status', headers: {}, actor: 'ada', role: 'operator',
  client: 'cli', from: 'web-1' }
const ANSWER = { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{}' }

const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))

for (const [accept, role, expected] of [['nothing', 'viewer', null], ['nothing', 'operator', null], ['nothing', 'admin',
  null], ['read', 'viewer', 'viewer'], ['read', 'operator', 'viewer'], ['read', 'admin', 'viewer'], ['operate',
  'viewer', 'viewer'], ['operate', 'operator', 'operator'], ['operate', 'admin', 'operator']] as const)
{
  test(`with fleet.accept "${accept}" ${role} is ${expected ?? 'refused'}`, () => {
    const ask = () => roleFor({ path: '/scale', role }, { accept, member: 'web-2' })
    if (expected === null)
      assert.throws(ask, { code: 'forbidden',
        message: 'web-2: expected fleet.accept "read" or "operate", received "nothing"' })
    else assert.equal(ask(), expected)
    for (const path of ['/fleet', '/fleet/crashes', '/fleet?x=1', '/tokens', '/tokens/1', '/sign-in-links', '/stop',
      '/stop?now=true', '/start', '/crashes?member=*', '/logs?q=x&%6dember=web-3'])
    {
      assert.throws(() => roleFor({ path, role }, { accept, member: 'web-2' }), { code: 'forbidden' }, path)
    }
  })
}

test('a path is below the API, and says nothing that could be read in two ways', () => {
  for (const path of ['/status', '/workers/7/restart', '/releases/r12', '/openapi.json', '/logs?lines=50&q=a%20b',
    '/rollouts/7?wait=30s', '/crashes?fingerprint=v1%3Aab'])
  {
    assert.equal(parseRequest(bytes({ ...QUESTION, path })).path, path)
  }
  for (const path of ['', '/', 'status', '//status', '/status/', '/a//b', '/.', '/..', '/../status', '/a/../b', '/a/..',
    '/%66leet', '/a%2Fb', '/a b', '/a\r\nb', '/a\u0000', '/a#b', '/a?b#c', '/a?b c', '/a?b\n', 'http://x/status',
    '/a\\b', '/ä', '/a;b', `/a?${'x'.repeat(5000)}`])
  {
    assert.throws(() => parseRequest(bytes({ ...QUESTION, path })), { code: 'bad-request' }, path)
    assert.throws(() => encodeRequest({ ...QUESTION, path }), { code: 'bad-request' }, path)
  }
})

test('a question has the fields of a question and no others, and is no larger than one may be', () => {
  assert.deepEqual(parseRequest(bytes(encodeRequest(QUESTION))), QUESTION)
  const byProxy = { ...QUESTION, actor: 'Zoë Müller (proxy)' }
  assert.deepEqual(parseRequest(bytes(encodeRequest(byProxy))), byProxy)
  const deep = JSON.parse(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`)
  assert.throws(() => encodeRequest({ ...QUESTION, method: 'POST', body: deep }), { code: 'bad-request',
    message: /: body$/ })
  for (const changes of [{ method: 'HEAD' }, { method: 'CONNECT' }, { method: 'get' }, { body: {} }, { method: 'POST',
    body: deep }, { role: 'root' }, { actor: '' }, { actor: 'a b' }, { actor: 'x'.repeat(65) }, {
    actor: `${'x'.repeat(91)} (proxy)`
  }, { actor: 'a\nb (proxy)' }, { actor: ' (proxy)' }, { from: 'a.b' }, { client: 'fleet' }, {
    headers: { cookie: 'x' }
  }, { headers: { accept: 'a\nb' } }, { headers: null }, { via: 'token' }, { home: 7 }, { app: '' }, { app: undefined },
    { app: 'x'.repeat(201) }])
  {
    assert.throws(() => parseRequest(bytes({ ...QUESTION, ...changes })), { code: 'bad-request' },
      JSON.stringify(changes))
  }
  const body = { text: 'x'.repeat(MAX_REQUEST_BYTES) }
  assert.throws(() => parseRequest(bytes({ ...QUESTION, method: 'POST', body })), { code: 'payload-too-large' })
  assert.throws(() => encodeRequest({ ...QUESTION, method: 'POST', body }), { code: 'payload-too-large' })
  for (const garbage of ['', 'null', '7', '[]', '{', '['.repeat(50_000)])
    assert.throws(() => parseRequest(bytes(garbage)), { code: 'bad-request' })
})

test('an answer leads nowhere, sets nothing, is no page, and says nothing of who is signed in', () => {
  const given = { ...ANSWER,
    headers: { ...ANSWER.headers, etag: '"2"', location: '/api/v1/rollouts/7', 'set-cookie': 'a=b', 'x-more': 'y' },
    more: 1 }
  const expected = { ...ANSWER, headers: { ...ANSWER.headers, etag: '"2"', location: '/api/v1/rollouts/7' } }
  assert.deepEqual(parseResponse(bytes(given)), expected)
  assert.deepEqual(encodeResponse(given), expected)
  const headers = (more: object) => ({ ...ANSWER, headers: { ...ANSWER.headers, ...more } })
  for (const bad of [{ ...ANSWER, status: 302 }, { ...ANSWER, status: 401 }, { ...ANSWER, status: 99 }, { ...ANSWER,
    status: 600 }, { ...ANSWER, body: {} }, headers({ 'content-type': 'text/html' }),
    headers({ 'content-type': 'text/event-stream' }), headers({ 'content-type': 'application/octet-stream' }),
    headers({ location: 'https://evil.example/' }), headers({ location: '//evil.example' }),
    headers({ location: '/api/v1/../x' }), headers({ etag: 'a\r\nb' })])
  {
    assert.equal(parseResponse(bytes(bad)), null, JSON.stringify(bad))
    assert.throws(() => encodeResponse(bad), { code: 'not-acceptable' })
  }
  assert.equal(parseResponse(bytes({ ...ANSWER, body: 'x'.repeat(MAX_RESPONSE_BYTES) })), null)
})
