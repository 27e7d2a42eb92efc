import { isFormOfPage } from '../dashboard/page-router.js'
import { DeckError } from '../errors.js'
import { headersOf, PROBLEM_TYPE, toProblem } from '../problem.js'
import { securityHeaders } from './guard.js'
import { createWindow, networkOf } from './limiter.js'

/**
 * Limits requests without a sign-in: which paths they may read, and how many others one address may send. They are refused
 * before the request is parsed, so that a flood leaves the master time for its workers.
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {{ status: number, headers: Record<string, string | number>, body: string }} Refusal
 */

/** What may be seen without signing in; everything else is denied, whether it exists or not. */
const PUBLIC_PATHS = Object.freeze(['/healthz', '/readyz', '/sign-in'])
const PUBLIC_FOLDERS = Object.freeze(['/assets/'])

const UNKNOWN = refusalOf(new DeckError('unauthenticated', 'Sign in again, or send a token: Authorization: Bearer <token>'))
const TOO_MANY = refusalOf(new DeckError('rate-limited', 'Too many requests: wait for the seconds in Retry-After'))

/**
 * @param {object} parts
 * @param {number} parts.windowMs
 * @param {number} parts.limit  requests of one address in that time
 * @param {() => number} parts.now
 */
export function createAnonymousLimiter ({ windowMs, limit, now }) {
  const window = createWindow({ windowMs, now })
  let tooMany = refusalFor(0)

  return {
    /** @param {IncomingMessage} req without a sign-in @returns {Refusal | null} null: it may be answered */
    refuse (req) {
      if (isPublic(pathOf(req)) || isPageVisit(req)) return null
      if (window.count(addressOf(req)) > limit) return tooManyFor(window.restS())
      // A session that has ended while a page without scripts was open: its form leads to the sign-in page.
      return isFormOfPage(req) ? null : UNKNOWN
    }
  }

  /** @param {number} seconds */
  function tooManyFor (seconds) {
    if (tooMany.headers['Retry-After'] !== seconds) tooMany = refusalFor(seconds)
    return tooMany
  }
}

/** @param {number} seconds @returns {Refusal} */
function refusalFor (seconds) {
  return { ...TOO_MANY, headers: { ...TOO_MANY.headers, 'Retry-After': seconds } }
}

/** Made once, as it is the same for every request. @param {DeckError} error @returns {Refusal} */
function refusalOf (error) {
  const body = JSON.stringify(toProblem(error))
  const headers = { ...securityHeaders(), ...headersOf(error), 'Content-Type': PROBLEM_TYPE, 'Content-Length': Buffer.byteLength(body) }
  return { status: error.status, headers, body }
}

/** @param {string} path */
export function isPublic (path) {
  return PUBLIC_PATHS.includes(path) || PUBLIC_FOLDERS.some((folder) => path.startsWith(folder))
}

/** Whether the sender is sent to the sign-in page. @param {IncomingMessage} req */
function isPageVisit (req) {
  const { method, headers } = req
  return method === 'GET' && !pathOf(req).startsWith('/api/') && !headers['hx-request'] && String(headers.accept).includes('text/html')
}

/** @param {IncomingMessage} req */
function pathOf ({ url = '' }) {
  return url.split('?', 1)[0]
}

/** @param {IncomingMessage} req */
function addressOf ({ socket }) {
  return networkOf(socket.remoteAddress ?? '')
}
