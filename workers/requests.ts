import diagnostics from 'node:diagnostics_channel'
import { setImmediate } from 'node:timers'
import { bucketOf, BUCKETS, toSparse } from './histogram.ts'
import { ABORTED, statusClass, STATUS_CLASSES, type RouteReport } from './protocol.ts'
import { hookResponses, watchIncoming, type Socket } from './response-hooks.ts'
import type { ServerResponse } from 'node:http'
import type { ChannelMessages } from './node-internals.d.ts'
import type { Routes } from './routes.ts'

const CONNECTION = Symbol('clusterdeck.connection')
/** Marks a socket or an HTTP/2 session whose requests are not the app's. */
export const UNCOUNTED = Symbol('clusterdeck.uncounted')

/** what this module and the probe write on objects of Node */
export type Marks = { [CONNECTION]?: Connection, [UNCOUNTED]?: boolean }
type MarkedSocket =
  & Socket
  & Marks
/** `response`: null for HTTP/2 */
export type InFlight = { method: string, path: string, ageMs: number, response: ServerResponse | null }
export type Requests = ReturnType<typeof watchRequests>

/**
 * Counts every HTTP request of this process, and knows those that are not answered yet. What it keeps hangs on the
 * connection, so an answered request costs no allocation here. Node's own diagnostics channels tell of the first
 * request; from then on the answers themselves do, without an object for each, and the channel only of what comes
 * before the last answer is out. HTTP/2 is counted where Node has channels for it (24 on).
 * A latency runs from the moment the headers are read until the last byte of the answer is handed to the system.
 */
export function watchRequests ({ now = () => performance.now(), routes = null }: {
  /** monotonic clock, ms */
  now?: () => number,
  /** count them by route too */
  routes?: Routes | null
} = {}) {
  const connections: Set<Connection> = new Set()
  const latency = new Float64Array(BUCKETS)
  const statuses = new Float64Array(STATUS_CLASSES.length)
  // An array, as each sum of doubles in a variable would be a new object.
  const latencySumMs = new Float64Array(1)
  let inFlight = 0
  let begun = 0
  let limit = 0
  let onLimit = () => {}
  /** null: the channels tell */
  let unhook: (() => void) | null = null
  let hasTriedHooks = false
  let hearsStarts = false
  let isStopped = false

  diagnostics.subscribe('http.server.request.start', onRequestStart)
  diagnostics.subscribe('http.server.response.finish', onResponseFinish)
  diagnostics.subscribe('http2.server.stream.start', startStream)
  diagnostics.subscribe('http2.server.stream.close', closeStream)

  return {
    /** @returns oldest first. `path` is without the query */
    inFlight (): InFlight[] {
      const at = now()
      const open = []
      for (const { response, startedAt, later, target } of connections) {
        if (target !== null) open.push({ ...target, ageMs: at - startedAt, response: null })
        if (response !== null) open.push(describeRequest(response, at - startedAt))
        for (const each of later ?? []) open.push(describeRequest(each.response, at - each.startedAt))
      }
      return open.sort((a, b) => b.ageMs - a.ageMs)
    },

    /** @returns how many requests are in flight */
    count: (): number => inFlight,

    /** @returns how many have begun since the start */
    begun: (): number => begun,

    /**
     * Tells once as many have begun since the start, at once if they have; in place of what was to be told before.
     * `count`: 0: never.
     */
    whenBegun (count: number, listener: () => void) {
      limit = count
      onLimit = listener
      if (limit > 0 && begun >= limit) onLimit()
    },

    /** `response`: in progress. Returns whether nothing else is in progress on its connection. */
    isAlone (response: ServerResponse): boolean {
      const socket: MarkedSocket = response.req.socket
      const connection = socket[CONNECTION]
      return !connection || (connection.response === response && !connection.later?.length)
    },

    /** `socket`: another worker answers what was asked on it */
    passOn (socket: MarkedSocket) {
      const connection = socket[CONNECTION]
      while (connection?.response) {
        inFlight--
        advanceConnection(connection)
      }
    },

    /** `response`: in progress. Returns whether nothing has been asked after it on its connection. */
    isNewest (response: ServerResponse): boolean {
      const socket: MarkedSocket = response.req.socket
      const connection = socket[CONNECTION]
      return !connection || response === (connection.later?.at(-1)?.response ?? connection.response)
    },

    /**
     * Returns what has ended since the last call. Returns `statuses`: counts by STATUS_CLASSES; `latency`: a sparse
     * histogram of those that were answered.
     */
    take (): { statuses: number[], latency: number[], latencySumMs: number, routes?: RouteReport[] } {
      const taken = { statuses: Array.from(statuses), latency: toSparse(latency), latencySumMs: latencySumMs[0],
        ...(routes && { routes: routes.take() }) }
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

  function onRequestStart ({ response, socket }: { response: ServerResponse, socket: MarkedSocket }) {
    const connection = socket[CONNECTION] ?? openConnection(socket)
    // Whoever ends a subscription while a channel tells keeps the next one from being told.
    if (!hasTriedHooks) setImmediate(leaveChannels, response)
    hasTriedHooks = true
    if (connection === null) return
    if (connection.response === null) return begin(connection, response)
    countBegun()
    ;(connection.later ??= []).push({ response, startedAt: now() })
  }

  function onResponseFinish ({ response, socket }: { response: ServerResponse, socket: MarkedSocket }) {
    finish(response, socket)
  }

  function leaveChannels (response: ServerResponse) {
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

  function assign (response: ServerResponse, socket: MarkedSocket) {
    const connection = socket[CONNECTION] ?? (socket.parser ? openConnection(socket) : null)
    if (connection !== null && connection.response === null) begin(connection, response)
  }

  function begin (connection: Connection, response: ServerResponse) {
    countBegun()
    connection.response = response
    connection.startedAt = now()
  }

  function finish (response: ServerResponse, socket: MarkedSocket) {
    const connection = socket[CONNECTION]
    // The request began before this was loaded, or was counted when its connection closed.
    if (connection === undefined || connection.response !== response) return
    const ms = now() - connection.startedAt
    const bucket = countAnswered(response.statusCode, ms)
    if (routes !== null) routes.count(response, ms, bucket)
    advanceConnection(connection)
  }

  /** Counts an HTTP/2 stream, which is one request and always closes. */
  function startStream (
    { stream, headers }: ChannelMessages['http2.server.stream.start'] & { stream: Marks & { session?: Marks } }
  ) {
    if (stream.session?.[UNCOUNTED]) return
    const connection = new Connection()
    connection.target = targetOf(headers[':method'], headers[':path'])
    connection.startedAt = now()
    stream[CONNECTION] = connection
    connections.add(connection)
    countBegun()
  }

  function closeStream ({ stream }: ChannelMessages['http2.server.stream.close'] & { stream: Marks }) {
    const connection = stream[CONNECTION]
    if (connection === undefined || !connections.delete(connection)) return
    const status = stream.sentHeaders?.[':status']
    if (status === undefined || stream.rstCode !== 0) return countAborted()
    // The life of a WebSocket or another tunnel is no latency.
    if (connection.target?.method === 'CONNECT') return void inFlight--
    const ms = now() - connection.startedAt
    const bucket = countAnswered(status, ms)
    if (connection.target !== null) routes?.countStream(connection.target, status, ms, bucket)
  }

  function countBegun () {
    inFlight++
    if (++begun === limit) onLimit()
  }

  /** @returns the bucket of its latency */
  function countAnswered (status: number, ms: number): number {
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
  function openConnection (socket: MarkedSocket) {
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
  /** the oldest that is not answered yet */
  response: ServerResponse | null = null
  startedAt: number = 0
  /** of a client that pipelines; answers go out in order (RFC 9112, section 9.3.2) */
  later: { response: ServerResponse, startedAt: number }[] | null = null
  /** of a stream of HTTP/2, which is a connection of its own here */
  target: { method: string, path: string } | null = null
}

function advanceConnection (connection: Connection) {
  const next = connection.later === null ? undefined : connection.later.shift()
  if (next === undefined) {
    connection.response = null
  } else {
    connection.response = next.response
    connection.startedAt = next.startedAt
  }
}

function describeRequest (response: ServerResponse, ageMs: number): InFlight {
  return { ...targetOf(response.req?.method, response.req?.url), ageMs, response }
}

function targetOf (method: unknown, url: unknown) {
  return { method: String(method), path: String(url).split('?', 1)[0] }
}
