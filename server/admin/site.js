import http from 'node:http'
import { addBaseToHeaders, withoutBase } from '../api/base-path.js'
import { refuseUpgrade, sendProblem, toDeckError } from '../problem.js'
import { createSchemeOf } from '../api/scheme.js'
import { createTurns } from '../api/turn.js'
import { createViews } from '../dashboard/views.js'
import { createApp, LIMITS } from './app.js'
import { createAudit } from './audit.js'
import { createGuard, securityHeaders } from './guard.js'
import { createInProcessTransport } from './in-process-transport.js'
import { attachLive } from './live.js'
import { createSessions } from './sessions.js'
import { createAnonymousLimiter } from './anonymous-limiter.js'
import { createTokens } from './tokens.js'

/** @typedef {ReturnType<typeof createSite>} Site */

const SECURITY_HEADERS = new Map(Object.entries(securityHeaders()))

/**
 * What stands behind the admin port: the guard looks at everything first; the inner server never listens, and express
 * and engine.io attach to it. So whatever attaches, and in whatever order, comes after the guard.
 * @param {object} parts
 * @param {import('../deck.js').Deck} parts.deck
 * @param {import('../../db/history.js').History} parts.history
 * @param {string} parts.token
 * @param {string} parts.host
 * @param {number} parts.port  the real one: it names the cookie, since cookies ignore ports
 * @param {readonly string[]} parts.allowedHosts
 * @param {string} parts.basePath
 * @param {string | null} parts.publicUrl
 * @param {boolean} parts.hasTls
 * @param {number} parts.sessionTtlMs
 * @param {ReturnType<typeof import('./sign-in-links.js').createLinks>} parts.links
 * @param {AbortSignal} parts.closing
 * @param {() => number} parts.now
 * @param {import('../system/log.js').Log} parts.log
 * @param {import('./app.js').AppParts['timers']} parts.timers
 * @param {(size: number) => Buffer} [parts.randomBytes]
 * @param {Partial<import('./app.js').Limits>} parts.limits  others than usual
 */
export function createSite ({
  deck,
  history,
  token,
  host,
  port,
  allowedHosts,
  basePath,
  publicUrl,
  hasTls,
  sessionTtlMs,
  links,
  closing,
  now,
  log,
  timers,
  randomBytes,
  limits: wanted
}) {
  const inner = http.createServer()
  const limits = { ...LIMITS, ...wanted }
  const schemeOf = createSchemeOf(publicUrl)
  // The name that a caller used is one that the caller can reach, and the guard has checked it.
  const urlFor = (/** @type {http.IncomingMessage} */ req) => publicUrl ?? `${schemeOf(req)}://${req.headers.host}${basePath}`
  const tokens = createTokens({ store: history.tokens, owner: token, now, randomBytes })
  const sessions = createSessions({
    store: history.sessions,
    tokens,
    token,
    ttlMs: sessionTtlMs,
    cookieName: `clusterdeck_${port}`,
    cookiePath: basePath || '/',
    schemeOf,
    now,
    randomBytes,
    log
  })
  const { authenticate } = sessions
  const { version, nodeVersion } = deck.snapshot().master
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software, basePath })
  inner.on('request', createApp({ deck, history, sessions, tokens, links, urlFor, basePath, views, closing, now, timers, limits, log }))
  const live = attachLive({ httpServer: inner, deck, history, views, software, basePath, authenticate, now, log })
  const guard = createGuard({ authenticate, host, port, allowedHosts, publicUrl, scheme: hasTls ? 'https' : 'http' })
  const anonymousLimiter = createAnonymousLimiter({ windowMs: limits.windowMs, limit: limits.strangerRequests, basePath, now })
  const audit = createAudit({ events: deck.events, timers })
  const nextTurn = createTurns()
  const inside = createInProcessTransport((auth, req, res) => {
    req.auth = auth
    beginRequest(req, res)
    inner.emit('request', req, res)
  })
  /** Requests of signed-in senders that are not answered yet. @type {Map<http.IncomingMessage, http.ServerResponse>} */
  const answering = new Map()
  tokens.onRevoked(endOutsiders)

  return {
    /** Signs everybody out, on this port and in the history. */
    revokeSessions: sessions.revokeAll,

    /** Ends streams and live pages. */
    close () {
      inside.close()
      audit.close()
      live.close()
    },

    /** Answers a request of another deck, for a person who is signed in there. */
    ask: inside.ask,

    /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
    request (req, res) {
      req.url = withoutBase(basePath, String(req.url))
      addBaseToHeaders(basePath, res)
      try {
        req.auth = guard.admitRequest(req)
        const refusal = req.auth ? null : anonymousLimiter.refuse(req)
        if (refusal) return refuseRequest(req, res, refusal)
        beginRequest(req, res)
        inner.emit('request', req, res)
      } catch (error) {
        if (req.auth === undefined) beginRequest(req, res)
        reportInternal(error)
        sendProblem(res, error)
      }
    },

    /** @param {http.IncomingMessage} req @param {import('node:stream').Duplex} socket @param {Buffer} head */
    upgrade (req, socket, head) {
      req.url = withoutBase(basePath, String(req.url))
      try {
        req.auth = guard.admitUpgrade(req)
        inner.emit('upgrade', req, socket, head)
      } catch (error) {
        reportInternal(error)
        refuseUpgrade(socket, error)
      }
    }
  }

  /** @param {http.IncomingMessage} req @param {http.ServerResponse} res @param {import('./anonymous-limiter.js').Refusal} refusal */
  async function refuseRequest (req, res, { status, headers, body }) {
    audit.watch(req, res)
    // Each turn of the event loop accepts one new connection, so many refusals in one turn would delay others.
    await nextTurn()
    res.writeHead(status, headers).end(body)
  }

  /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
  function beginRequest (req, res) {
    res.setHeaders(SECURITY_HEADERS)
    audit.watch(req, res)
    // A sender from another deck is signed in there, not here.
    if (req.auth && req.auth.via !== 'fleet') followRequest(req, res)
  }

  /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
  function followRequest (req, res) {
    answering.set(req, res)
    res.once('close', () => answering.delete(req))
  }

  /** Cuts streams, live pages and waiting calls of senders who are no longer signed in. */
  function endOutsiders () {
    for (const [req, res] of answering) if (!authenticate(req)) res.destroy()
    live.endOutsiders()
  }

  // Nothing that a request does may end the master.
  function reportInternal (/** @type {unknown} */ error) {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
  }
}
