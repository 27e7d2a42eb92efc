import diagnostics from 'node:diagnostics_channel'
import { clearTimeout, setTimeout } from 'node:timers'
import { ASKED } from './asked-connection.js'
import { createTurns } from './turns.js'

/** A client may take this long to close a connection after its last answer. */
const LINGER_MS = 1000

/** @typedef {import('node:net').Server} Server */
/** @typedef {import('node:net').Socket} Socket */

/**
 * Ends HTTP/1 connections with an answer that says `Connection: close`, and loses nothing to a client that pipelines
 * (RFC 9112, sections 9.3.2 and 9.6): the newest of the requests that are here says it, what follows is left to be asked
 * again elsewhere, and is read nevertheless, as unread bytes would make the kernel reset the connection, answers included.
 * @param {object} parts
 * @param {Pick<import('./requests.js').Requests, 'inFlight' | 'isNewest'>} parts.requests
 * @param {Pick<ReturnType<typeof createTurns>, 'hasCome'>} [parts.turns]  a connection may be asked until its turn comes
 */
export function createLastAnswers ({ requests, turns = createTurns() }) {
  /** @type {WeakSet<Socket>} connections that have said it */
  const ending = new WeakSet()
  /** @type {Map<Server, { sockets: number, giveBack: () => void }>} of which single connections end */
  const partly = new Map()

  return {
    /** Begins, also for the requests that are in progress. @param {Iterable<Server | Socket>} servers */
    begin (servers) {
      for (const server of servers) takeNoMore(server)
      for (const { response } of requests.inFlight()) if (response) endAfter(response)
      diagnostics.subscribe('http.server.request.start', ({ response }) => endAfter(response))
    },

    /**
     * Ends one connection with the answer to this request, unless a newer one comes before that: then that is to be told too.
     * @param {Server} server @param {import('node:http').ServerResponse} response  in progress @param {() => void} onSaid
     */
    end (server, response, onSaid) {
      endAfter(response, () => {
        endOne(server, response.req.socket)
        onSaid()
      })
    }
  }

  /** The server is left as it was once no such connection is open. @param {Server} server @param {Socket} socket */
  function endOne (server, socket) {
    const part = partly.get(server) ?? { sockets: 0, giveBack: takeNoMore(server) }
    partly.set(server, part)
    part.sockets++
    socket.once('close', () => {
      if (--part.sockets > 0) return
      part.giveBack()
      partly.delete(server)
    })
  }

  /** @param {import('node:events').EventEmitter} server @returns {() => void} undoes it, unless another has put something over it */
  function takeNoMore (server) {
    const { emit } = server
    const wasOwn = Object.hasOwn(server, 'emit')
    server.emit = emitUnlessEnding
    return () => {
      if (server.emit !== emitUnlessEnding) return
      if (wasOwn) server.emit = emit
      else Reflect.deleteProperty(server, 'emit')
    }

    /** @this {import('node:events').EventEmitter} @param {string | symbol} name @param {any[]} args */
    function emitUnlessEnding (name, ...args) {
      if (!ASKED.has(name) || !ending.has(args[0]?.socket)) return emit.call(this, name, ...args)
      args[0].resume()
      return true
    }
  }

  /** @param {import('node:http').ServerResponse} response  in progress @param {() => void} [onSaid] */
  function endAfter (response, onSaid = () => {}) {
    if (response.headersSent) return
    const { writeHead } = response
    response.writeHead = (/** @type {unknown[]} */ ...args) => {
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

/** Node closes the connection once its last answer is written. @param {Socket} socket */
function lingerOnEnd (socket) {
  socket.destroySoon = function () {
    this.end()
    if (this.readableEnded) return this.destroy()
    const late = setTimeout(() => this.destroy(), LINGER_MS)
    this.once('end', () => this.destroy()).once('close', () => clearTimeout(late)).resume()
  }
}

/** @param {unknown} headers  as `writeHead` takes them: an object, a flat list or a list of pairs; or another of its arguments */
function withoutKeepAlive (headers) {
  if (typeof headers !== 'object' || headers === null) return headers
  if (!Array.isArray(headers)) return Object.fromEntries(Object.entries(headers).map(closedPair))
  return headers.map((each, index) => {
    if (Array.isArray(each)) return closedPair(each)
    return index % 2 === 1 && isOfConnection(headers[index - 1]) && isKeepAlive(each) ? 'close' : each
  })
}

/** @param {unknown[]} pair  name and value of a header */
function closedPair ([name, value]) {
  return [name, isOfConnection(name) && isKeepAlive(value) ? 'close' : value]
}

/** @param {unknown} name */
function isOfConnection (name) {
  return String(name).toLowerCase() === 'connection'
}

/** @param {unknown} value of the header Connection */
function isKeepAlive (value) {
  return /keep-alive/i.test(String(value))
}
