import http from 'node:http'
import { refuseUpgrade, sendProblem, toDeckError } from '../api/problem.js'
import { createViews } from '../dashboard/views.js'
import { createApp, LIMITS } from './app.js'
import { createAudit } from './audit.js'
import { createGuard, setSecurityHeaders } from './guard.js'
import { attachLive } from './live.js'
import { createSessions } from './sessions.js'
import { createTokens } from './tokens.js'

/** @typedef {ReturnType<typeof createSite>} Site */

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
 * @param {number} parts.sessionTtlMs
 * @param {ReturnType<typeof import('./sign-in-links.js').createLinks>} parts.links
 * @param {AbortSignal} parts.closing
 * @param {() => number} parts.now
 * @param {import('./app.js').Log} parts.log
 * @param {import('./app.js').AppParts['timers']} parts.timers
 * @param {(size: number) => Buffer} [parts.randomBytes]
 * @param {Partial<import('./app.js').Limits>} parts.limits
 */
export function createSite ({ deck, history, token, host, port, allowedHosts, sessionTtlMs, links, closing, now, log, timers, randomBytes, limits }) {
  const inner = http.createServer()
  const tokens = createTokens({ store: history.tokens, now, randomBytes })
  const sessions = createSessions({ store: history.sessions, tokens, token, ttlMs: sessionTtlMs, cookieName: `clusterdeck_${port}`, now, randomBytes, log })
  const { authenticate } = sessions
  const { version, nodeVersion } = deck.snapshot().master
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software })
  inner.on('request', createApp({ deck, history, sessions, tokens, links, views, closing, now, timers, limits: { ...LIMITS, ...limits }, log }))
  const live = attachLive({ httpServer: inner, deck, history, views, software, authenticate, now, log })
  const guard = createGuard({ authenticate, host, port, allowedHosts })
  const audit = createAudit({ events: deck.events, timers })
  /** What is being answered to those who are signed in. @type {Map<http.IncomingMessage, http.ServerResponse>} */
  const answering = new Map()
  tokens.onRevoked(endOutsiders)

  return {
    /** Signs everybody out, on this port and in the history. */
    revokeSessions: sessions.revokeAll,

    /** Ends what is pushed. */
    close () {
      audit.close()
      live.close()
    },

    /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
    request (req, res) {
      setSecurityHeaders(req, res)
      audit.watch(req, res)
      try {
        req.auth = guard.admitRequest(req)
        if (req.auth) follow(req, res)
        inner.emit('request', req, res)
      } catch (error) {
        reportInternal(error)
        sendProblem(res, error)
      }
    },

    /** @param {http.IncomingMessage} req @param {import('node:stream').Duplex} socket @param {Buffer} head */
    upgrade (req, socket, head) {
      try {
        req.auth = guard.admitUpgrade(req)
        inner.emit('upgrade', req, socket, head)
      } catch (error) {
        reportInternal(error)
        refuseUpgrade(socket, error)
      }
    }
  }

  /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
  function follow (req, res) {
    answering.set(req, res)
    res.once('close', () => answering.delete(req))
  }

  /** Whoever is signed in no longer gets nothing more: no stream, no page that is live, no call that waits. */
  function endOutsiders () {
    for (const [req, res] of answering) if (!authenticate(req)) res.destroy()
    live.endOutsiders()
  }

  // Nothing that a request does may end the master.
  function reportInternal (/** @type {unknown} */ error) {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
  }
}
