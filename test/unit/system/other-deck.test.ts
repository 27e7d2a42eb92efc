import assert from 'node:assert/strict'
import { chmodSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { X509Certificate } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'
import { askSignInLink, askStatus } from '../../../server/system/other-deck.ts'
import { listening } from '../../support/listening.ts'
import { registered } from '../../support/registered.ts'
import type { RunningDeck } from '../../../server/system/running-decks.ts'

const TLS = fileURLToPath(new URL('../../fixtures/tls/', import.meta.url))
const CERT = readFileSync(path.join(TLS, 'cert.pem'))
const CODE = 'c'.repeat(43)
const IN_TIME = { timeoutMs: 40_000 }

type Body = Record<string, string>

/** Stands where the master of another deck listens, and notes what it is sent. */
async function startMaster (t: TestContext,
  answer: (req: http.IncomingMessage, res: http.ServerResponse, body: Body) => void = (_req, res) => {
    res.end('{"state":"running"}')
  }, { hasTls = false }: { hasTls?: boolean } = {})
{
  const asked: { method?: string, url?: string, authorization?: string, body: Body | null }[] = []
  const listener = async (req: http.IncomingMessage, res: http.ServerResponse) => {
    const text = (await req.toArray()).join('')
    const body = text === '' ? null : JSON.parse(text)
    asked.push({ method: req.method, url: req.url, authorization: req.headers.authorization, body })
    answer(req, res, body)
  }
  const server = hasTls
    ? https.createServer({ cert: CERT, key: readFileSync(path.join(TLS, 'key.pem')) }, listener)
    : http.createServer(listener)
  const port = await listening(t, server)
  t.after(() => server.closeAllConnections())
  return { asked, port, adminUrl: `${hasTls ? 'https' : 'http'}://127.0.0.1:${port}` }
}

test('asks by the token of its data folder', async (t) => {
  const { asked, adminUrl } = await startMaster(t)
  assert.deepEqual(await askStatus(registered({ adminUrl }), IN_TIME), { state: 'running' })
  assert.deepEqual(asked, [{ method: 'GET', url: '/api/v1/status', authorization: 'Bearer token-of-the-other-deck',
    body: null }])
})

test('a link is asked for, for as long as somebody is signed in here', async (t) => {
  const { asked, adminUrl } = await startMaster(t, (_req, res) => {
    res.writeHead(201).end(JSON.stringify({ url: `https://ops.example.com/deck/sign-in?code=${CODE}` }))
  })
  const deck = registered({ adminUrl })
  assert.deepEqual(await askSignInLink(deck, { ttlMs: 90_500, from: 'shop' }, IN_TIME), { code: CODE,
    url: `https://ops.example.com/deck/sign-in?code=${CODE}` })
  await askSignInLink(deck, { ttlMs: null, from: `a\nb${'x'.repeat(300)}` }, IN_TIME)
  await askSignInLink(deck, { ttlMs: -5, from: 'shop' }, IN_TIME)
  assert.deepEqual(asked.map(({ body }) => body), [{ role: 'admin', ttl: '90s', from: 'shop' }, { role: 'admin',
    from: `a b${'x'.repeat(197)}` }, { role: 'admin', ttl: '1s', from: 'shop' }])
})

test('what is no sign-in link is none', async (t) => {
  for (const url of [undefined, 3, '', '/sign-in', 'https://ops.example.com/', 'https://ops.example.com/?code=short',
    `javascript:alert(1)//?code=${CODE}`, `data:text/html,?code=${CODE}`])
  {
    const { adminUrl } = await startMaster(t, (_req, res) => {
      res.end(JSON.stringify({ url }))
    })
    await assert.rejects(askSignInLink(registered({ adminUrl }), { ttlMs: null, from: 'shop' }, IN_TIME), {
      code: 'no-master'
    }, String(url))
  }
})

test('the token goes to nobody but the very process that has registered the deck', async (t) => {
  const { asked, adminUrl, port } = await startMaster(t)
  const own = registered({ adminUrl })
  const open = registered({ adminUrl })
  chmodSync(open.dataDir, 0o777)
  const empty = registered({ adminUrl })
  rmSync(path.join(empty.dataDir, 'admin.token'))
  const at = (host: string, scheme = 'http') => ({ ...own, adminUrl: `${scheme}://${host}:${port}` })
  const nobody: Record<string, Record<string, RunningDeck>> = {
    'no master at the moment': { 'a master that has ended': { ...own, master: { pid: 2 ** 30, startTime: null } },
      'another process of its number': { ...own, master: { pid: process.pid, startTime: 'another-boot:1' } } },
    'of this machine alone': { 'another machine': at('10.0.0.7'),
      'a name that only begins like this machine': at('127.0.0.1.example.com'),
      'a name before another one': at('127.0.0.1@example.com') },
    'which certificate': { 'https without a certificate of its own': at('127.0.0.1', 'https') },
    'nobody else could have written': { 'a data folder that others can write': open,
      'a data folder without a token': empty }
  }
  for (const [reason, decks] of Object.entries(nobody)) {
    for (const [what, deck] of Object.entries(decks))
      await assert.rejects(askStatus(deck, IN_TIME), { code: 'no-master', message: new RegExp(reason) }, what)
  }
  assert.deepEqual(asked, [])
})

test('over TLS it goes to the certificate that the master has named, and to no other', async (t) => {
  const { asked, adminUrl } = await startMaster(t, undefined, { hasTls: true })
  await assert.rejects(askStatus(registered({ adminUrl, fingerprint: 'AA:BB' }), IN_TIME), { code: 'no-master',
    message: /another certificate/ })
  assert.deepEqual(asked, [])
  const { fingerprint256: fingerprint } = new X509Certificate(CERT)
  assert.deepEqual(await askStatus(registered({ adminUrl, fingerprint }), IN_TIME), { state: 'running' })
})

test('one that is slow, refuses, answers nonsense or without end does not answer', async (t) => {
  const answers: [string, RegExp, (req: http.IncomingMessage, res: http.ServerResponse) => void, number?][] = [[
    'silence',
    /nothing within 200 ms/,
    () => {},
    200
  ], ['half an answer', /does not answer/, (_req, res) => void res.write('{'), 200], ['a refusal',
    /refuses to answer \(HTTP 401\)/, (_req, res) => void res.writeHead(401).end('{}')], ['a redirect', /HTTP 302/,
    (_req, res) => void res.writeHead(302, { location: 'https://evil.example/' }).end()], ['no JSON', /does not answer/,
    (_req, res) => void res.end('<html>')], ['no end', /does not answer/, (_req, res) => {
    const more = () => {
      while (!res.destroyed && res.write('x'.repeat(65_536)));
    }
    res.on('drain', more)
    more()
  }]]
  for (const [what, message, answer, timeoutMs = IN_TIME.timeoutMs] of answers) {
    const { adminUrl } = await startMaster(t, answer)
    await assert.rejects(askStatus(registered({ adminUrl }), { timeoutMs }), { code: 'no-master', message }, what)
  }
})
