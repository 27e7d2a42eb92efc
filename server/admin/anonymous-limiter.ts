import { isFormOfPage } from '../dashboard/form-of-page.ts'
import { DeckError } from '../errors.ts'
import { headersOf, PROBLEM_TYPE, toProblem } from '../problem.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { createWindow, networkOf } from './limiter.ts'
import type { IncomingMessage } from 'node:http'

/**
 * Limits requests without a sign-in: which paths they may read, and how many others one address may send. They are
 * refused before the request is parsed, so that a flood leaves the master time for its workers.
 */
export type Refusal = { status: number, headers: Record<string, string | number>, body: string }

/** What may be seen without signing in; everything else is denied, whether it exists or not. */
const PUBLIC_PATHS = Object.freeze(['/healthz', '/readyz', '/sign-in'])
const PUBLIC_FOLDERS = Object.freeze(['/assets/'])

const UNKNOWN = refusalOf(
  new DeckError('unauthenticated', 'Sign in again, or send a token: Authorization: Bearer <token>')
)
const TOO_MANY = refusalOf(new DeckError('rate-limited', 'Too many requests: wait for the seconds in Retry-After'))

export function createAnonymousLimiter ({ windowMs, limit, now }: {
  windowMs: number,
  /** requests of one address in that time */
  limit: number,
  now: () => number
}) {
  const window = createWindow({ windowMs, now })
  let tooMany = refusalFor(0)

  return {
    /** `req`: without a sign-in. Returns null: it may be answered. */
    refuse (req: IncomingMessage): Refusal | null {
      if (isPublic(pathOf(req)) || isPageVisit(req)) return null
      if (window.count(networkOf(req.socket.remoteAddress ?? '')) > limit) return tooManyFor(window.restS())
      // A session that has ended while a page without scripts was open: its form leads to the sign-in page.
      return isFormOfPage(req) ? null : UNKNOWN
    }
  }

  function tooManyFor (seconds: number) {
    if (tooMany.headers['Retry-After'] !== seconds) tooMany = refusalFor(seconds)
    return tooMany
  }
}

function refusalFor (seconds: number): Refusal {
  return { ...TOO_MANY, headers: { ...TOO_MANY.headers, 'Retry-After': seconds } }
}

/** Made once, as it is the same for every request. */
function refusalOf (error: DeckError): Refusal {
  const body = JSON.stringify(toProblem(error))
  const headers = { ...Object.fromEntries(SECURITY_HEADERS), ...headersOf(error), 'Content-Type': PROBLEM_TYPE,
    'Content-Length': Buffer.byteLength(body) }
  return { status: error.status, headers, body }
}

export function isPublic (path: string) {
  return PUBLIC_PATHS.includes(path) || PUBLIC_FOLDERS.some((folder) => path.startsWith(folder))
}

function isPageVisit (req: IncomingMessage) {
  const { method, headers } = req
  return method === 'GET' && !pathOf(req).startsWith('/api/') && !headers['hx-request'] &&
    String(headers.accept).includes('text/html')
}

function pathOf ({ url = '' }: IncomingMessage) {
  return url.split('?', 1)[0]
}
