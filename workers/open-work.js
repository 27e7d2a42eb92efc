import { createIdleClock } from './idle-clock.js'
import { endConnection, endEventStream, endStream, endWebSocket, webSocketOf } from './endings.js'
import { createLongLived } from './long-lived.js'
import { createProgress } from './progress.js'

/** The code of HTTP/2 for a stream that is not wanted any longer: RFC 9113, section 7. */
const CANCEL = 8

/**
 * @typedef {import('./node-internals.d.ts').AnyServer} Server
 * @typedef {import('./node-internals.d.ts').AnySocket} Socket
 * @typedef {import('./node-internals.d.ts').AnyResponse} Response
 * @typedef {import('node:http2').ServerHttp2Stream} Stream
 * @typedef {{ request: Response, carrier: Socket } | { request: Stream, carrier: Stream }} Request  that is in progress, of HTTP/1 or HTTP/2
 */

/**
 * What a draining worker has open: requests, some of which are transfers, and long-lived connections. The app may turn one
 * into the other at any time, so it is looked at again and again.
 * @param {object} parts
 * @param {{ idleGraceMs: number, stalledMs: number }} parts.limits
 * @param {ReturnType<typeof import('./upgrades.js').createUpgrades>} parts.upgrades
 * @param {ReturnType<typeof import('./http2-sessions.js').createHttp2Sessions>} parts.http2Sessions
 * @param {Pick<import('./sessions.js').Sessions, 'has'>} parts.sessions
 * @param {() => number} [parts.now]
 */
export function createOpenWork ({ limits, upgrades, http2Sessions, sessions, now = () => performance.now() }) {
  /** Those of HTTP/1, as long as nothing on them is long-lived, and those that are about to begin TLS. @type {Map<Socket, { server: Server, since: number }>} */
  const brief = new Map()
  const longLived = createLongLived()
  const progress = createProgress({ ...limits, now })
  const idleClock = createIdleClock(limits.idleGraceMs)
  const cut = { requests: 0, connections: 0, stalled: 0 }

  return {
    longLived,
    /** What was ended in the middle of something. */
    cut,

    /** @param {Socket} socket @param {Server} server */
    add (socket, server) {
      brief.set(socket, { server, since: now() })
      // All that is to be known of it is known of the outer one.
      if (socket._parent) brief.delete(socket._parent)
    },

    /** @param {Socket} socket */
    remove (socket) {
      brief.delete(socket)
      longLived.remove(socket)
    },

    /** @returns {{ waiting: Request[], transfers: Request[] }} `waiting`: no byte of them moves */
    look () {
      for (const [socket, { server }] of brief) sortOut(socket, server)
      /** @type {{ waiting: Request[], transfers: Request[] }} */
      const found = { waiting: [], transfers: [] }
      for (const each of requestsInProgress()) found[progress.look(each.request, each.carrier) ? 'transfers' : 'waiting'].push(each)
      return found
    },

    cutIdle () {
      http2Sessions.closeIdle(idleClock)
      for (const [socket, { server }] of brief) {
        if (isOfHttp(socket, server) && idleClock.isOver(socket, { isAnswering: Boolean(socket._httpMessage), bytesRead: socket.bytesRead })) socket.destroy()
      }
    },

    /** Ends requests without an answer. @param {Request[]} requests @param {number} ageMs  those that are so old @param {{ areMoving?: boolean }} [how] */
    cutRequests (requests, ageMs, { areMoving = false } = {}) {
      for (const { request, carrier } of requests) {
        // A long poll that is cut ends its session for some clients.
        if (now() - progress.beganAt(request) < ageMs || ('req' in request && sessions.has(request.req))) continue
        cut.requests++
        if (!areMoving && progress.hasMoved(request)) cut.stalled++
        if ('session' in carrier) carrier.close(CANCEL)
        else cutConnection(carrier)
      }
    },

    /** Ends connections on which nothing is asked, or not completely. @param {number} ageMs  those that are so old */
    cutConnections (ageMs) {
      for (const [socket, { since }] of brief) if (!socket._httpMessage && now() - since >= ageMs) cutConnection(socket)
    }
  }

  /** @returns {Request[]} */
  function requestsInProgress () {
    /** @type {Request[]} */
    const requests = []
    for (const carrier of brief.keys()) if (carrier._httpMessage) requests.push({ request: carrier._httpMessage, carrier })
    for (const stream of http2Sessions.streams()) if (!keepIfEvents(stream)) requests.push({ request: stream, carrier: stream })
    return requests
  }

  function cutConnection (/** @type {Socket} */ socket) {
    cut.connections++
    socket.destroy()
  }

  function sortOut (/** @type {Socket} */ socket, /** @type {Server} */ server) {
    if (isOfHttp(socket, server)) return socket._httpMessage && isEventStream(socket._httpMessage) && keepEvents(socket, server, socket._httpMessage)
    if (isBelowTls(socket, server)) return
    brief.delete(socket)
    if (isOfSession(socket, server)) return
    if (upgrades.isWebSocket(socket) || webSocketOf(socket)) longLived.add(socket, 'webSockets', (code) => endWebSocket(socket, { code, isOpen: upgrades.isOpen(socket) }))
    else longLived.add(socket, 'connections', () => endConnection(socket))
  }

  /** Once its answer has ended, a connection is like any other of HTTP. @param {Socket} socket @param {Server} server @param {Response} response */
  function keepEvents (socket, server, response) {
    brief.delete(socket)
    longLived.add(socket, 'eventStreams', () => endEventStream(response))
    response.once('close', () => {
      longLived.remove(socket)
      if (!socket.destroyed) brief.set(socket, { server, since: now() })
    })
  }

  /** @returns {boolean} whether it sends events: it is long-lived from then on */
  function keepIfEvents (/** @type {Stream} */ stream) {
    if (longLived.has(stream)) return true
    if (!String(stream.sentHeaders?.['content-type']).startsWith('text/event-stream')) return false
    longLived.add(stream, 'eventStreams', () => endStream(stream))
    stream.once('close', () => longLived.remove(stream))
    return true
  }
}

/**
 * @param {Socket} socket @param {Server} server
 * @returns {boolean} whether neither HTTP nor TLS of its server reads it: it was upgraded, it is a tunnel, or its server is of another protocol
 */
export function isRaw (socket, server) {
  return !isOfHttp(socket, server) && !isBelowTls(socket, server) && !isOfSession(socket, server)
}

/** @param {Socket} socket @param {Server} server @returns {boolean} whether requests of HTTP/1 are read from it, or would be if it said anything */
export function isOfHttp (socket, server) {
  return Boolean(socket.parser || (server.closeIdleConnections && socket.bytesRead === 0))
}

/** @param {Socket} socket @param {Server} server */
function isBelowTls (socket, server) {
  return typeof server.setSecureContext === 'function' && !socket.encrypted
}

/** @param {Socket} socket @param {Server} server @returns {boolean} whether it is a session of HTTP/2 */
function isOfSession (socket, server) {
  return typeof server.updateSettings === 'function' && (!socket.encrypted || socket.alpnProtocol === 'h2')
}

/** @param {Response} response @returns {boolean} whether its app has begun to send events */
function isEventStream (response) {
  return /^content-type: *text\/event-stream/im.test(response._header ?? '')
}
