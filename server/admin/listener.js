import { once, setMaxListeners } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { cutEndlessBody, mayTakeTime } from '../api/body.js'
import { holderOf } from '../api/roles.js'
import { DeckError } from '../errors.js'
import { expectOwner } from '../system/connection-owner.js'
import { createConnections, roomWithin } from './connections.js'
import { createLinks } from './sign-in-links.js'

/** Each is worth a turn of its own: the workers ask for their sockets at the same time. */
const PACKAGES = ['express', 'socket.io', 'helmet', 'express-rate-limit', 'eta']

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
/** Of connections that say nothing before they are encrypted. */
const TLS_OPTIONS = Object.freeze({ handshakeTimeout: 5_000, minVersion: /** @type {const} */ ('TLSv1.2') })
/** Who comes while this many wait to be let in is heard of seconds later, if at all: many may come at once. */
const BACKLOG = 4096
const CLOSE_GRACE_MS = 1_000
const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT'
/** Of what is no HTTP, or none that is taken here. @type {Readonly<Record<string, string>>} */
const STATUS_OF = Object.freeze({ [TOO_SLOW]: '408 Request Timeout', HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large', HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large' })
const DEFAULT_SESSION_TTL_MS = 12 * 60 * 60_000

const SILENT_LOG = { error () {}, warn () {} }
const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

/** What is behind the port takes longer to load than a worker takes to start. */
export async function loadSite () {
  for (const name of PACKAGES) {
    await nextTurn()
    await import(name)
  }
  return await import('./site.js')
}

/**
 * The admin port: bound at once, so that a start fails with it; what is behind it is loaded later, and who comes before that waits.
 * @param {object} parts
 * @param {import('../deck.js').Deck} parts.deck
 * @param {import('../../db/history.js').History} parts.history
 * @param {string} parts.token
 * @param {string} [parts.host]
 * @param {number} [parts.port]  0: any free one
 * @param {number} [parts.portsToTry]  this one and the next ones, where it is in use
 * @param {any} [parts.socket]  a raw handle that is bound to them already
 * @param {readonly string[]} [parts.allowedHosts]
 * @param {string} [parts.basePath]
 * @param {string} [parts.publicUrl]
 * @param {import('./certificate.js').Certificate | null} [parts.certificate]
 * @param {number} [parts.sessionTtlMs]
 * @param {() => number} [parts.now]
 * @param {import('./app.js').Log} [parts.log]
 * @param {import('./app.js').AppParts['timers']} [parts.timers]
 * @param {(size: number) => Buffer} [parts.randomBytes]
 * @param {Partial<import('./app.js').Limits>} [parts.limits]
 * @param {http.ServerOptions} [parts.serverOptions]
 * @param {import('./connections.js').Room} [parts.maxConnections]
 * @param {typeof loadSite} [parts.load]
 * @param {Promise<unknown>} [parts.loadAfter] unless somebody asks before
 */
export function createAdmin ({
  deck, history, token, host = '127.0.0.1', port = 0, portsToTry = 1, socket, allowedHosts = [], basePath = '', publicUrl: configuredUrl, certificate = null, sessionTtlMs = DEFAULT_SESSION_TTL_MS,
  now = Date.now, log = SILENT_LOG, timers = REAL_TIMERS, randomBytes, limits = {}, serverOptions = {}, maxConnections = roomWithin(Infinity), load = loadSite, loadAfter = Promise.resolve()
}) {
  const publicUrl = configuredUrl?.replace(/\/+$/, '') ?? null
  const options = { ...SERVER_OPTIONS, ...serverOptions }
  const outer = certificate ? https.createServer({ ...TLS_OPTIONS, ...options, ...certificate.pair }) : http.createServer(options)
  const connections = createConnections(maxConnections)
  const rawOf = followConnections(outer, (socket) => {
    connections.admit(socket)
    expectOwner(socket)
  })
  const links = createLinks({ now, randomBytes })
  const closing = new AbortController()
  const wanted = new AbortController()
  setMaxListeners(0, closing.signal)
  /** @type {Set<import('node:stream').Duplex>} the server loses sight of a socket that was upgraded */
  const upgraded = new Set()
  /** Those with a request that is not answered yet. @type {WeakSet<import('node:net').Socket>} */
  const asking = new WeakSet()
  /** @type {{ url: string, publicUrl: string, loaded: Promise<void> } | null} */
  let open = null
  /** @type {import('./site.js').Site | null} */
  let site = null
  /** @type {Promise<void> | null} */
  let closed = null

  return {
    /**
     * @returns {Promise<{ url: string, publicUrl: string, host: string, port: number, socket: any, loaded: Promise<void> }>} `url`: on this machine; `publicUrl`: for people; `socket`: the raw handle;
     *   `loaded`: resolves once what is behind the port answers
     * @throws {DeckError} `port-in-use`, `listen-failed`
     */
    async listen () {
      const realPort = await bindOne(outer, { host, port, socket }, portsToTry)
      outer.on('error', (error) => log.error({ err: error }, 'the admin port failed to accept a connection'))
      const url = `${certificate ? 'https' : 'http'}://${reachableName(host)}:${realPort}`
      certificate?.renewFor(/** @type {https.Server} */ (outer))
      open = { url, publicUrl: publicUrl ?? url + basePath, loaded: makeSite(realPort) }
      outer.on('request', answer)
      outer.on('clientError', refuse)
      outer.on('upgrade', upgrade)
      return { url, publicUrl: open.publicUrl, host, port: realPort, socket: /** @type {any} */ (outer)._handle, loaded: open.loaded }
    },

    /** @returns {string} a link that signs in whoever opens it first */
    signInLink () {
      if (!open) throw new DeckError('listen-failed', 'The admin port is not open yet')
      return `${open.publicUrl}/sign-in?code=${links.create().code}`
    },

    /** Signs everybody out, on this port and in the history. */
    revokeSessions () { site?.revokeSessions() },

    /**
     * What another deck is asked to do here, for somebody who is signed in there.
     * @param {import('./in-process-transport.js').InProcessRequest} order @param {import('./guard.js').Auth} auth @param {{ maxBytes: number, signal: AbortSignal }} limits
     * @returns {Promise<import('./in-process-transport.js').Answer>}
     * @throws {DeckError} stopping, payload-too-large, and what `signal` is aborted with
     */
    async ask (order, auth, limits) {
      wanted.abort()
      await open?.loaded
      if (!site || closing.signal.aborted) throw new DeckError('stopping', 'The admin page of this master is not there')
      return site.ask(order, auth, limits)
    },

    /** Lets answers end that are on their way, then cuts the rest. Closing twice is fine. */
    close () {
      closed ??= end()
      return closed
    }
  }

  async function end () {
    if (!open) return
    closing.abort()
    wanted.abort()
    certificate?.close()
    const timer = timers.setTimeout(cutAll, CLOSE_GRACE_MS)
    const answered = new Promise((resolve) => outer.close(resolve))
    await open.loaded
    await site?.close()
    await answered
    timers.clearTimeout(timer)
  }

  /** @param {number} realPort */
  async function makeSite (realPort) {
    await Promise.race([loadAfter, once(wanted.signal, 'abort')])
    if (closing.signal.aborted) return
    try {
      const { createSite } = await load()
      site = createSite({ deck, history, token, host, port: realPort, allowedHosts, basePath, publicUrl, hasTls: certificate !== null, sessionTtlMs, links, closing: closing.signal, now, log, timers, randomBytes, limits })
    } catch (error) {
      // The workers do without it.
      log.error({ err: error }, 'the admin page could not be loaded')
    }
  }

  /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
  async function answer (req, res) {
    const { socket } = req
    // No browser and no tool of today asks for more before it is answered; node would begin with all of that in one turn.
    if (asking.has(socket)) return socket.destroy()
    asking.add(socket)
    res.once('prefinish', () => {
      // At once: what nobody has begun to read when the answer is sent, node reads to its end.
      if (!req.complete) cutEndlessBody(req).resume().read(0)
    })
    res.once('finish', () => {
      asking.delete(socket)
      endIfClosing(socket)
    })
    if (!site) {
      // Nobody can say yet who it is; but silent it is not.
      connections.heard(rawOf(req.socket), '')
      wanted.abort()
      await open?.loaded
    }
    if (site) site.request(req, res)
    else res.writeHead(503).end()
    connections.heard(rawOf(req.socket), req.auth ? holderOf(req.auth) : null)
  }

  /** As node does, but for whoever may take longer. @param {NodeJS.ErrnoException} error @param {import('node:stream').Duplex} socket */
  function refuse (error, socket) {
    if (error.code === TOO_SLOW && mayTakeTime(socket)) return
    const isBegun = /** @type {any} */ (socket)._httpMessage?.headersSent
    if (socket.writable && !isBegun) socket.write(`HTTP/1.1 ${STATUS_OF[String(error.code)] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`)
    socket.destroy(error)
  }

  /** @param {http.IncomingMessage} req @param {import('node:stream').Duplex} socket @param {Buffer} head */
  async function upgrade (req, socket, head) {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    // ECONNRESET: until the site has it, nobody else listens.
    const ignore = () => {}
    socket.on('error', ignore)
    wanted.abort()
    if (!site) await open?.loaded
    socket.off('error', ignore)
    if (site) site.upgrade(req, socket, head)
    else socket.destroy()
    connections.heard(rawOf(/** @type {import('node:net').Socket} */ (socket)), req.auth ? holderOf(req.auth) : null)
  }

  // close() ends idle connections once, when it is called; those that became idle since would keep it waiting.
  function endIfClosing (/** @type {import('node:net').Socket} */ socket) {
    if (closing.signal.aborted) socket.end()
  }

  function cutAll () {
    outer.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }
}

/**
 * Where a connection is encrypted, what is asked comes over another socket than the one that was accepted.
 * @param {http.Server} server @param {(socket: import('node:net').Socket) => void} admit
 * @returns {(socket: import('node:net').Socket) => import('node:net').Socket} the one that was accepted
 */
function followConnections (server, admit) {
  /** @type {Map<string, import('node:net').Socket>} by the other end */
  const raw = new Map()
  const endOf = (/** @type {import('node:net').Socket} */ { remoteAddress, remotePort }) => `${remoteAddress} ${remotePort}`
  server.on('connection', (socket) => {
    const end = endOf(socket)
    raw.set(end, socket)
    socket.once('close', () => { if (raw.get(end) === socket) raw.delete(end) })
    admit(socket)
  })
  return (socket) => raw.get(endOf(socket)) ?? socket
}

/** @param {http.Server} server @param {{ host: string, port: number, socket?: any }} place @param {number} portsToTry @returns {Promise<number>} the real port */
async function bindOne (server, place, portsToTry) {
  for (let n = 0; n < portsToTry - 1; n++) {
    try {
      return await bind(server, { ...place, port: place.port + n })
    } catch (error) {
      if (!(error instanceof DeckError) || error.code !== 'port-in-use') throw error
    }
  }
  return await bind(server, { ...place, port: place.port + portsToTry - 1 })
}

/** @param {http.Server} server @param {{ host: string, port: number, socket?: any }} place @returns {Promise<number>} the real port */
function bind (server, { host, port, socket }) {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(bindError(/** @type {NodeJS.ErrnoException} */ (cause), { host, port })))
    const onListening = () => {
      server.removeAllListeners('error')
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
    }
    if (socket) server.listen(socket, BACKLOG, onListening)
    else server.listen({ host, port, exclusive: true, backlog: BACKLOG }, onListening)
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
