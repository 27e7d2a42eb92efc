import express, { Router } from 'express'
import { cutEndlessBody } from '../api/body.ts'
import { actorOf, roleText, type Person } from '../api/roles.ts'
import { attempt, DeckError } from '../errors.ts'
import { checkSameOrigin } from './guard.ts'
import type { Sessions } from './sessions.ts'
import type { Links } from './sign-in-links.ts'
import type { EventStream } from '../events/stream.ts'

/**
 * How a browser gets a session: by a one-time link or by the token, typed into the page. And how it ends one.
 */

const FIELD_LIMIT_BYTES = 4096
const readFields = express.urlencoded({ extended: false, limit: FIELD_LIMIT_BYTES, inflate: false, parameterLimit: 10 })
const CODE_SHAPE = /^[\w-]{43}$/

const NOTICES = Object.freeze({
  used: { kind: 'error',
    text: 'This sign-in link was already used. Run "clusterdeck open" for a new one, or sign in with the token.' },
  unknown: { kind: 'error',
    text: 'This sign-in link is no longer valid. Run "clusterdeck open" for a new one, or sign in with the token.' },
  wrongToken: { kind: 'error', text: 'Wrong token. It is in the file admin.token of the data folder.' },
  rateLimited: { kind: 'error', text: 'Too many attempts. Wait a minute and try again.' },
  signedOut: { kind: 'info', text: 'You are signed out.' },
  notDone: { kind: 'error',
    text: 'You are not signed in any more, so nothing was changed. Sign in, and send it again.' }
})

export function signInRouter ({ sessions, links, views, events, limiters }: {
  sessions: Sessions,
  links: Links,
  views: { render: (name: string, data: object) => string },
  events: Pick<EventStream, 'publish'>,
  /** `signIn`: refuses who has tried too many wrong tokens */
  limiters: { signIn: (req: express.Request, res: express.Response, next: express.NextFunction) => unknown }
}) {
  const router = Router({ caseSensitive: true })

  // express would answer HEAD by running GET, and use the link up.
  router.head('/sign-in', (_req, res) => {
    res.type('html').end()
  })

  router.get('/sign-in', (req, res) => {
    const { code, next, state } = queryOf(req)
    const { outcome, ...link } = code === null ? { outcome: null } : redeemCode(req, code)
    if (outcome === 'valid') return startSession(req, res, { next, ...link })
    if (req.auth) return goOn(req, res, req.auth, next)
    if (outcome) return showPage(req, res, 401, NOTICES[outcome], next)
    return showPage(req, res, 200, noticeOf(state) ?? endNotice(req), next)
  })

  router.post('/sign-in', requireOwnPage, (req, res, next) => readFields(cutEndlessBody(req), res, next), limitAttempts,
    (req, res) => {
      const { token, next } = req.body ?? {}
      // A token that is pasted brings its line end along.
      const person = sessions.whoHolds(String(token ?? '').trim())
      if (person) return startSession(req, res, { next, person })
      return showPage(req, res, 401, NOTICES.wrongToken, next)
    })

  router.post('/sign-out', (req, res) => {
    res.append('Set-Cookie', sessions.close(req))
    if (req.headers['hx-request']) return res.set('HX-Redirect', '/sign-in?state=signed-out').status(204).end()
    return res.redirect(303, '/sign-in?state=signed-out')
  })

  return router

  /** It comes after the same-origin check, so that no foreign page can use up the attempts of its visitor. */
  function limitAttempts (req: express.Request, res: express.Response, next: express.NextFunction) {
    limiters.signIn(req, res,
      (refusal: unknown) => refusal ? showPage(req, res, 429, NOTICES.rateLimited, req.body?.next) : next())
  }

  function redeemCode (req: express.Request, code: string): ReturnType<typeof links.redeem> {
    // Browsers prefetch links, chat programs preview them and pages may load them, so only a visit counts.
    if (!isVisit(req))
      throw new DeckError('forbidden',
        'A sign-in link has to be visited: it cannot be fetched in advance, or by another page')
    if (!CODE_SHAPE.test(code)) return { outcome: 'unknown' }
    const link = links.redeem(code)
    return link.outcome === 'valid' && !sessions.isStill(link.person) ? { outcome: 'unknown' } : link
  }

  function startSession (req: express.Request, res: express.Response,
    { next, person, from = null }: { next: unknown, person?: Person, from?: string | null })
  {
    const actor = actorOf(person)
    const [role, apps, address] = [person?.role ?? 'admin', person?.apps ?? null, req.socket.remoteAddress ?? 'unknown']
    events.publish({ type: 'access.signed-in', actor,
      message: `${actor} (${roleText({ role, apps })}) from ${address}${
        from === null ? '' : `, by the dashboard of ${from}`
      }`,
      detail: { role, address, token: person?.token ?? null, ...(apps && { apps }),
        ...(from !== null && { deck: from }) } })
    res.append('Set-Cookie', sessions.open(req, person))
    return goOn(req, res, { name: null, role, apps, ...person }, next)
  }

  /** Whoever signs in over a page stays there. */
  function goOn (req: express.Request, res: express.Response,
    { name, role, apps = null }: Pick<Person, 'name' | 'role' | 'apps'>, next: unknown)
  {
    return req.headers['hx-request'] ? res.json({ name, role, apps }) : res.redirect(303, safePath(next))
  }

  function noticeOf (state: string | null) {
    if (state === 'signed-out') return NOTICES.signedOut
    return state === 'not-done' ? NOTICES.notDone : null
  }

  function endNotice (req: express.Request) {
    const why = sessions.whyEnded(req)
    return why === null ? null : { kind: 'info', text: why }
  }

  /** It names what the stranger has asked for, also where there is no such app, and nothing else of this site. */
  function showPage (req: express.Request, res: express.Response, status: number,
    notice: { kind: string, text: string } | null, next: unknown)
  {
    const path = safePath(next)
    if (status === 401) res.set('WWW-Authenticate', 'Bearer realm="clusterdeck"')
    return res.status(status).type('html').send(
      views.render('pages/sign-in', { notice, next: path, address: req.get('host') ?? '',
        app: /^\/apps\/([\w.-]{1,60})(?=$|\/)/.exec(path)?.[1] ?? null })
    )
  }
}

/** Refuses other pages, as signing a person in without their knowledge (login CSRF) is an attack, too. */
function requireOwnPage (req: express.Request, _res: express.Response, next: express.NextFunction) {
  checkSameOrigin(req, false)
  next()
}

function queryOf (req: express.Request) {
  const params = new URL(req.originalUrl, 'http://localhost').searchParams
  return { code: params.get('code'), next: params.get('next'), state: params.get('state') }
}

function isVisit ({ headers }: express.Request) {
  const isAhead = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'].some((name) =>
    /prefetch|prerender|preview/i.test(String(headers[name] ?? ''))
  )
  return !isAhead && (headers['sec-fetch-dest'] ?? 'document') === 'document'
}

/** Where to go after signing in: a page of ours, whatever the address says (open redirects). */
export function safePath (next: unknown): string {
  if (typeof next !== 'string' || !next.startsWith('/') || next.length > 2000) return '/'
  return attempt(() => {
    const url = new URL(next, 'http://own.invalid')
    const isPage = url.origin === 'http://own.invalid' && !/^\/(api|sign-|actions|socket\.io)/.test(url.pathname) &&
      !url.pathname.startsWith('//')
    return isPage ? `${url.pathname}${url.search}` : '/'
  }, '/')
}
