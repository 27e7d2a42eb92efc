import diagnostics from 'node:diagnostics_channel'
import { clearTimeout, setTimeout } from 'node:timers'
import { ASKED } from './asked-connection.ts'
import { createTurns } from './turns.ts'
import type { Server, Socket } from 'node:net'
import type { IncomingMessage as Request, ServerResponse } from 'node:http'
import type { EventEmitter } from 'node:events'
import type { Requests } from './requests.ts'

/** A client may take this long to close a connection after its last answer. */
const LINGER_MS = 1000

/**
 * Ends HTTP/1 connections with an answer that says `Connection: close`, and loses nothing to a client that pipelines
 * (RFC 9112, sections 9.3.2 and 9.6): the newest of the requests that are here says it, what follows is left to be
 * asked again elsewhere, and is read nevertheless, as unread bytes would make the kernel reset the connection, answers
 * included.
 */
export function createLastAnswers ({ requests, turns = createTurns() }: {
  requests: Pick<Requests, 'inFlight' | 'isNewest'>,
  /** a connection may be asked until its turn comes */
  turns?: Pick<ReturnType<typeof createTurns>, 'hasCome'>
}) {
  /** connections that have said it */
  const ending: WeakSet<Socket> = new WeakSet()
  /** of which single connections end */
  const partly: Map<Server, { sockets: number, giveBack: () => void }> = new Map()

  return {
    /** Begins, also for the requests that are in progress. */
    begin (servers: Iterable<Server | Socket>) {
      for (const server of servers) takeNoMore(server)
      for (const { response } of requests.inFlight()) if (response) endAfter(response)
      diagnostics.subscribe('http.server.request.start', ({ response }) => endAfter(response))
    },

    /**
     * Ends one connection with the answer to this request, unless a newer one comes before that: then that is to be
     * told too. `response`: in progress.
     */
    end (server: Server, response: ServerResponse, onSaid: () => void) {
      endAfter(response, () => {
        endOne(server, response.req.socket)
        onSaid()
      })
    }
  }

  /** The server is left as it was once no such connection is open. */
  function endOne (server: Server, socket: Socket) {
    const part = partly.get(server) ?? { sockets: 0, giveBack: takeNoMore(server) }
    partly.set(server, part)
    part.sockets++
    socket.once('close', () => {
      if (--part.sockets > 0) return
      part.giveBack()
      partly.delete(server)
    })
  }

  /** @returns undoes it, unless another has put something over it */
  function takeNoMore (server: EventEmitter): () => void {
    const { emit } = server
    const wasOwn = Object.hasOwn(server, 'emit')
    server.emit = emitUnlessEnding
    return () => {
      if (server.emit !== emitUnlessEnding) return
      if (wasOwn) server.emit = emit
      else Reflect.deleteProperty(server, 'emit')
    }

    function emitUnlessEnding (this: EventEmitter, name: string | symbol, ...args: [request?: Request]) {
      const [request] = args
      if (!request || !ASKED.has(name) || !ending.has(request.socket)) return emit.call(this, name, ...args)
      request.resume()
      return true
    }
  }

  /** `response`: in progress */
  function endAfter (response: ServerResponse, onSaid: () => void = () => {}) {
    if (response.headersSent) return
    const { writeHead } = response
    response.writeHead = (...args: unknown[]) => {
      const { socket } = response.req
      if (!requests.isNewest(response) || !turns.hasCome(socket)) return Reflect.apply(writeHead, response, args)
      response.shouldKeepAlive = false
      ending.add(socket)
      onSaid()
      lingerOnEnd(socket)
      // An app that says keep-alive itself, as a proxy does that passes on what it has got, would have the last word.
      if (isKeepAlive(response.getHeader('connection'))) response.setHeader('connection', 'close')
      return Reflect.apply(writeHead, response, args.map(withoutKeepAlive))
    }
  }
}

/** Node closes the connection once its last answer is written. */
function lingerOnEnd (socket: Socket) {
  socket.destroySoon = function () {
    this.end()
    if (this.readableEnded) return this.destroy()
    const late = setTimeout(() => this.destroy(), LINGER_MS)
    this.once('end', () => this.destroy()).once('close', () => clearTimeout(late)).resume()
  }
}

/** `headers`: as `writeHead` takes them: an object, a flat list or a list of pairs; or another of its arguments */
function withoutKeepAlive (headers: unknown) {
  if (typeof headers !== 'object' || headers === null) return headers
  if (!Array.isArray(headers)) return Object.fromEntries(Object.entries(headers).map(closedPair))
  return headers.map((each, index) => {
    if (Array.isArray(each)) return closedPair(each)
    return index % 2 === 1 && isOfConnection(headers[index - 1]) && isKeepAlive(each) ? 'close' : each
  })
}

/** `pair`: name and value of a header */
function closedPair ([name, value]: unknown[]) {
  return [name, isOfConnection(name) && isKeepAlive(value) ? 'close' : value]
}

function isOfConnection (name: unknown) {
  return String(name).toLowerCase() === 'connection'
}

/** `value`: of the header Connection */
function isKeepAlive (value: unknown) {
  return /keep-alive/i.test(String(value))
}
