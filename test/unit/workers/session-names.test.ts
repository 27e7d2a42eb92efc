import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSessionNames } from '../../../workers/session-names.ts'
import { fake } from '../../support/fake.ts'

const NONE = { header: null, cookie: null, query: null, path: null }

test('a request tells its session by header, else by cookie, else by its URL', () => {
  const names = createSessionNames({ header: 'Mcp-Session-Id', cookie: 'connect.sid', query: 'sid', path: null })
  const head = (...lines: string[]) => [...lines, '', 'sid=body'].join('\r\n')
  const all = ['GET /a?x=1&sid=q HTTP/1.1', 'Cookie: a=b; connect.sid=s%3Ac; c=d', 'mcp-session-id:  h ']
  for (const [lines, expected] of [[all, 'h'], [all.slice(0, 2), 's%3Ac'], [all.slice(0, 1), 'q'], [[
    'GET /?sidx=1 HTTP/1.1',
    'Host: x?sid=1',
    'cookie: xconnect.sid=1; connectxsid=2',
    'mcp-session-id:'
  ], null]] as [string[], string | null][]) {
    assert.equal(names.inHead(head(...lines, '')), expected)
    const rawHeaders = lines.slice(1).flatMap((line) => [line.split(':')[0], line.slice(line.indexOf(':') + 1).trim()])
    assert.equal(names.inRequest(fake({ url: lines[0].split(' ')[1], rawHeaders })), expected)
  }
  assert.equal(names.inHead('GET /?sid=q HTTP/1.1\r\nmcp-session-id: h'), null,
    'a head that is not whole says nothing yet')
})

test('of two cookies of one name, the first tells the session, before a request is read and after', () => {
  const names = createSessionNames({ ...NONE, cookie: 'sid' })
  for (const cookie of ['sid=1; sid=2', 'a=b; sid=1; c=d; sid=2']) {
    assert.equal(names.inHead(`GET / HTTP/1.1\r\nCookie: ${cookie}\r\n\r\n`), '1')
    assert.equal(names.inRequest(fake({ url: '/', rawHeaders: ['Cookie', cookie] })), '1')
  }
})

test('an answer tells a new session by the same header, by the cookie that it sets, or at its beginning', () => {
  const names = createSessionNames({ header: 'mcp-session-id', cookie: 'sid', query: 'sid', path: null })
  assert.equal(names.inAnswer('HTTP/1.1 200 OK\r\nMcp-Session-Id: h\r\nSet-Cookie: sid=c\r\n\r\n'), 'h')
  assert.equal(names.inAnswer('HTTP/1.1 200 OK\r\nset-cookie: other=1\r\nSet-Cookie: sid=c; Path=/\r\n\r\n'), 'c')
  assert.equal(names.inAnswer('HTTP/1.1 200 OK\r\nset-cookie: sid=; Max-Age=0\r\n\r\n'), null,
    'a cookie that is taken back')
  assert.equal(names.inBody('0{"sid":"q-1","upgrades":["websocket"]}'), 'q-1')
  assert.equal(names.inBody('event: endpoint\ndata: /messages?sid=q-2\n\n'), 'q-2')
  assert.equal(names.inBody('<p>sidelined="x"'), null)
  assert.equal(createSessionNames(NONE).inAnswer('HTTP/1.1 200 OK\r\nset-cookie: sid=c\r\n\r\n'), null)
})

test('a client may name its session in the path', () => {
  const names = createSessionNames({ ...NONE, path: '/sock.js/:server/:session' })
  for (const [url, expected] of [['/sock.js/000/abc/xhr', 'abc'], ['/sock.js/1/abc?t=1', 'abc'], ['/sock.js/1/abc',
    'abc'], ['/sock.js/info?x=/a/b', null], ['/sockxjs/1/abc', null], ['/app/sock.js/1/abc', null], ['/sock.js/1/',
    null]] as [string, string | null][])
  {
    assert.equal(names.inHead(`POST ${url} HTTP/1.1\r\nHost: a\r\n\r\n`), expected, url)
    assert.equal(names.inRequest(fake({ url, rawHeaders: [] })), expected, url)
  }
})
