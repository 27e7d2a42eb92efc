import { isByBrowser, roleText } from '../api/roles.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventStream } from '../events/stream.ts'

/** Records in the history who changed something, from where, and who was refused. */
/** `statusCode`: null if the connection closed before the answer */
type Asked = { method: string, url: string, remoteAddress?: string, statusCode: number | null }

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Each of its messages is a POST; what a message changes is a request of its own. */
const ASKED_BY_AGENT = /^\/mcp(?=$|\?)/
const REFUSALS = new Set([401, 403])
/** More refusals within the window are only counted, so that nobody fills the history. */
const MAX_PUBLISHED = 10
const WINDOW_MS = 60_000
const MAX_PATH_CHARS = 200

export function createAudit (
  { events, timers }: { events: Pick<EventStream, 'publish'>,
    timers: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> }
) {
  let published = 0
  let counted = 0
  let window: NodeJS.Timeout | undefined

  return { watch (req: IncomingMessage, res: ServerResponse) {
    // Read now, as a router changes the URL and a socket that was reset has no address.
    const { method = '', url = '', socket: { remoteAddress } } = req
    // A request counts even if the client hangs up before the answer, as it may have been done.
    res.once('close', () => {
      const statusCode = res.headersSent ? res.statusCode : null
      if (statusCode !== null && REFUSALS.has(statusCode) && isAttempt(req))
        recordRefused(req, { method, url, remoteAddress, statusCode })
      else if (!READS.has(method) && !ASKED_BY_AGENT.test(url) && (statusCode === null || statusCode < 400) &&
        req.auth)
      {
        events.publish({ type: 'access.used', ...describeRequest(req, { method, url, remoteAddress, statusCode }) })
      }
    })
  }, close () {
    timers.clearTimeout(window)
  } }

  function recordRefused (req: IncomingMessage, request: Asked) {
    window ??= timers.setTimeout(endWindow, WINDOW_MS)
    if (published < MAX_PUBLISHED) {
      published++
      events.publish({ type: 'access.refused', ...describeRequest(req, request) })
    } else {
      counted++
    }
  }

  function endWindow () {
    if (counted > 0)
      events.publish({ type: 'access.refused', message: `${counted} more requests were refused within a minute`,
        detail: { count: counted } })
    window = undefined
    published = counted = 0
  }
}

/** Whether to record it: a visit without a sign-in is only sent to the sign-in page. */
function isAttempt ({ auth, headers, method = '' }: IncomingMessage) {
  return Boolean(auth) || headers.authorization !== undefined || !READS.has(method)
}

function describeRequest (req: IncomingMessage, { method, url, remoteAddress = 'unknown', statusCode }: Asked) {
  const { auth } = req
  const path = url.split('?', 1)[0].slice(0, MAX_PATH_CHARS)
  const address = auth?.from ?? remoteAddress
  const way = auth ? wayOf(req) : 'nobody known'
  const who = auth ? `${auth.actor} (${roleText(auth)}, ${way})` : 'somebody unknown'
  return { actor: auth?.actor ?? null, message: `${who} from ${address}: ${method} ${path}${endOf(statusCode)}`,
    detail: { method, path, status: statusCode, address, role: auth?.role ?? null, via: auth?.via ?? null,
      token: auth?.token ?? null } }
}

function endOf (statusCode: number | null) {
  if (statusCode === null) return ', and hung up before the answer'
  return statusCode < 400 ? '' : `, ${statusCode}`
}

function wayOf ({ auth, headers }: IncomingMessage) {
  if (auth && isByBrowser(auth)) return 'dashboard'
  if (auth?.via === 'fleet') return 'fleet'
  if (auth?.via === 'agent') return 'agent'
  return headers['x-clusterdeck-client'] === 'cli' ? 'command line' : 'API'
}
