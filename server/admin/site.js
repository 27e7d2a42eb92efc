import http from 'node:http'
import { refuseUpgrade, sendProblem, toDeckError } from '../api/problem.js'
import { createViews } from '../dashboard/views.js'
import { createApp, LIMITS } from './app.js'
import { createGuard, setSecurityHeaders } from './guard.js'
import { attachLive } from './live.js'
import { createSessions } from './sessions.js'

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
  const sessions = createSessions({ store: history.sessions, token, ttlMs: sessionTtlMs, cookieName: `clusterdeck_${port}`, now, randomBytes, log })
  const { authenticate } = sessions
  const { version, nodeVersion } = deck.snapshot().master
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software })
  inner.on('request', createApp({ deck, history, sessions, links, views, closing, now, timers, limits: { ...LIMITS, ...limits }, log }))
  const live = attachLive({ httpServer: inner, deck, history, views, software, authenticate, now, log })
  const guard = createGuard({ authenticate, host, port, allowedHosts })

  return {
    /** Signs everybody out, on this port and in the history. */
    revokeSessions: sessions.revokeAll,

    /** Ends what is pushed. */
    close: live.close,

    /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
    request (req, res) {
      setSecurityHeaders(req, res)
      try {
        req.auth = guard.admitRequest(req)
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

  // Nothing that a request does may end the master.
  function reportInternal (/** @type {unknown} */ error) {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
  }
}
