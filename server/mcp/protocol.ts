import { toDeckError } from '../problem.ts'
import type { IncomingHttpHeaders as Headers } from 'node:http'

/**
 * The Model Context Protocol, as far as tools need it: a JSON object comes, a JSON object goes, and nothing is
 * remembered in between. Revision 2026-07-28 says with each request which version it speaks; earlier ones begin with
 * `initialize`. Both are answered.
 */
type Message = { jsonrpc: '2.0', id?: string | number, result?: Record<string, unknown>,
  error?: { code: number, message: string, data?: unknown } }
type Asked = { id?: string | number, method?: string, params?: Params }
type Params = { _meta?: Record<string, unknown>, name?: unknown, arguments?: unknown, protocolVersion?: unknown }
/** `status`: of HTTP; `message`: null where there is nothing to say */
type Answer = { status: number, message: Message | null }
export type ShownTool = { name: string, title: string, description: string, inputSchema: Record<string, unknown>,
  annotations: Record<string, boolean> }
export type Tools = {
  list: () => ShownTool[],
  /** throws a DeckError that says what to do instead */
  call: (name: string, input: Record<string, unknown>) => Promise<{ text: string, data?: unknown }>,
  has: (name: string) => boolean,
  /** hears of what should not have happened */
  report: (error: unknown) => void,
  instructions: string,
  /** of this software */
  version: string
}

/** Their requests say who speaks, in which version. */
const MODERN = Object.freeze(['2026-07-28'])
/** These begin with a handshake, the newest one first. */
const LEGACY = Object.freeze(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])
const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const SERVER = 'io.modelcontextprotocol/serverInfo'
/** A list of tools depends on the role of whoever asks, so nobody may keep it for others. */
const CACHING = Object.freeze({ ttlMs: 60_000, cacheScope: 'private' })

const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602
const HEADER_MISMATCH = -32020
const UNSUPPORTED_VERSION = -32022

/** An error of the protocol, which is not for the model. */
class ProtocolError extends Error {
  code: number
  status: number
  data: unknown

  /** `status`: of HTTP */
  constructor (code: number, message: string, { status = 400, data }: { status?: number, data?: unknown } = {}) {
    super(message)
    this.code = code
    this.status = status
    this.data = data
  }
}

/** `headers`: of its request */
export async function answerMessage (message: Asked, headers: Headers, tools: Tools): Promise<Answer> {
  const { id, method, params = {} } = message
  // A notification; or an answer to a request of a server, and this one sends none.
  if (id === undefined || method === undefined) return { status: 202, message: null }
  try {
    const isModern = checkVersion({ method, params }, headers)
    const result = await (isModern ? answerModern : answerLegacy)(method, params, tools)
    return { status: 200, message: { jsonrpc: '2.0', id, result } }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    const { code, message: text, status, data } = error
    return { status,
      message: { jsonrpc: '2.0', id, error: { code, message: text, ...(data !== undefined && { data }) } } }
  }
}

/** Returns whether each of its requests says which version it speaks @throws {ProtocolError} */
function checkVersion ({ method, params }: { method: string, params: Params }, headers: Headers): boolean {
  const meta = Object(params._meta)
  const given = headers['mcp-protocol-version']
  const version = meta[VERSION] ?? given
  if (meta[VERSION] === undefined && (given === undefined || LEGACY.includes(String(given)))) return false
  if (!MODERN.includes(version))
    throw new ProtocolError(UNSUPPORTED_VERSION, 'Unsupported protocol version', {
      data: { supported: [...MODERN, ...LEGACY], requested: shown(version) }
    })
  // Proxies act by the headers, so these have to say what the body says.
  const expected = { 'mcp-protocol-version': meta[VERSION], 'mcp-method': method,
    ...(method === 'tools/call' && { 'mcp-name': params.name }) }
  for (const [name, value] of Object.entries(expected)) {
    if (value !== undefined && headers[name] !== value)
      throw new ProtocolError(HEADER_MISMATCH,
        `${name}: expected ${JSON.stringify(value)}, as in the body, received ${JSON.stringify(headers[name] ?? null)}`)
  }
  for (const key of [VERSION, CAPABILITIES])
    if (meta[key] === undefined)
      throw new ProtocolError(INVALID_PARAMS, `params._meta: expected ${key}, received nothing`)
  return true
}

async function answerModern (method: string, params: Params, tools: Tools): Promise<Record<string, unknown>> {
  const _meta = { [SERVER]: serverInfo(tools) }
  switch (method) {
    case 'server/discover':
      return { resultType: 'complete', supportedVersions: [...MODERN, ...LEGACY], capabilities: { tools: {} },
        instructions: tools.instructions, ...CACHING, _meta }
    case 'tools/list':
      return { resultType: 'complete', tools: tools.list(), ...CACHING, _meta }
    case 'tools/call':
      return { resultType: 'complete', ...await callTool(params, tools), _meta }
  }
  throw new ProtocolError(METHOD_NOT_FOUND, 'Method not found', { status: 404 })
}

async function answerLegacy (method: string, params: Params, tools: Tools): Promise<Record<string, unknown>> {
  switch (method) {
    case 'initialize': {
      const protocolVersion = LEGACY.find((each) => each === params.protocolVersion) ?? LEGACY[0]
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: serverInfo(tools),
        instructions: tools.instructions }
    }
    case 'ping':
      return {}
    case 'tools/list':
      return { tools: tools.list() }
    case 'tools/call':
      return callTool(params, tools)
  }
  throw new ProtocolError(METHOD_NOT_FOUND, 'Method not found', { status: 200 })
}

/** `value`: where a text is expected */
function shown (value: unknown) {
  return (typeof value === 'string' ? value : String(JSON.stringify(value))).slice(0, 100)
}

function serverInfo ({ version }: Tools) {
  return { name: 'clusterdeck', title: 'clusterdeck', version }
}

/**
 * What has gone wrong with a tool is for the model, which can mend it; see "Error Handling" of the specification. The
 * data are a text of their own, not `structuredContent`: of a result that has that, many clients show the model nothing
 * else.
 */
async function callTool ({ name, arguments: input = {} }: Params, tools: Tools) {
  if (typeof name !== 'string' || !tools.has(name))
    throw new ProtocolError(INVALID_PARAMS, `Unknown tool: ${shown(name)}`, { status: 200 })
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw new ProtocolError(INVALID_PARAMS, 'arguments: expected an object', { status: 200 })
  try {
    const { text, data } = await tools.call(name, { ...input })
    return {
      content: [text, ...(data === undefined ? [] : [JSON.stringify(data)])].map((each) => ({ type: 'text',
        text: each })
      ),
      isError: false
    }
  } catch (error) {
    const { code, message } = toDeckError(error)
    if (code === 'internal') tools.report(error)
    return { content: [{ type: 'text', text: `${message} (${code})` }], isError: true }
  }
}
