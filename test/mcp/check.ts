// Agents held against what others say of the protocol: `npm run mcp:check`, or `npm run mcp:check -- --node PATH` (from
// 22.19 on, for the suite and the Inspector) The clients of the official SDK (both eras), its Inspector and its
// conformance suite ask a real deck. One of them goes from "slow since noon" to the line.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { CLI, startDeck } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createOwner } from '../support/owner.ts'
import { createShop } from './shop.ts'
import type { AddressInfo } from 'node:net'

const PACKAGES = ['@modelcontextprotocol/sdk@1.32.2', '@modelcontextprotocol/client@2.4.0',
  '@modelcontextprotocol/conformance@0.1.16']
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0'
/** Outside of this package, as npm takes its parts for workspaces of it otherwise; it outlives this run. */
const FOLDER = path.join(tmpdir(), 'clusterdeck-mcp-check')
const CONFORMANCE = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']
const MAX_CALLS = 6

type Client = {
  callTool: (call: { name: string, arguments: object }) => Promise<{ isError?: boolean, content: { text: string }[] }>,
  listTools: () => Promise<{ tools: { name: string }[] }>,
  close: () => Promise<void>
}

const { values: { node } } = parseArgs({ options: { node: { type: 'string', default: process.execPath } } })
const owner = createOwner()
const rows: { check: string, ok: boolean, told: string }[] = []
try {
  await install(PACKAGES)
  const shop = createShop(tempFolder())
  const deck = await startDeck(owner, null, { cwd: shop.folder, flags: ['app.js', '--releases-mode', 'folder'],
    env: { PORT: '0' } })
  await deck.until({ ready: 2 })
  owner.after(askForEver(await deck.appUrl()))
  await sleep(12_000)
  shop.plantCause()
  await deck.api('/rollouts', { method: 'POST',
    body: JSON.stringify({ kind: 'deploy', note: 'always the newest prices' }),
    headers: { 'content-type': 'application/json' } })
  await deck.until({ ready: 2 })
  await sleep(12_000)
  const address = new URL(`${deck.adminUrl}/mcp?role=operator`)

  for (const era of ['legacy', 'modern'] as const) {
    await check(`SDK client, ${era}, stdio: from "slow since noon" to the line`, async () =>
      await findCause(await connect(era, { stdio: ['mcp', '--data-dir', deck.folder, '--role', 'operator'] })))
    await check(`SDK client, ${era}, HTTP: lists and calls`, async () =>
      await lookAround(await connect(era, { address, token: deck.token })))
  }
  for (const scenario of CONFORMANCE)
    await check(`conformance suite: ${scenario}`, async () => await conformance(scenario, deck))
  await check('Inspector: tools/list, tools/call', async () => await inspect(deck))
} finally {
  await owner.end()
}
console.table(rows)
process.exit(rows.every(({ ok }) => ok) ? 0 : 1)

/** `work`: returns what it has found */
async function check (name: string, work: () => Promise<string>) {
  try {
    rows.push({ check: name, ok: true, told: await work() })
  } catch (error) {
    rows.push({ check: name, ok: false, told: String(error).slice(0, 300) })
  }
}

async function connect (era: 'legacy' | 'modern',
  to: { stdio: string[] } | { address: URL, token: string }): Promise<Client>
{
  const home = era === 'legacy' ? '@modelcontextprotocol/sdk/dist/esm/client' : '@modelcontextprotocol/client/dist'
  const load = async (file: string) => await import(pathToFileURL(path.join(FOLDER, 'node_modules', home, file)).href)
  const { Client } = await load(era === 'legacy' ? 'index.js' : 'index.mjs')
  const { StdioClientTransport } = await load(era === 'legacy' ? 'stdio.js' : 'stdio.mjs')
  const { StreamableHTTPClientTransport } = await load(era === 'legacy' ? 'streamableHttp.js' : 'index.mjs')
  const client = new Client({ name: 'check', version: '1.0.0' }, {
    ...(era === 'modern' && { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  })
  await client.connect(
    'stdio' in to
      ? new StdioClientTransport({ command: process.execPath, args: [CLI, ...to.stdio] })
      : new StreamableHTTPClientTransport(to.address, {
        requestInit: { headers: { authorization: `Bearer ${to.token}` } }
      })
  )
  return client
}

/** As an agent would go on that knows nothing but what it is told. */
async function findCause (client: Client): Promise<string> {
  let calls = 0
  const call = async (name: string, input: object = {}) => {
    calls++
    const { isError, content } = await client.callTool({ name, arguments: input })
    console.log(`\n${calls}. ${name} ${JSON.stringify(input)}\n${content[0].text}`)
    if (isError) throw new Error(`${name}: ${content[0].text}`)
    return content.map(({ text }) => text)
  }
  expect(await call('status'), /r2 runs/)
  expect(await call('vitals', { since: '1h' }), /p99 latency: .* times\) from [^]*rollout\.succeeded \(deploy, r2/)
  expect(await call('compare_releases'), /r2 against r1: p99 .*[^]*src\/prices\.js \(changed\)/)
  expect(await call('profile', { seconds: 2 }), /was in cheapest itself, src\/prices\.js:\d[^]*→.*toSorted/)
  const [preview, data] = await call('preview_change', { operation: 'startRollout',
    input: { kind: 'rollback', note: 'slow since r2' } })
  expect([preview], /^PREVIEW of a rollback to r1 from r2/)
  if (!JSON.parse(data).confirmation || calls > MAX_CALLS)
    throw new Error(`expected a confirmation in at most ${MAX_CALLS} calls, received ${data} in ${calls}`)
  await client.close()
  return `${calls - 1} calls to the line, ${calls} to the preview of the way back`
}

async function lookAround (client: Client) {
  const { tools } = await client.listTools()
  for (const name of ['status', 'logs', 'events', 'settings', 'checks', 'open_requests']) {
    const { isError, content } = await client.callTool({ name, arguments: {} })
    if (isError) throw new Error(`${name}: ${content[0].text}`)
  }
  await client.close()
  return `${tools.length} tools`
}

function expect (texts: string[], pattern: RegExp) {
  if (!pattern.test(texts[0])) throw new Error(`expected ${pattern}, received ${texts[0]}`)
}

/** The suite sends no token, so one is added on the way. */
async function conformance (scenario: string, { adminUrl, token }: { adminUrl: string, token: string }) {
  const real = new URL(adminUrl).host
  const proxy = http.createServer((req, res) => {
    const own = String(req.socket.localPort)
    const asIts = (name: string | undefined) =>
      name?.replace(new RegExp(`^(https?://)?(?:127\\.0\\.0\\.1|localhost):${own}$`), `$1${real}`)
    const { host, origin, ...headers } = req.headers
    const passed = http.request(new URL(String(req.url), adminUrl), { method: req.method,
      headers: { ...headers, host: asIts(host), ...(origin && { origin: asIts(origin) }),
        authorization: `Bearer ${token}` } }, (answer) => {
      res.writeHead(Number(answer.statusCode), answer.headers)
      answer.pipe(res)
    })
    req.pipe(passed)
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', () => resolve(null)))
  const { port } = proxy.address() as AddressInfo
  try {
    const output = await run(node, [path.join(FOLDER, 'node_modules/@modelcontextprotocol/conformance/dist/index.js'),
      'server', '--url', `http://127.0.0.1:${port}/mcp`, '--scenario', scenario])
    return /Passed: .*/.exec(output)?.[0] ?? output.trim().split('\n').at(-1) ?? ''
  } finally {
    proxy.close()
  }
}

async function inspect ({ adminUrl, token }: { adminUrl: string, token: string }) {
  await install([INSPECTOR])
  const inspector = [path.join(FOLDER, 'node_modules/.bin/mcp-inspector'), '--cli', `${adminUrl}/mcp`, '--transport',
    'http', '--header', `Authorization: Bearer ${token}`]
  const { tools } = JSON.parse(await run(node, [...inspector, '--method', 'tools/list']))
  const { content } = JSON.parse(await run(node, [...inspector, '--method', 'tools/call', '--tool-name', 'status']))
  return `${tools.length} tools; ${content[0].text.slice(0, 60)}`
}

async function install (packages: string[]) {
  const missing = packages.filter((each) =>
    !existsSync(path.join(FOLDER, 'node_modules', each.slice(0, each.lastIndexOf('@'))))
  )
  if (missing.length > 0)
    await run('npm', ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', '--loglevel', 'error', ...missing])
}

async function run (program: string, words: string[]): Promise<string> {
  const child = spawn(program, words, { cwd: tempFolder(), stdio: ['ignore', 'pipe', 'pipe'] })
  owner.spawned(child)
  let output = ''
  let errors = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0)
    throw new Error(`${program} ${words.join(' ')}: exit code ${code}: ${errors || output}`.slice(0, 2000))
  return output
}

/**
 * A little traffic.
 * @returns ends it
 */
function askForEver (url: string): () => void {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
  const timer = setInterval(() => {
    http.get(url, { agent }, (answer) => answer.resume()).on('error', () => {})
  }, 15)
  return () => {
    clearInterval(timer)
    agent.destroy()
  }
}
