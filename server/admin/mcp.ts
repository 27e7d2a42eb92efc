import { z } from 'zod'
import { operation, type Resource } from '../api/endpoint.ts'
import { ROLE } from '../api/fields.ts'
import { ROLES } from '../api/roles.ts'
import type { ServerResponse } from 'node:http'
import type { Mount } from '../api/openapi.ts'
import type { InProcessTransport } from './in-process-transport.ts'
import type { Log } from '../system/log.ts'

/**
 * The Model Context Protocol at `/mcp`, by streamable HTTP: agents ask by the API, with the role of the token that they
 * have got.
 */
export type Ask = InProcessTransport['ask']

const MAX_ANSWER_BYTES = 8 * 1024 * 1024
const ANSWER_WITHIN_MS = 90_000

const MESSAGE = z.looseObject({ jsonrpc: z.literal('2.0') })
const ASKED = z.looseObject({ jsonrpc: z.literal('2.0').describe('"2.0"'),
  id: z.union([z.string(), z.int()]).optional().describe('a text or an integer; without it: a notification'),
  method: z.string().optional().describe('a method such as tools/call'),
  params: z.looseObject({}).optional().describe('an object') }).meta({ description: 'one JSON-RPC 2.0 message',
    examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }] })

/** `takesApp`: a tool is told which app of the host it is for; `groups`: operations of an app */
export function mcpResources (
  { ask, takesApp, hasFleet = () => false, groups, about, now, log }: { ask: Ask, takesApp: boolean,
    hasFleet?: () => boolean, groups: () => Mount['groups'], about: () => { version: string }, now: () => number,
    log: Pick<Log, 'error'> }
): Record<string, Resource> {
  /** with the first message, as most masters get none */
  let loaded: ReturnType<typeof loadAll> | null = null

  return {
    '/mcp': {
      POST: operation({ name: 'sendMcpMessage', summary: 'Answers a message of the Model Context Protocol, for agents',
        description:
          'Streamable HTTP, without sessions and without streams: revision 2026-07-28, and those before it that begin with `initialize`. The tools only read, unless `role` ' +
          'allows more and the token has that role. An error of the protocol is JSON-RPC, also with the status 400 or 404.',
        role: 'viewer', byToken: 'An agent', cli: 'clusterdeck mcp',
        query: z.strictObject({
          role: ROLE.optional().describe(
            `the most that its tools may need: one of ${ROLES.join(', ')} (default: viewer)`
          )
        }), body: ASKED, largestBodyBytes: 256 * 1024, others: { 202: {} }, answer: MESSAGE,
        async handle ({ req, res, auth, body, query }) {
          loaded ??= loadAll()
          const { answerMessage, toolsFor } = await loaded
          const role = ROLES[Math.min(ROLES.indexOf(auth.role), ROLES.indexOf(query.role ?? 'viewer'))]
          const agent = { ...auth, role, via: 'agent' as const, client: 'agent' as const,
            from: req.socket.remoteAddress ?? 'unknown' }
          const signal = endOf(res)
          const tools = toolsFor((order) => ask(order, agent, { maxBytes: MAX_ANSWER_BYTES, signal }), { auth: agent,
            hasFleet: hasFleet() })
          const { status, message } = await answerMessage(body, req.headers, tools)
          if (message !== null) return { status, body: message }
          res.status(status).end()
          return undefined
        } })
    }
  }

  async function loadAll () {
    const [{ answerMessage }, { createToolbox }, { createConfirmations }] = await Promise.all([
      import('../mcp/protocol.ts'),
      import('../mcp/tools.ts'),
      import('../mcp/confirmations.ts')
    ])
    const report = (error: unknown) => log.error({ err: error }, 'a tool of an agent failed')
    return { answerMessage,
      toolsFor: createToolbox({ takesApp, version: about().version, now, groups,
        confirmations: createConfirmations({ now }), report }) }
  }
}

/** Nothing more is asked for a caller who has gone. */
function endOf (res: ServerResponse) {
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  return AbortSignal.any([gone.signal, AbortSignal.timeout(ANSWER_WITHIN_MS)])
}
