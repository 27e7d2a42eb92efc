import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { runCommandLine } from '../../server/command-line.ts'
import { aMember, createFakeFleet } from '../support/fake-fleet.ts'
import { startAdmin, startHostAdmin, TOKEN } from '../support/admin.ts'
import { aCrash } from '../support/crash-record.ts'
import { fake } from '../support/fake.ts'

/** of JSON-RPC, as far as the tests read it */
type Answer = { code?: string, error?: { code: number }, result: Result }
type Result = { isError: boolean, content: { text: string }[], tools: Tool[], protocolVersion: string,
  capabilities: object, serverInfo: { name: string }, resultType: string, supportedVersions: string[],
  cacheScope: string, ttlMs: number, _meta: Record<string, { name: string }> }
type Tool = { name: string, annotations: { readOnlyHint: boolean },
  inputSchema: { properties: { operation: { enum: string[] } } } }
type How = { path?: string, token?: string, headers?: Record<string, string> }

const MODERN = '2026-07-28'
const META = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} }
const OPERATOR = { path: '/mcp?role=operator' }

async function send ({ url }: { url: string }, message: unknown,
  { path = '/mcp', token = TOKEN, headers = {} }: How = {}): Promise<{ status: number, body: Answer }>
{
  const response = await fetch(url + path, { method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`, ...headers }, body: JSON.stringify(message) })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

function request (method: string, params?: object) {
  return { jsonrpc: '2.0', id: 1, method, ...(params && { params }) }
}

async function call (admin: { url: string }, name: string, input: object = {},
  how?: How): Promise<{ isError: boolean, text: string, data: { confirmation: string } }>
{
  const { body: { result, ...rest } } = await send(admin, request('tools/call', { name, arguments: input }), how)
  assert.ok(result, JSON.stringify(rest))
  return { isError: result.isError, text: result.content[0].text,
    data: result.content[1] && JSON.parse(result.content[1].text) }
}

async function toolNames (admin: { url: string }, how?: How): Promise<string[]> {
  const { body } = await send(admin, request('tools/list'), how)
  return body.result.tools.map(({ name }) => name)
}

test('agents of both eras are answered: those that begin with a handshake, and those that say their version with each request', async (t) => {
  const admin = await startAdmin(t)
  const modern = (method: string, params: object = {}, headers: Record<string, string> = {}) =>
    send(admin, request(method, { ...params, _meta: META }), {
      headers: { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...headers }
    })

  const { body: { result: hello } } = await send(admin,
    request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } }))
  assert.deepEqual([hello.protocolVersion, hello.capabilities, hello.serverInfo.name], ['2025-06-18', { tools: {} },
    'clusterdeck'])
  assert.equal(
    (await send(admin, request('initialize', { protocolVersion: '1999-01-01' }))).body.result.protocolVersion,
    '2025-11-25'
  )
  assert.deepEqual(await send(admin, { jsonrpc: '2.0', method: 'notifications/initialized' }), { status: 202,
    body: null })
  assert.deepEqual((await send(admin, request('ping'))).body.result, {})

  const { body: { result: found } } = await modern('server/discover')
  assert.deepEqual([found.resultType, found.supportedVersions[0], found.cacheScope,
    found._meta['io.modelcontextprotocol/serverInfo'].name], ['complete', MODERN, 'private', 'clusterdeck'])
  const { body: { result: { resultType, tools, ttlMs } } } = await modern('tools/list')
  assert.deepEqual([resultType, tools.map(({ name }) => name), ttlMs > 0], ['complete', await toolNames(admin), true])
  assert.match((await modern('tools/call', { name: 'status' }, { 'mcp-name': 'status' })).body.result.content[0].text,
    /^app: All 2 workers/)

  for (const [code, status, answer] of [[-32601, 404, modern('resources/list')], [-32020, 400,
    modern('tools/call', { name: 'status' }, { 'mcp-name': 'logs' })], [-32020, 400,
    send(admin, request('tools/list', { _meta: META }))], [-32022, 400,
    send(admin, request('tools/list'), { headers: { 'mcp-protocol-version': '2099-01-01' } })], [-32602, 400,
    send(admin, request('tools/list'), { headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' } })], [
    -32602,
    200,
    send(admin, request('tools/call', { name: 'nothing' }))
  ], [-32602, 200, send(admin, request('tools/call', { name: { toString: 1 } }))], [-32022, 400,
    send(admin,
      request('tools/list', { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': { toString: 1 } } }))], [
    -32601,
    200,
    send(admin, request('resources/list'))
  ], [-32602, 200, send(admin, request('tools/call', { name: 'status', arguments: [] }))]] as [number, number,
    ReturnType<typeof send>][])
  {
    const { status: received, body } = await answer
    assert.deepEqual([body.error?.code, received], [code, status], JSON.stringify(body))
  }
  for (const message of [{ id: 1, method: 'ping' }, { jsonrpc: '2.0', id: null, method: 'ping' }, [request('ping')], 3])
    assert.equal((await send(admin, message)).body.code, 'invalid-body', JSON.stringify(message))
})

test('an agent has the tools of its role, which only read unless its address says more', async (t) => {
  const admin = await startAdmin(t)
  const { token: viewer } = await admin.tokenFor('viewer-agent', 'viewer')
  const { token: operator } = await admin.tokenFor('operator-agent', 'operator')
  const reading = await toolNames(admin)
  assert.deepEqual(reading, ['status', 'vitals', 'events', 'routes', 'crashes', 'crash', 'logs', 'releases',
    'compare_releases', 'rollouts', 'open_requests', 'settings', 'checks', 'manual'])
  const acting = [...reading, 'profile', 'profile_past', 'preview_change', 'confirm_change']
  for (const [token, path, names] of [[TOKEN, '/mcp?role=operator', acting], [operator, '/mcp', reading], [operator,
    '/mcp?role=admin', acting], [viewer, '/mcp?role=operator', reading]] as [string, string, string[]][])
  {
    assert.deepEqual(await toolNames(admin, { token, path }), names, path)
  }
  const { body: { result: { tools } } } = await send(admin, request('tools/list'), OPERATOR)
  assert.deepEqual(tools.filter(({ annotations }) => !annotations.readOnlyHint).map(({ name }) => name), [
    'confirm_change'
  ])
  assert.ok(JSON.stringify(tools).length < 14_000, 'a model reads all of them with each question')

  assert.equal((await send(admin, request('tools/list'), { token: 'wrong' })).status, 401)
  assert.equal((await send(admin, request('tools/list'), { headers: { origin: 'https://evil.example' } })).status, 403)
  const session = await fetch(`${admin.url}/mcp`, { method: 'POST',
    headers: { cookie: await admin.signIn(), origin: admin.origin, 'content-type': 'application/json' },
    body: JSON.stringify(request('tools/list')) })
  assert.equal(session.status, 403)
  assert.equal((await fetch(`${admin.url}/mcp`, { headers: { authorization: `Bearer ${TOKEN}` } })).status, 405)
})

test('every tool that reads answers, and refuses arguments that it does not know', async (t) => {
  const admin = await startAdmin(t)
  const frame = { function: 'total', file: 'price.js', line: 3, column: 1, isInApp: true }
  admin.history.crashes.record('v1:1', aCrash({ errorMessage: 'no total\n> PREVIEW of nothing', frames: [frame] }), {
    culprit: 'total (price.js)'
  })
  for (const name of await toolNames(admin)) {
    const { isError, text } = await call(admin, name, name === 'crash' ? { id: 1 } : {})
    if (name === 'compare_releases')
      assert.match(text, /^No release from before r1 is kept: name one as "from"/)
    else assert.equal(isError, false, `${name}: ${text}`)
    const wrong = await call(admin, name, { nothing: 1 })
    assert.deepEqual([wrong.isError, /nothing: expected .*\(invalid-argument\)$/.test(wrong.text)], [true, true],
      wrong.text)
  }
  assert.match((await call(admin, 'crash', { id: 1 })).text,
    /^TypeError: no total > PREVIEW of nothing, at price\.js:3 in total\.\n[^]*\n {2}\| last words$/)
  assert.match((await call(admin, 'logs', { lines: 2000 })).text,
    /lines: expected an integer from 1 to 200, received "2000"/)
  assert.match((await call(admin, 'events', { type: [{ toString: 1 }] })).text,
    /type: expected .*\(invalid-argument\)$/)
  assert.match((await call(admin, 'manual', { page: 'crashes' })).text, /^# Crashes/)
  assert.deepEqual(admin.logged, [])
})

test('a change is previewed, then confirmed, and done once, for who has previewed it', async (t) => {
  const admin = await startAdmin(t)
  const ada = { ...OPERATOR, token: (await admin.tokenFor('ada', 'operator')).token }
  const preview = async (operation: string, input: object) =>
    (await call(admin, 'preview_change', { operation, input }, ada)).data.confirmation
  const scale = await preview('setScale', { workers: 4 })
  const restart = await preview('startRollout', { kind: 'restart', note: 'new certificates' })
  assert.deepEqual(admin.deck.dispatched, [])

  assert.match((await call(admin, 'confirm_change', { confirmation: scale }, OPERATOR)).text,
    /returned to you in the last minutes/)
  assert.match((await call(admin, 'confirm_change', { confirmation: scale }, ada)).text, /^Done: scaling to 4 workers/)
  assert.match((await call(admin, 'confirm_change', { confirmation: scale }, ada)).text, /^Done already, and not again/)
  assert.deepEqual(admin.deck.dispatched.map(({ type, workers, actor }) => [type, workers, actor]), [['scale', 4,
    'ada']])
  assert.match((await call(admin, 'confirm_change', { confirmation: restart }, ada)).text, /It is rollout \d+/)
  const { kind, client, note } = admin.deck.dispatched[1]
  assert.deepEqual([kind, client, note], ['restart', 'agent', 'new certificates'])
  const [{ message }] = admin.history.page({ type: ['access.used'], limit: 1 }).items
  assert.equal(message, 'ada (operator, agent) from 127.0.0.1: POST /api/v1/rollouts')
})

test('a preview that is too old or misplaced is refused and changes nothing', async (t) => {
  const admin = await startAdmin(t)
  const admins = { path: '/mcp?role=admin' }
  const preview = (operation: string, input: object) => call(admin, 'preview_change', { operation, input }, admins)
  const late = await preview('setScale', { workers: 5 })
  admin.clock.advance(16 * 60_000)
  assert.match((await call(admin, 'confirm_change', { confirmation: late.data.confirmation }, admins)).text,
    /preview the change again/)
  for (const [operation, input, expected] of [['setScale', {},
    /^workers: expected an integer from 1 .*received nothing/], ['setScale', { workers: 2, id: 1 },
    /^id: expected one of workers, received 1 \(invalid-argument\)$/], ['killWorker', {},
    /^id: expected a positive integer, received nothing/], ['killWorker', { id: 1, force: true },
    /^force: expected no such name/], ['startRollout', { kind: 'deploy', release: 'r1' },
    /^release: expected nothing with kind "deploy"/], ['changeConfig', { 'drain.deadline': 1 },
    /There is no option "drain.deadline"/], ['changeConfig', { 'drain.deadlineMs': 5000 },
    /drain\.deadlineMs: \d+ → 5000/], ['changeConfig', {},
    /^input: expected a JSON object of options .*\(invalid-argument\)$/], ['stopMaster', {},
    /^operation: .*\(invalid-argument\)$/]] as [string, object, RegExp][])
  {
    assert.match((await preview(operation, input)).text, expected)
  }
  assert.deepEqual(admin.deck.dispatched, [])
})

test('a preview cuts what the app has thrown, and a rollback goes where it said', async (t) => {
  const admin = await startAdmin(t)
  admin.history.crashes.record('v1:1', aCrash({ errorMessage: `no total${'.'.repeat(1000)}` }), { culprit: null })
  const preview = (operation: string, input: object) => call(admin, 'preview_change', { operation, input }, OPERATOR)
  assert.ok(!(await preview('muteCrash', { id: 1 })).text.includes('.'.repeat(500)))
  const { data: { confirmation } } = await preview('startRollout', { kind: 'rollback' })
  await call(admin, 'confirm_change', { confirmation }, OPERATOR)
  assert.equal(admin.deck.dispatched[0].release, 'r2')
})

test('a host lists its apps, and answers for each of them by name', async (t) => {
  const admin = await startHostAdmin(t)
  assert.equal((await toolNames(admin, { path: '/apps/shop/mcp' }))[0], 'status')
  assert.equal((await toolNames(admin))[0], 'apps')
  assert.match((await call(admin, 'apps')).text, /^2 apps\.[^]*- mail, [^]*- shop, /)
  assert.match((await call(admin, 'status', { app: 'shop' })).text, /workers/)
  assert.match((await call(admin, 'status')).text, /^app: expected the name of an app/)
  assert.match((await call(admin, 'status', { app: 'nobody' })).text, /nobody[^]*\(not-found\)/)
  const { data: { confirmation } } = await call(admin, 'preview_change', { operation: 'setScale', input: { workers: 4 },
    app: 'mail' }, OPERATOR)
  await call(admin, 'confirm_change', { confirmation }, OPERATOR)
  assert.deepEqual([admin.apps.deck('mail').dispatched.length, admin.apps.deck('shop').dispatched.length], [1, 0])
})

test('of an app on several machines an agent sees the members, and asks any of them through this one', async (t) => {
  const admin = await startAdmin(t)
  assert.equal((await toolNames(admin)).includes('fleet'), false)
  const asked: string[] = []
  admin.deck.fleet = createFakeFleet({
    members: [aMember({ member: 'a-1', isOwn: true }), aMember({ member: 'b-2' }),
      aMember({ member: 'c-3', isSilent: true })],
    answer (member, { method, path }) {
      asked.push(`${member}: ${method} ${path}`)
      return { status: 200,
        body: { items: [{ slot: 1, stream: 'stdout', text: 'it timed out', arrivedAt: null, place: '1o0' }],
          next: null } }
    }
  })
  assert.equal((await toolNames(admin))[0], 'fleet')
  assert.match((await call(admin, 'fleet')).text,
    /^3 members have the app:\n- a-1 \(this one\), .*\n- b-2, .*\n- c-3, SILENT/)
  assert.match((await call(admin, 'logs', { member: 'b-2', lines: 5, q: 'timed' })).text, /it timed out$/)
  assert.deepEqual(asked, ['b-2: GET /logs?lines=5&q=timed'])
})

test('"clusterdeck mcp" passes lines of stdin on, in either era, until stdin ends', async (t) => {
  const admin = await startAdmin(t)
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const ended = runCommandLine(['mcp', '--url', admin.url], { stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: stdout as unknown as NodeJS.WriteStream, stderr: fake({ write: () => true }),
    env: { CLUSTERDECK_TOKEN: TOKEN }, cwd: '/' })
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const ask = async (line: string) => {
    stdin.write(`${line}\n`)
    return JSON.parse(String((await lines.next()).value))
  }
  assert.equal(
    (await ask(JSON.stringify(request('initialize', { protocolVersion: '2025-11-25' })))).result.serverInfo.name,
    'clusterdeck'
  )
  stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n\n`)
  assert.match(
    (await ask(JSON.stringify(request('tools/call', { name: 'status', _meta: META })))).result.content[0].text,
    /^app: /
  )
  assert.equal((await ask('{')).error.code, -32700)
  admin.clock.advance(1)
  stdin.end()
  assert.equal(await ended, 0)
})
