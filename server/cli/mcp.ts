import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { attempt, DeckError, errorText } from '../errors.ts'
import { sendRequest } from '../system/http.ts'
import { isAlive } from '../system/process-identity.ts'
import { findMaster, type Master } from './find-master.ts'
import { expectHost } from './host.ts'
import { checkedWord } from './usage.ts'
import type { Options } from './commands.ts'
import type { Terminal } from './program.ts'

/**
 * The Model Context Protocol over stdin and stdout: passes each line on to `/mcp` of a master, and its answer back. So
 * a new master, or a newer version, needs no new start of the agent.
 */
type Addressee = Pick<Master, 'url' | 'token' | 'fingerprint' | 'recipient'>

const ROLES = ['viewer', 'operator', 'admin']
const VERSION = 'io.modelcontextprotocol/protocolVersion'
/** JSON-RPC's code for what went wrong on this side. */
const INTERNAL = -32603
const PARSE_ERROR = -32700

/** Runs until stdin ends. */
export async function serveMcp ({ role = ROLES[0], host, ...options }: Options,
  { stdin = process.stdin, stdout, stderr, env, cwd }: Terminal)
{
  checkedWord('--role', ROLES, role)
  if (stdin.isTTY)
    stderr.write(
      'clusterdeck mcp speaks the Model Context Protocol on stdin and stdout: an agent starts it. See "clusterdeck help agents"; Ctrl-C ends it.\n'
    )
  const sendMessage = createSender({ role,
    find: async () => host ? expectHost(env) : await findMaster(options, { env, cwd }) })
  /** What is not answered yet, by the id of its request. */
  const running: Map<unknown, AbortController> = new Map()
  const works: Set<Promise<void>> = new Set()
  for await (const line of createInterface({ input: stdin, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const work = answerLine(line).finally(() => works.delete(work))
    works.add(work)
  }
  for (const one of running.values()) one.abort()
  await Promise.all(works)

  async function answerLine (line: string) {
    const message = parseLine(line)
    if (message === null) return write({ jsonrpc: '2.0', error: { code: PARSE_ERROR, message: 'Parse error' } })
    const { id, method, params } = Object(message)
    if (method === 'notifications/cancelled') return running.get(params?.requestId)?.abort()
    const asked = new AbortController()
    if (id !== undefined) running.set(id, asked)
    try {
      const answer = await sendMessage(message, line, asked.signal)
      if (answer !== null && id !== undefined) write(answer)
    } catch (error) {
      // Nobody waits for what was cancelled.
      if (!asked.signal.aborted && id !== undefined)
        write({ jsonrpc: '2.0', id,
          error: { code: INTERNAL, message: error instanceof DeckError ? error.message : errorText(error) } })
    } finally {
      if (running.get(id) === asked) running.delete(id)
    }
  }

  function write (message: unknown) {
    stdout.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  }
}

/** A message of the agent, or what has come as one. */
type Sent = { id?: unknown, method?: unknown, params?: { name?: unknown, _meta?: Record<string, unknown> },
  jsonrpc?: unknown, detail?: unknown }

function createSender ({ role, find }: { role: string, find: () => Promise<Addressee> }) {
  /** found with the first message, and again once it has ended */
  let master: Addressee | null = null

  /** `body`: the same. Returns a line; null: there is no answer. */
  return async function sendMessage (message: Sent, body: string, signal: AbortSignal): Promise<string | null> {
    if (master?.recipient && !isAlive(master.recipient.processes[0])) master = null
    master ??= await find()
    const { url, token, fingerprint, recipient } = master
    try {
      const response = await sendRequest(`${url}/mcp?role=${encodeURIComponent(role)}`, { method: 'POST',
        headers: { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream',
          'content-type': 'application/json', 'x-clusterdeck-client': 'cli', ...headersOf(message) }, body, signal,
        fingerprint, recipient })
      return lineOf(await text(response), Number(response.statusCode))
    } catch (error) {
      // Another master may have followed, at another address.
      master = null
      throw error
    }
  }
}

/** What HTTP says beside the body. */
function headersOf ({ method, params }: Sent): Record<string, string> {
  const version = params?._meta?.[VERSION]
  if (typeof version !== 'string') return {}
  return { 'mcp-protocol-version': version, 'mcp-method': String(method),
    ...(typeof params?.name === 'string' && /^[ -~]*$/.test(params.name) && { 'mcp-name': params.name }) }
}

/** @throws {DeckError} what the master refuses by HTTP */
function lineOf (body: string, status: number): string | null {
  if (body === '') return null
  const answer = parseLine(body)
  if (answer?.jsonrpc === '2.0') return JSON.stringify(answer)
  throw new DeckError('no-master',
    String(answer?.detail ?? `the master answers, but not as clusterdeck does (HTTP ${status})`))
}

/** Null: it is no JSON */
function parseLine (line: string): Sent | null {
  return attempt(() => JSON.parse(line))
}
