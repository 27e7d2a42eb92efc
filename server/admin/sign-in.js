import { createHash } from 'node:crypto'
import express, { Router } from 'express'
import { cutEndlessBody } from '../api/body.js'
import { actorOf, roleText } from '../api/roles.js'
import { DeckError } from '../errors.js'
import { checkSameOrigin } from './guard.js'
import { networkOf } from './limiter.js'

/**
 * How a browser gets a session: by a one-time link or by the token, typed into the page. And how it ends one.
 * The page is `pages/sign-in` with `{ notice: { kind: 'info' | 'error', text } | null, next }`.
 */

const FIELD_LIMIT_BYTES = 4096
/** `cdk_` and a few random characters. */
const PREFIX_CHARS = 8
const MAX_BEGINNINGS = 1024
const readFields = express.urlencoded({ extended: false, limit: FIELD_LIMIT_BYTES, inflate: false, parameterLimit: 10 })
const CODE_SHAPE = /^[\w-]{43}$/

const NOTICES = Object.freeze({
  used: { kind: 'error', text: 'This sign-in link was already used. Run "clusterdeck open" for a new one, or sign in with the token.' },
  unknown: { kind: 'error', text: 'This sign-in link is no longer valid. Run "clusterdeck open" for a new one, or sign in with the token.' },
  wrongToken: { kind: 'error', text: 'Wrong token. It is in the file admin.token of the data folder.' },
  rateLimited: { kind: 'error', text: 'Too many attempts. Wait a minute and try again.' },
  signedOut: { kind: 'info', text: 'You are signed out.' },
  notDone: { kind: 'error', text: 'You are not signed in any more, so nothing was changed. Sign in, and send it again.' }
})

/**
 * @param {object} parts
 * @param {import('./sessions.js').Sessions} parts.sessions
 * @param {import('./sign-in-links.js').Links} parts.links
 * @param {{ render: (name: string, data: object) => string }} parts.views
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {{ signIn: (req: express.Request, res: express.Response, next: express.NextFunction) => unknown }} parts.limiters  `signIn`: refuses who has tried too many wrong tokens
 */
export function signInRouter ({ sessions, links, views, events, limiters }) {
  const router = Router({ caseSensitive: true })

  // express would answer HEAD by running GET, and use the link up.
  router.head('/sign-in', (_req, res) => { res.type('html').end() })

  router.get('/sign-in', (req, res) => {
    const { code, next, state } = queryOf(req)
    const { outcome, ...link } = code === null ? { outcome: null } : redeemCode(req, code)
    if (outcome === 'valid') return startSession(req, res, { next, ...link })
    if (req.auth) return goOn(req, res, req.auth, next)
    if (outcome) return showPage(res, 401, NOTICES[outcome], next)
    return showPage(res, 200, noticeOf(state) ?? endNotice(req), next)
  })

  router.post('/sign-in', requireOwnPage, (req, res, next) => readFields(cutEndlessBody(req), res, next), limitAttempts, (req, res) => {
    const { token, next } = req.body ?? {}
    // A token that is pasted brings its line end along.
    const person = sessions.whoHolds(String(token ?? '').trim())
    if (person) return startSession(req, res, { next, person })
    return showPage(res, 401, NOTICES.wrongToken, next)
  })

  router.post('/sign-out', (req, res) => {
    res.append('Set-Cookie', sessions.close(req))
    if (req.headers['hx-request']) return res.set('HX-Redirect', '/sign-in?state=signed-out').status(204).end()
    return res.redirect(303, '/sign-in?state=signed-out')
  })

  return router

  /**
   * It comes after the same-origin check, so that no foreign page can use up the attempts of its visitor.
   * @param {express.Request} req @param {express.Response} res @param {express.NextFunction} next
   */
  function limitAttempts (req, res, next) {
    limiters.signIn(req, res, (/** @type {unknown} */ refusal) => refusal ? showPage(res, 429, NOTICES.rateLimited, req.body?.next) : next())
  }

  /** @returns {ReturnType<typeof links.redeem>} */
  function redeemCode (/** @type {express.Request} */ req, /** @type {string} */ code) {
    // Browsers prefetch links, chat programs preview them and pages may load them, so only a visit counts.
    if (!isVisit(req)) throw new DeckError('forbidden', 'A sign-in link has to be visited: it cannot be fetched in advance, or by another page')
    if (!CODE_SHAPE.test(code)) return { outcome: 'unknown' }
    const link = links.redeem(code)
    return link.outcome === 'valid' && !sessions.isStill(link.person) ? { outcome: 'unknown' } : link
  }

  /**
   * @param {express.Request} req @param {express.Response} res
   * @param {{ next: unknown, person?: import('../api/roles.js').Person, from?: string | null }} how
   */
  function startSession (req, res, { next, person, from = null }) {
    const actor = actorOf(person)
    const [role, apps, address] = [person?.role ?? 'admin', person?.apps ?? null, req.socket.remoteAddress ?? 'unknown']
    events.publish({
      type: 'access.signed-in',
      actor,
      message: `${actor} (${roleText({ role, apps })}) from ${address}${from === null ? '' : `, by the dashboard of ${from}`}`,
      detail: { role, address, token: person?.token ?? null, ...(apps && { apps }), ...(from !== null && { deck: from }) }
    })
    res.append('Set-Cookie', sessions.open(req, person))
    return goOn(req, res, { name: null, role, apps, ...person }, next)
  }

  /**
   * Whoever signs in over a page stays there.
   * @param {express.Request} req @param {express.Response} res
   * @param {Pick<import('../api/roles.js').Person, 'name' | 'role' | 'apps'>} person @param {unknown} next
   */
  function goOn (req, res, { name, role, apps = null }, next) {
    return req.headers['hx-request'] ? res.json({ name, role, apps }) : res.redirect(303, safePath(next))
  }

  /** @param {string | null} state */
  function noticeOf (state) {
    if (state === 'signed-out') return NOTICES.signedOut
    return state === 'not-done' ? NOTICES.notDone : null
  }

  /** @param {express.Request} req */
  function endNotice (req) {
    const why = sessions.whyEnded(req)
    return why === null ? null : { kind: 'info', text: why }
  }

  /**
   * @param {express.Response} res @param {number} status
   * @param {{ kind: string, text: string } | null} notice @param {unknown} next
   */
  function showPage (res, status, notice, next) {
    if (status === 401) res.set('WWW-Authenticate', 'Bearer realm="clusterdeck"')
    return res.status(status).type('html').send(views.render('pages/sign-in', { notice, next: safePath(next) }))
  }
}

/**
 * Groups attempts for the limit. Behind a proxy all clients have one address, so attempts also count by the beginning of
 * the token: tries with one token do not lock out another. The number of beginnings is limited.
 * @param {express.Request} req
 */
export function attemptOf ({ ip, body }) {
  const beginning = String(body?.token ?? '').trim().slice(0, PREFIX_CHARS)
  return `${networkOf(ip ?? '')} ${createHash('sha256').update(beginning).digest().readUInt16BE() % MAX_BEGINNINGS}`
}

/**
 * Refuses other pages, as signing a person in without their knowledge (login CSRF) is an attack, too.
 * @param {express.Request} req @param {express.Response} _res @param {express.NextFunction} next
 */
function requireOwnPage (req, _res, next) {
  checkSameOrigin(req, false)
  next()
}

function queryOf (/** @type {express.Request} */ req) {
  const params = new URL(req.originalUrl, 'http://localhost').searchParams
  return { code: params.get('code'), next: params.get('next'), state: params.get('state') }
}

function isVisit (/** @type {express.Request} */ { headers }) {
  const isAhead = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'].some((name) => /prefetch|prerender|preview/i.test(String(headers[name] ?? '')))
  return !isAhead && (headers['sec-fetch-dest'] ?? 'document') === 'document'
}

/**
 * Where to go after signing in: a page of ours, whatever the address says (open redirects).
 * @param {unknown} next
 * @returns {string}
 */
export function safePath (next) {
  if (typeof next !== 'string' || !next.startsWith('/') || next.length > 2000) return '/'
  try {
    const url = new URL(next, 'http://own.invalid')
    const isPage = url.origin === 'http://own.invalid' && !/^\/(api|sign-|actions|socket\.io)/.test(url.pathname) && !url.pathname.startsWith('//')
    return isPage ? `${url.pathname}${url.search}` : '/'
  } catch {
    return '/'
  }
}
