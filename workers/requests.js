import diagnostics from 'node:diagnostics_channel'
import { bucketOf, BUCKETS, toSparse } from './histogram.js'
import { ABORTED, statusClass, STATUS_CLASSES } from './protocol.js'

const CONNECTION = Symbol('clusterdeck.connection')

/** @typedef {{ method: string, path: string, ageMs: number, response: any }} InFlight */

/**
 * Counts every HTTP request of this process through Node's own diagnostics channels, and knows those that are not
 * answered yet. What it keeps hangs on the connection, so an answered request costs no allocation here.
 * A latency runs from the moment the headers are read until the last byte of the answer is handed to the system.
 * @param {{ now?: () => number }} [options] monotonic clock, ms
 */
export function watchRequests ({ now = () => performance.now() } = {}) {
  /** @type {Set<Connection>} */
  const connections = new Set()
  const latency = new Float64Array(BUCKETS)
  const statuses = new Float64Array(STATUS_CLASSES.length)
  // Not a variable: each sum of doubles in one would be a new object.
  const latencySumMs = new Float64Array(1)
  let inFlight = 0

  diagnostics.subscribe('http.server.request.start', start)
  diagnostics.subscribe('http.server.response.finish', finish)

  return {
    /** @returns {InFlight[]} oldest first. `path` is without the query */
    inFlight () {
      const at = now()
      const open = []
      for (const { response, startedAt, later } of connections) {
        if (response !== null) open.push(describe(response, at - startedAt))
        for (const each of later ?? []) open.push(describe(each.response, at - each.startedAt))
      }
      return open.sort((a, b) => b.ageMs - a.ageMs)
    },

    /** @returns {number} how many those are */
    count: () => inFlight,

    /**
     * What has ended since the last call.
     * @returns {{ statuses: number[], latency: number[], latencySumMs: number }} `statuses`: counts by STATUS_CLASSES;
     *   `latency`: a sparse histogram of those that were answered
     */
    take () {
      const taken = { statuses: Array.from(statuses), latency: toSparse(latency), latencySumMs: latencySumMs[0] }
      statuses.fill(0)
      latency.fill(0)
      latencySumMs.fill(0)
      return taken
    },

    /** Stops counting. */
    stop () {
      diagnostics.unsubscribe('http.server.request.start', start)
      diagnostics.unsubscribe('http.server.response.finish', finish)
    }
  }

  function start (/** @type {any} */ { response, socket }) {
    const connection = socket[CONNECTION] ?? open(socket)
    inFlight++
    if (connection.response === null) {
      connection.response = response
      connection.startedAt = now()
    } else {
      (connection.later ??= []).push({ response, startedAt: now() })
    }
  }

  function finish (/** @type {any} */ { response, socket }) {
    const connection = socket[CONNECTION]
    // It began before this was loaded, or its connection has gone and it was counted with that.
    if (connection === undefined || connection.response !== response) return
    const ms = now() - connection.startedAt
    statuses[statusClass(response.statusCode)]++
    latency[bucketOf(ms)]++
    latencySumMs[0] += ms
    inFlight--
    advance(connection)
  }

  /** One listener for each connection, none for each request: an answer that never finishes ends with its connection. */
  function open (/** @type {any} */ socket) {
    const connection = new Connection()
    socket[CONNECTION] = connection
    connections.add(connection)
    socket.once('close', () => {
      connections.delete(connection)
      while (connection.response !== null) {
        statuses[ABORTED]++
        inFlight--
        advance(connection)
      }
    })
    return connection
  }
}

class Connection {
  /** @type {any} the oldest that is not answered yet, or null */
  response = null
  /** @type {number} */
  startedAt = 0
  /** @type {{ response: any, startedAt: number }[] | null} of a client that pipelines; answers go out in order (RFC 9112, section 9.3.2) */
  later = null
}

/** @param {Connection} connection */
function advance (connection) {
  const next = connection.later === null ? undefined : connection.later.shift()
  if (next === undefined) {
    connection.response = null
  } else {
    connection.response = next.response
    connection.startedAt = next.startedAt
  }
}

/** @param {any} response @param {number} ageMs @returns {InFlight} */
function describe (response, ageMs) {
  const { method, url } = response.req ?? {}
  return { method: String(method), path: String(url).split('?', 1)[0], ageMs, response }
}
