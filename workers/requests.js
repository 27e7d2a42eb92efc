import diagnostics from 'node:diagnostics_channel'
import { setImmediate } from 'node:timers'
import { bucketOf, BUCKETS, toSparse } from './histogram.js'
import { ABORTED, statusClass, STATUS_CLASSES } from './protocol.js'
import { hookResponses, watchIncoming } from './response-hooks.js'

const CONNECTION = Symbol('clusterdeck.connection')
/** Marks a socket or an HTTP/2 session whose requests are not the app's. */
export const UNCOUNTED = Symbol('clusterdeck.uncounted')

/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('./node-internals.d.ts').ChannelMessages} ChannelMessages */
/** @typedef {{ [CONNECTION]?: Connection, [UNCOUNTED]?: boolean }} Marks  what this module and the probe write on objects of Node */
/** @typedef {import('./response-hooks.js').Socket & Marks} MarkedSocket */
/** @typedef {{ method: string, path: string, ageMs: number, response: ServerResponse | null }} InFlight  `response`: null for HTTP/2 */
/** @typedef {ReturnType<typeof watchRequests>} Requests */

/**
 * Counts every HTTP request of this process, and knows those that are not answered yet. What it keeps hangs on the
 * connection, so an answered request costs no allocation here. Node's own diagnostics channels tell of the first request;
 * from then on the answers themselves do, without an object for each, and the channel only of what comes before the last answer is out.
 * HTTP/2 is counted where Node has channels for it (24 on).
 * A latency runs from the moment the headers are read until the last byte of the answer is handed to the system.
 * @param {object} [options]
 * @param {() => number} [options.now]  monotonic clock, ms
 * @param {import('./routes.js').Routes | null} [options.routes]  count them by route too
 */
export function watchRequests ({ now = () => performance.now(), routes = null } = {}) {
  /** @type {Set<Connection>} */
  const connections = new Set()
  const latency = new Float64Array(BUCKETS)
  const statuses = new Float64Array(STATUS_CLASSES.length)
  // An array, as each sum of doubles in a variable would be a new object.
  const latencySumMs = new Float64Array(1)
  let inFlight = 0
  let begun = 0
  let limit = 0
  let onLimit = () => {}
  /** @type {(() => void) | null} null: the channels tell */
  let unhook = null
  let hasTriedHooks = false
  let hearsStarts = false
  let isStopped = false

  diagnostics.subscribe('http.server.request.start', onRequestStart)
  diagnostics.subscribe('http.server.response.finish', onResponseFinish)
  diagnostics.subscribe('http2.server.stream.start', startStream)
  diagnostics.subscribe('http2.server.stream.close', closeStream)

  return {
    /** @returns {InFlight[]} oldest first. `path` is without the query */
    inFlight () {
      const at = now()
      const open = []
      for (const { response, startedAt, later, target } of connections) {
        if (target !== null) open.push({ ...target, ageMs: at - startedAt, response: null })
        if (response !== null) open.push(describeRequest(response, at - startedAt))
        for (const each of later ?? []) open.push(describeRequest(each.response, at - each.startedAt))
      }
      return open.sort((a, b) => b.ageMs - a.ageMs)
    },

    /** @returns {number} how many requests are in flight */
    count: () => inFlight,

    /** @returns {number} how many have begun since the start */
    begun: () => begun,

    /**
     * Tells once as many have begun since the start, at once if they have; in place of what was to be told before.
     * @param {number} count 0: never @param {() => void} listener
     */
    whenBegun (count, listener) {
      limit = count
      onLimit = listener
      if (limit > 0 && begun >= limit) onLimit()
    },

    /** @param {ServerResponse} response  in progress @returns {boolean} whether nothing else is in progress on its connection */
    isAlone (response) {
      /** @type {MarkedSocket} */
      const socket = response.req.socket
      const connection = socket[CONNECTION]
      return !connection || (connection.response === response && !connection.later?.length)
    },

    /** @param {MarkedSocket} socket  another worker answers what was asked on it */
    passOn (socket) {
      const connection = socket[CONNECTION]
      while (connection?.response) {
        inFlight--
        advanceConnection(connection)
      }
    },

    /** @param {ServerResponse} response  in progress @returns {boolean} whether nothing has been asked after it on its connection */
    isNewest (response) {
      /** @type {MarkedSocket} */
      const socket = response.req.socket
      const connection = socket[CONNECTION]
      return !connection || response === (connection.later?.at(-1)?.response ?? connection.response)
    },

    /**
     * Returns what has ended since the last call.
     * @returns {{ statuses: number[], latency: number[], latencySumMs: number, routes?: import('./protocol.js').RouteReport[] }} `statuses`: counts by STATUS_CLASSES;
     *   `latency`: a sparse histogram of those that were answered
     */
    take () {
      const taken = { statuses: Array.from(statuses), latency: toSparse(latency), latencySumMs: latencySumMs[0], ...(routes && { routes: routes.take() }) }
      statuses.fill(0)
      latency.fill(0)
      latencySumMs.fill(0)
      return taken
    },

    /** Stops counting. */
    stop () {
      isStopped = true
      unhook?.()
      diagnostics.unsubscribe('http.server.request.start', onRequestStart)
      diagnostics.unsubscribe('http.server.response.finish', onResponseFinish)
      diagnostics.unsubscribe('http2.server.stream.start', startStream)
      diagnostics.unsubscribe('http2.server.stream.close', closeStream)
    }
  }

  /** @param {{ response: ServerResponse, socket: MarkedSocket }} message */
  function onRequestStart ({ response, socket }) {
    const connection = socket[CONNECTION] ?? openConnection(socket)
    // Whoever ends a subscription while a channel tells keeps the next one from being told.
    if (!hasTriedHooks) setImmediate(leaveChannels, response)
    hasTriedHooks = true
    if (connection === null) return
    if (connection.response === null) return begin(connection, response)
    countBegun();
    (connection.later ??= []).push({ response, startedAt: now() })
  }

  /** @param {{ response: ServerResponse, socket: MarkedSocket }} message */
  function onResponseFinish ({ response, socket }) {
    finish(response, socket)
  }

  function leaveChannels (/** @type {ServerResponse} */ response) {
    if (isStopped) return
    unhook = hookResponses(response, { onAssign: assign, onDetach: finish })
    if (unhook === null) return
    if (!hearsStarts) diagnostics.unsubscribe('http.server.request.start', onRequestStart)
    diagnostics.unsubscribe('http.server.response.finish', onResponseFinish)
  }

  function hearStarts () {
    if (hearsStarts || isStopped) return
    hearsStarts = true
    if (unhook !== null) diagnostics.subscribe('http.server.request.start', onRequestStart)
  }

  function assign (/** @type {ServerResponse} */ response, /** @type {MarkedSocket} */ socket) {
    const connection = socket[CONNECTION] ?? (socket.parser ? openConnection(socket) : null)
    if (connection !== null && connection.response === null) begin(connection, response)
  }

  function begin (/** @type {Connection} */ connection, /** @type {ServerResponse} */ response) {
    countBegun()
    connection.response = response
    connection.startedAt = now()
  }

  function finish (/** @type {ServerResponse} */ response, /** @type {MarkedSocket} */ socket) {
    const connection = socket[CONNECTION]
    // The request began before this was loaded, or was counted when its connection closed.
    if (connection === undefined || connection.response !== response) return
    const bucket = countAnswered(response.statusCode, now() - connection.startedAt)
    if (routes !== null) routes.count(response, bucket)
    advanceConnection(connection)
  }

  /**
   * Counts an HTTP/2 stream, which is one request and always closes.
   * @param {ChannelMessages['http2.server.stream.start'] & { stream: Marks & { session?: Marks } }} message
   */
  function startStream ({ stream, headers }) {
    if (stream.session?.[UNCOUNTED]) return
    const connection = new Connection()
    connection.target = targetOf(headers[':method'], headers[':path'])
    connection.startedAt = now()
    stream[CONNECTION] = connection
    connections.add(connection)
    countBegun()
  }

  /** @param {ChannelMessages['http2.server.stream.close'] & { stream: Marks }} message */
  function closeStream ({ stream }) {
    const connection = stream[CONNECTION]
    if (connection === undefined || !connections.delete(connection)) return
    const status = stream.sentHeaders?.[':status']
    if (status === undefined || stream.rstCode !== 0) return countAborted()
    const bucket = countAnswered(status, now() - connection.startedAt)
    if (connection.target !== null) routes?.countStream(connection.target, status, bucket)
  }

  function countBegun () {
    inFlight++
    if (++begun === limit) onLimit()
  }

  /** @param {number} status @param {number} ms @returns {number} the bucket of its latency */
  function countAnswered (status, ms) {
    const bucket = bucketOf(ms)
    statuses[statusClass(status)]++
    latency[bucket]++
    latencySumMs[0] += ms
    inFlight--
    return bucket
  }

  function countAborted () {
    statuses[ABORTED]++
    inFlight--
  }

  /** Adds one listener per connection, not per request: an unfinished answer ends with its connection. */
  function openConnection (/** @type {MarkedSocket} */ socket) {
    if (socket[UNCOUNTED]) return null
    const connection = new Connection()
    socket[CONNECTION] = connection
    connections.add(connection)
    // Few clients pipeline: only the channel tells which answer waits for those before it.
    if (!watchIncoming(socket, () => connection.response !== null && hearStarts())) hearStarts()
    socket.once('close', () => {
      connections.delete(connection)
      while (connection.response !== null) {
        countAborted()
        advanceConnection(connection)
      }
    })
    return connection
  }
}

class Connection {
  /** @type {ServerResponse | null} the oldest that is not answered yet */
  response = null
  /** @type {number} */
  startedAt = 0
  /** @type {{ response: ServerResponse, startedAt: number }[] | null} of a client that pipelines; answers go out in order (RFC 9112, section 9.3.2) */
  later = null
  /** @type {{ method: string, path: string } | null} of a stream of HTTP/2, which is a connection of its own here */
  target = null
}

/** @param {Connection} connection */
function advanceConnection (connection) {
  const next = connection.later === null ? undefined : connection.later.shift()
  if (next === undefined) {
    connection.response = null
  } else {
    connection.response = next.response
    connection.startedAt = next.startedAt
  }
}

/** @param {ServerResponse} response @param {number} ageMs @returns {InFlight} */
function describeRequest (response, ageMs) {
  return { ...targetOf(response.req?.method, response.req?.url), ageMs, response }
}

/** @param {unknown} method @param {unknown} url */
function targetOf (method, url) {
  return { method: String(method), path: String(url).split('?', 1)[0] }
}
