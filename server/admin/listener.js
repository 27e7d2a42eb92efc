import { setMaxListeners } from 'node:events'
import http from 'node:http'
import { DeckError } from '../errors.js'
import { createApp, LIMITS } from './app.js'
import { createGuard, setSecurityHeaders } from './guard.js'
import { createLinks } from './sign-in-links.js'
import { attachLive } from './live.js'
import { refuseUpgrade, sendProblem, toDeckError } from '../api/problem.js'
import { createSessions } from './sessions.js'
import { createViews } from '../dashboard/views.js'

/**
 * The admin port. Two servers: the outer one owns the socket and lets the guard look at everything; the inner one never
 * listens, and express and engine.io attach to it. So whatever attaches, and in whatever order, comes after the guard.
 */

/**
 * Nobody holds a connection of this port by sending slowly, or by sending nothing.
 * @type {Readonly<http.ServerOptions>}
 */
const SERVER_OPTIONS = Object.freeze({
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16 * 1024
})
const MAX_CONNECTIONS = 512
const CLOSE_GRACE_MS = 1_000
// The link that is printed at start may be clicked in tomorrow's terminal; it is still gone once used.
const START_LINK_TTL_MS = 24 * 60 * 60_000
const DEFAULT_SESSION_TTL_MS = 12 * 60 * 60_000

const SILENT_LOG = { error () {}, warn () {} }
const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

/**
 * @param {object} parts
 * @param {import('../deck.js').Deck} parts.deck
 * @param {import('../../db/history.js').History} parts.history
 * @param {string} parts.token
 * @param {string} [parts.host]
 * @param {number} [parts.port]  0: any free one
 * @param {any} [parts.socket]  a raw handle that is bound to them already
 * @param {readonly string[]} [parts.allowedHosts]
 * @param {number} [parts.sessionTtlMs]
 * @param {() => number} [parts.now]
 * @param {import('./app.js').Log} [parts.log]
 * @param {import('./app.js').AppParts['timers']} [parts.timers]
 * @param {(size: number) => Buffer} [parts.randomBytes]
 * @param {Partial<import('./app.js').Limits>} [parts.limits]
 * @param {http.ServerOptions} [parts.serverOptions]
 * @param {number} [parts.maxConnections]
 */
export function createAdmin ({
  deck, history, token, host = '127.0.0.1', port = 0, socket, allowedHosts = [], sessionTtlMs = DEFAULT_SESSION_TTL_MS,
  now = Date.now, log = SILENT_LOG, timers = REAL_TIMERS, randomBytes, limits = {}, serverOptions = {}, maxConnections = MAX_CONNECTIONS
}) {
  const outer = http.createServer({ ...SERVER_OPTIONS, ...serverOptions })
  outer.maxConnections = maxConnections
  const inner = http.createServer()
  const links = createLinks({ now, randomBytes })
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  /** @type {Set<import('node:stream').Duplex>} the server loses sight of a socket that was upgraded */
  const upgraded = new Set()
  /** @type {{ url: string, sessions: import('./sessions.js').Sessions, live: { close: () => unknown } } | null} */
  let running = null
  /** @type {Promise<void> | null} */
  let closed = null

  return {
    /**
     * @returns {Promise<{ url: string, host: string, port: number, socket: any }>} `socket`: the raw handle
     * @throws {DeckError} `port-in-use`, `listen-failed`
     */
    async listen () {
      const realPort = await bind(outer, { host, port, socket })
      outer.on('error', (error) => log.error({ err: error }, 'the admin port failed to accept a connection'))
      const url = `http://${reachableName(host)}:${realPort}`
      running = { url, ...assemble(realPort) }
      return { url, host, port: realPort, socket: /** @type {any} */ (outer)._handle }
    },

    /** @returns {string} a link that signs in whoever opens it first */
    signInLink () {
      if (!running) throw new DeckError('listen-failed', 'The admin port is not open yet')
      return `${running.url}/sign-in?code=${links.create(START_LINK_TTL_MS).code}`
    },

    /** Signs everybody out, on this port and in the history. */
    revokeSessions () { running?.sessions.revokeAll() },

    /** Lets answers end that are on their way, then cuts the rest. Closing twice is fine. */
    close () {
      closed ??= end()
      return closed
    }
  }

  async function end () {
    if (!running) return
    closing.abort()
    const timer = timers.setTimeout(cutAll, CLOSE_GRACE_MS)
    const answered = new Promise((resolve) => outer.close(resolve))
    await running.live.close()
    await answered
    timers.clearTimeout(timer)
  }

  /** @param {number} realPort  names the cookie, since cookies ignore ports */
  function assemble (realPort) {
    const sessions = createSessions({
      store: history.sessions, token, ttlMs: sessionTtlMs, cookieName: `clusterdeck_${realPort}`, now, randomBytes, log
    })
    const { authenticate } = sessions
    const { version, nodeVersion } = deck.snapshot().master
    const software = `clusterdeck ${version} on Node ${nodeVersion}`
    const views = createViews({ software })
    const parts = { deck, history, sessions, links, views, closing: closing.signal, now, timers, limits: { ...LIMITS, ...limits }, log }
    inner.on('request', createApp(parts))
    const live = attachLive({ httpServer: inner, deck, history, views, software, authenticate, now, log })
    stand(createGuard({ authenticate, host, port: realPort, allowedHosts }))
    return { sessions, live }
  }

  /** @param {ReturnType<typeof createGuard>} guard */
  function stand (guard) {
    outer.on('request', (req, res) => {
      setSecurityHeaders(req, res)
      res.once('finish', () => endIfClosing(req.socket))
      try {
        req.auth = guard.admitRequest(req)
        inner.emit('request', req, res)
      } catch (error) {
        reportInternal(error)
        sendProblem(res, error)
      }
    })
    outer.on('upgrade', (req, socket, head) => {
      upgraded.add(socket)
      socket.once('close', () => upgraded.delete(socket))
      try {
        req.auth = guard.admitUpgrade(req)
        inner.emit('upgrade', req, socket, head)
      } catch (error) {
        reportInternal(error)
        refuseUpgrade(socket, error)
      }
    })
  }

  // close() ends idle connections once, when it is called; those that became idle since would keep it waiting.
  function endIfClosing (/** @type {import('node:net').Socket} */ socket) {
    if (closing.signal.aborted) socket.end()
  }

  // Nothing that a request does may end the master.
  function reportInternal (/** @type {unknown} */ error) {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
  }

  function cutAll () {
    outer.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }
}

/** @param {http.Server} server @param {{ host: string, port: number, socket?: any }} place @returns {Promise<number>} the real port */
function bind (server, { host, port, socket }) {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(bindError(/** @type {NodeJS.ErrnoException} */ (cause), { host, port })))
    server.listen(socket ?? { host, port, exclusive: true }, () => {
      server.removeAllListeners('error')
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
    })
  })
}

/** @param {NodeJS.ErrnoException} cause @param {{ host: string, port: number }} place */
function bindError (cause, { host, port }) {
  if (cause.code === 'EADDRINUSE') {
    return new DeckError('port-in-use', `admin.port: expected a free port (option --admin-port, 0 takes any) on ${host}, but ${port} is in use`, { cause })
  }
  return new DeckError('listen-failed', `admin.host: expected an address to listen on, received ${host}:${port} (${cause.code})`, { cause })
}

/** An address to bind to is not always one to visit. */
function reachableName (/** @type {string} */ host) {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
