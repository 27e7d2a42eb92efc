import { createIdleClock } from './idle-clock.ts'
import { endConnection, endEventStream, endStream, endWebSocket, webSocketOf } from './endings.ts'
import { createLongLived } from './long-lived.ts'
import { createProgress } from './progress.ts'
import type { ServerHttp2Stream as Stream } from 'node:http2'
import type { AnyResponse as Response, AnyServer as Server, AnySocket as Socket } from './node-internals.d.ts'
import type { createUpgrades } from './upgrades.ts'
import type { createHttp2Sessions } from './http2-sessions.ts'
import type { Sessions } from './sessions.ts'

/** The code of HTTP/2 for a stream that is not wanted any longer: RFC 9113, section 7. */
const CANCEL = 8

/** that is in progress, of HTTP/1 or HTTP/2 */
type Request = { request: Response, carrier: Socket } | { request: Stream, carrier: Stream }

/**
 * What a draining worker has open: requests, some of which are transfers, and long-lived connections. The app may turn
 * one into the other at any time, so it is looked at again and again.
 */
export function createOpenWork (
  { limits, upgrades, http2Sessions, sessions, now = () => performance.now() }: {
    limits: { idleGraceMs: number, stalledMs: number },
    upgrades: ReturnType<typeof createUpgrades>,
    http2Sessions: ReturnType<typeof createHttp2Sessions>,
    sessions: Pick<Sessions, 'has'>,
    now?: () => number
  }
) {
  /** Those of HTTP/1, as long as nothing on them is long-lived, and those that are about to begin TLS. */
  const brief: Map<Socket, { server: Server, since: number }> = new Map()
  const longLived = createLongLived()
  const progress = createProgress({ ...limits, now })
  const idleClock = createIdleClock(limits.idleGraceMs)
  const cut = { requests: 0, connections: 0, stalled: 0 }

  return {
    longLived,
    /** What was ended in the middle of something. */
    cut,

    add (socket: Socket, server: Server) {
      brief.set(socket, { server, since: now() })
      // All that is to be known of it is known of the outer one.
      if (socket._parent) brief.delete(socket._parent)
    },

    remove (socket: Socket) {
      brief.delete(socket)
      longLived.remove(socket)
    },

    /** @returns `waiting`: no byte of them moves */
    look (): { waiting: Request[], transfers: Request[] } {
      for (const [socket, { server }] of brief) sortOut(socket, server)
      const found: { waiting: Request[], transfers: Request[] } = { waiting: [], transfers: [] }
      for (const each of requestsInProgress())
        found[progress.look(each.request, each.carrier) ? 'transfers' : 'waiting'].push(each)
      return found
    },

    cutIdle () {
      http2Sessions.closeIdle(idleClock)
      for (const [socket, { server }] of brief) {
        if (isOfHttp(socket, server) &&
          idleClock.isOver(socket, { isAnswering: Boolean(socket._httpMessage), bytesRead: socket.bytesRead }))
          socket.destroy()
      }
    },

    /** Ends requests without an answer. `ageMs`: those that are so old. */
    cutRequests (requests: Request[], ageMs: number, { areMoving = false }: { areMoving?: boolean } = {}) {
      for (const { request, carrier } of requests) {
        // A long poll that is cut ends its session for some clients.
        if (now() - progress.beganAt(request) < ageMs || ('req' in request && sessions.has(request.req))) continue
        cut.requests++
        if (!areMoving && progress.hasMoved(request)) cut.stalled++
        if ('session' in carrier) carrier.close(CANCEL)
        else cutConnection(carrier)
      }
    },

    /** Ends connections on which nothing is asked, or not completely. `ageMs`: those that are so old. */
    cutConnections (ageMs: number) {
      for (const [socket, { since }] of brief) if (!socket._httpMessage && now() - since >= ageMs) cutConnection(socket)
    }
  }

  function requestsInProgress (): Request[] {
    const requests: Request[] = []
    for (const carrier of brief.keys())
      if (carrier._httpMessage) requests.push({ request: carrier._httpMessage, carrier })
    for (const stream of http2Sessions.streams())
      if (!keepIfEvents(stream)) requests.push({ request: stream, carrier: stream })
    return requests
  }

  function cutConnection (socket: Socket) {
    cut.connections++
    socket.destroy()
  }

  function sortOut (socket: Socket, server: Server) {
    if (isOfHttp(socket, server))
      return socket._httpMessage && isEventStream(socket._httpMessage) &&
        keepEvents(socket, server, socket._httpMessage)
    if (isBelowTls(socket, server)) return
    brief.delete(socket)
    if (isOfSession(socket, server)) return
    if (upgrades.isWebSocket(socket) || webSocketOf(socket))
      longLived.add(socket, 'webSockets', (code) => endWebSocket(socket, { code, isOpen: upgrades.isOpen(socket) }))
    else longLived.add(socket, 'connections', () => endConnection(socket))
  }

  /** Once its answer has ended, a connection is like any other of HTTP. */
  function keepEvents (socket: Socket, server: Server, response: Response) {
    brief.delete(socket)
    longLived.add(socket, 'eventStreams', () => endEventStream(response))
    response.once('close', () => {
      longLived.remove(socket)
      if (!socket.destroyed) brief.set(socket, { server, since: now() })
    })
  }

  /** Tells whether it sends events: it is long-lived from then on */
  function keepIfEvents (stream: Stream): boolean {
    if (longLived.has(stream)) return true
    if (!String(stream.sentHeaders?.['content-type']).startsWith('text/event-stream')) return false
    longLived.add(stream, 'eventStreams', () => endStream(stream))
    stream.once('close', () => longLived.remove(stream))
    return true
  }
}

/**
 * @returns whether neither HTTP nor TLS of its server reads it: it was upgraded, it is a tunnel, or its server is of
 * another protocol
 */
export function isRaw (socket: Socket, server: Server): boolean {
  return !isOfHttp(socket, server) && !isBelowTls(socket, server) && !isOfSession(socket, server)
}

/** Tells whether requests of HTTP/1 are read from it, or would be if it said anything */
export function isOfHttp (socket: Socket, server: Server): boolean {
  return Boolean(socket.parser || (server.closeIdleConnections && socket.bytesRead === 0))
}

function isBelowTls (socket: Socket, server: Server) {
  return typeof server.setSecureContext === 'function' && !socket.encrypted
}

/** Tells whether it is a session of HTTP/2 */
function isOfSession (socket: Socket, server: Server): boolean {
  return typeof server.updateSettings === 'function' && (!socket.encrypted || socket.alpnProtocol === 'h2')
}

/** Tells whether its app has begun to send events */
function isEventStream (response: Response): boolean {
  return /^content-type: *text\/event-stream/im.test(response._header ?? '')
}
