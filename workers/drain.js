import net from 'node:net'
import { clearInterval, setInterval } from 'node:timers'
import { createHttp2Sessions } from './http2-sessions.js'
import { createIdleClock } from './idle-clock.js'
import { createLastAnswers } from './last-answer.js'

/** A response that promised keep-alive before the drain may leave an idle connection at any time. */
const CUT_INTERVAL_MS = 100
/** After so many new connections the worker forgets those that the app has passed on. */
const SWEEP_EVERY = 1024

/**
 * @typedef {import('./node-internals.d.ts').AnyServer} Server
 * @typedef {import('./node-internals.d.ts').AnySocket} Socket
 * @typedef {import('./node-internals.d.ts').DatagramHandle} DatagramHandle
 */

/**
 * Makes this worker a lame duck: it accepts nothing new, answers what it has, says `Connection: close` with every
 * answer and cuts idle connections only after a grace period, because a client may be sending just then.
 * Costs nothing per request until the drain begins.
 * @param {object} options
 * @param {import('./requests.js').Requests} options.requests
 * @param {() => void} options.onStart
 * @param {() => void} options.onDrained called once, when no connection is left
 */
export function createDrain ({ requests, onStart, onDrained }) {
  /** @type {Set<Server>} those that listen, or are about to */
  const servers = new Set()
  /** @type {WeakSet<Server>} a server may listen again after it was closed */
  const watched = new WeakSet()
  /** @type {Map<Socket, Server>} the server of each open connection */
  const connections = new Map()
  const http2Sessions = createHttp2Sessions()
  const lastAnswers = createLastAnswers({ requests })
  /** @type {Set<DatagramHandle>} handles of UDP sockets that other workers have too */
  const datagrams = new Set()
  /** @type {'serving' | 'draining' | 'drained'} */
  let state = 'serving'
  /** @type {NodeJS.Timeout | undefined} */
  let cutting

  return {
    watch: watchServer,
    watchDatagrams,
    start: beginDrain,
    letGo,
    servers: () => servers,
    countConnections,
    canBeAsked,
    isDraining: () => state !== 'serving',
    isDrained: () => state === 'drained'
  }

  /** @param {Server} server */
  function watchServer (server) {
    servers.add(server)
    if (watched.has(server)) return
    watched.add(server)
    server.on('connection', (socket) => keepConnection(server, socket))
    // The request of a TLS connection is kept at the outer socket.
    if (typeof server.setSecureContext === 'function') server.on('secureConnection', (socket) => keepConnection(server, socket))
    if (typeof server.updateSettings === 'function') http2Sessions.watch(server)
    server.on('close', () => servers.delete(server))
  }

  /** @param {DatagramHandle} handle */
  function watchDatagrams (handle) {
    datagrams.add(handle)
  }

  function keepConnection (/** @type {Server} */ server, /** @type {Socket} */ socket) {
    connections.set(socket, server)
    if (connections.size % SWEEP_EVERY === 0) forgetPassedOn()
    socket.once('close', () => {
      connections.delete(socket)
      finishIfEmpty()
    })
  }

  /** A connection that the app has sent to another process belongs to that one now; Node reports nothing of it. */
  function forgetPassedOn () {
    for (const socket of connections.keys()) if (!socket._handle && !socket.destroyed) connections.delete(socket)
  }

  /** @returns {number} how many are open. One of TLS has two sockets here, of which the outer one is not counted */
  function countConnections () {
    forgetPassedOn()
    let count = 0
    for (const socket of connections.keys()) if (!socket.encrypted) count++
    return count
  }

  /** @returns {boolean} whether there is a connection on which another request may come */
  function canBeAsked () {
    forgetPassedOn()
    return http2Sessions.count() > 0 || [...connections].some(([socket, server]) => isOfHttp(socket, server))
  }

  /** @param {{ idleGraceMs: number }} message */
  function beginDrain ({ idleGraceMs }) {
    if (state !== 'serving') return
    state = 'draining'
    onStart()
    // http.Server.close() would cut idle keep-alive connections at once.
    for (const server of servers) {
      net.Server.prototype.close.call(server)
      closeAgainWithoutError(server)
    }
    lastAnswers.begin(new Set([...servers, ...connections.values()]))
    http2Sessions.leave()
    // EBADF: it was closed meanwhile.
    for (const handle of datagrams) handle.recvStop()
    const clock = createIdleClock(idleGraceMs)
    // The check follows one turn after the timer: what came while this process had no CPU is read in between.
    cutting = setInterval(() => setImmediate(cutIdle, clock), CUT_INTERVAL_MS)
    forgetPassedOn()
    finishIfEmpty()
  }

  /** An app that closes what it has at SIGTERM ends by itself, as it would without a master: nothing here keeps it running. */
  function letGo () {
    cutting?.unref()
    process.channel?.unref()
  }

  /** @param {ReturnType<typeof createIdleClock>} clock */
  function cutIdle (clock) {
    http2Sessions.closeIdle(clock)
    forgetPassedOn()
    for (const [socket, server] of connections) {
      if (isOfHttp(socket, server) && clock.isOver(socket, { isAnswering: Boolean(socket._httpMessage), bytesRead: socket.bytesRead })) socket.destroy()
    }
    finishIfEmpty()
  }

  function finishIfEmpty () {
    if (state !== 'draining' || connections.size > 0) return
    state = 'drained'
    clearInterval(cutting)
    onDrained()
  }
}

/**
 * @param {Socket} socket @param {Server} server
 * @returns {boolean} whether requests are read from it, or would be if it said anything. The one below TLS and one
 *   that was upgraded have no parser, and are never idle
 */
function isOfHttp (socket, server) {
  return Boolean(socket.parser || (server.closeIdleConnections && socket.bytesRead === 0))
}

/**
 * An app's own shutdown closes its servers too, and must not be told that they were not running.
 * @param {Server} server
 */
function closeAgainWithoutError (server) {
  const { close } = server
  server.close = function (callback) {
    server.close = close
    return close.call(server, callback && ((error) => callback(isNotRunning(error) ? undefined : error)))
  }
}

/** @param {(Error & { code?: string }) | undefined} error */
function isNotRunning (error) {
  return error?.code === 'ERR_SERVER_NOT_RUNNING'
}
