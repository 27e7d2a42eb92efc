import { subscribe } from 'node:diagnostics_channel'
import { randomUUID } from 'node:crypto'
import { createAdmin } from '../../server/admin/listener.ts'
import { ROLES, type Role } from '../../server/api/roles.ts'
import { behindPort } from '../support/fake-apps.ts'
import { until } from '../support/until.ts'
import { startDeck, type IdleDeck } from './deck.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnswerTo } from '../support/answers.ts'

const ADMIN_TOKEN = 'admin-token-0123456789abcdef'
const NO_LIMITS = Object.freeze({ requests: 1e9, strangerRequests: 1e9, signInAttempts: 1e9 })
const IS_STREAM = /^\/api\/v1\/(events|logs)\/stream\b/
const STREAM_MS = 50
const IS_KEY = /^[!-~]{1,255}$/

/**
 * A real admin port over a deck without processes, with some of everything to be asked for. Returns `errors`: what the
 * master would have logged as its own fault.
 */
export async function openPort (): Promise<
  { url: string, tokens: Record<Role, string>, errors: string[], close: () => Promise<void> }
> {
  const errors: string[] = []
  const idle = await startDeck()
  const { deck } = idle
  const log = { warn () {}, error: ({ err }: { err?: Error }, text: string) => errors.push(`${text}: ${err?.stack}`) }
  const admin = createAdmin({ ...behindPort(deck, deck.history), token: ADMIN_TOKEN, limits: NO_LIMITS, log })
  const { url } = await admin.listen()
  const tokens = await fill({ ...idle, url })
  idle.keepAtRest()

  return { url, tokens, errors, async close () {
    await admin.close()
    await idle.close()
  } }
}

/** A crash, a rollout, diagnostics, a delivery that has failed, lines of a log, and a token of each role. */
async function fill ({ deck, crash, next, url }: IdleDeck & { url: string }) {
  const crashed = next('crash.group-new')
  crash(aWorker())
  await crashed
  const deployed = next('rollout.succeeded')
  await post('/rollouts', { kind: 'deploy', note: 'faster totals' })
  await deployed
  const diagnosed = next('diagnostics.finished')
  await post(`/workers/${aWorker()}/diagnostics`, { kind: 'heap-statistics' })
  await diagnosed
  await post('/alerts/file-1/test')
  await until(async () => deck.alerts.list()[0].deliveries[0].state === 'failed', 'a delivery that has failed')
  const [viewer, operator] = await Promise.all(ROLES.map((role) => post('/tokens', { name: `a-${role}`, role })))
  // The call that revokes tokens is tried too, and takes its own away; this one it does not know.
  return { viewer: viewer.token, operator: operator.token, admin: ADMIN_TOKEN }

  function aWorker () {
    return Number(deck.snapshot().workers[0].id)
  }

  async function post<P extends string> (path: P, body: object = {}) {
    const response = await fetch(`${url}/api/v1${path}`, { method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body) })
    if (!response.ok)
      throw new Error(`POST ${path}: expected 2xx, received ${response.status}: ${await response.text()}`)
    return await response.json() as AnswerTo<'POST', P>
  }
}

/**
 * What cannot be told to a program that knows nothing but the description: a stream has no end by itself, and a key
 * that comes again with another request is refused. So streams end as if the master did, and no key comes again.
 */
export function tameServer () {
  subscribe('http.server.request.start', (message) => {
    const { request, response } = message as { request: IncomingMessage, response: ServerResponse }
    if (IS_STREAM.test(String(request.url))) setTimeout(() => response.end(), STREAM_MS)
    const key = request.headers['idempotency-key']
    if (key !== undefined && IS_KEY.test(String(key))) request.headers['idempotency-key'] = randomUUID()
  })
}
