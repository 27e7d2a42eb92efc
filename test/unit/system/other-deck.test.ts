import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { X509Certificate } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'
import { askSignInLink, askStatus } from '../../../server/system/other-deck.ts'
import { registered } from '../../support/registered.ts'
import type { AddressInfo } from 'node:net'

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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
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
  for (const [what, deck, reason] of [['a master that has ended', { ...own, master: { pid: 2 ** 30, startTime: null } },
    /no master at the moment/], ['another process of its number', { ...own,
    master: { pid: process.pid, startTime: 'another-boot:1' } }, /no master at the moment/], ['another machine', {
    ...own,
    adminUrl: `http://10.0.0.7:${port}`
  }, /of this machine alone/], ['a name that only begins like this machine', { ...own,
    adminUrl: `http://127.0.0.1.example.com:${port}` }, /of this machine alone/], ['a name before another one', {
    ...own,
    adminUrl: `http://127.0.0.1@example.com:${port}`
  }, /of this machine alone/], ['https without a certificate of its own', { ...own,
    adminUrl: `https://127.0.0.1:${port}` }, /which certificate/], ['a data folder that others can write', open,
    /nobody else could have written/], ['a data folder without a token', empty,
    /nobody else could have written/]] as const)
  {
    await assert.rejects(askStatus(deck, IN_TIME), { code: 'no-master', message: reason }, what)
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
  for (const [what, answer, reason] of [['silence', () => {}, /nothing within 200 ms/], ['half an answer',
    (_req, res) => {
      res.write('{')
    }, /does not answer/], ['a refusal', (_req, res) => {
    res.writeHead(401).end('{}')
  }, /refuses to answer \(HTTP 401\)/], ['a redirect', (_req, res) => {
    res.writeHead(302, { location: 'https://evil.example/' }).end()
  }, /HTTP 302/], ['no JSON', (_req, res) => {
    res.end('<html>')
  }, /does not answer/], ['no end', (_req, res) => {
    const more = () => {
      while (!res.destroyed && res.write('x'.repeat(65_536)));
    }
    res.on('drain', more)
    more()
  }, /does not answer/]] as [string, (req: http.IncomingMessage, res: http.ServerResponse) => void, RegExp][]) {
    const { adminUrl } = await startMaster(t, answer)
    await assert.rejects(
      askStatus(registered({ adminUrl }),
        what === 'silence' || what === 'half an answer' ? { timeoutMs: 200 } : IN_TIME),
      { code: 'no-master', message: reason },
      what
    )
  }
})
