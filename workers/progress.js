import { privateField } from './private-field.js'

/**
 * @typedef {import('./node-internals.d.ts').AnySocket} Socket
 * @typedef {import('./node-internals.d.ts').AnyResponse} Response
 * @typedef {import('node:http2').ServerHttp2Stream} Stream
 * @typedef {{ beganAt: number, bytes: string, movedAt: number | null }} Seen  `movedAt`: null: not since the first look
 */

/**
 * Tells which requests still move, by the bytes that have come and gone since the last look.
 * @param {{ stalledMs: number, now: () => number }} options
 */
export function createProgress ({ stalledMs, now }) {
  /** @type {WeakMap<Response | Stream, Seen>} by request */
  const seen = new WeakMap()

  return {
    /** @param {Response | Stream} request @param {Socket | Stream} carrier @returns {boolean} whether it is a transfer */
    look (request, carrier) {
      const bytes = 'session' in carrier ? bytesOfStream(carrier) : bytesOfSocket(carrier)
      const { beganAt, ...last } = seen.get(request) ?? { beganAt: now(), bytes, movedAt: null }
      const movedAt = last.bytes === bytes ? last.movedAt : now()
      seen.set(request, { beganAt, bytes, movedAt })
      return movedAt !== null && now() - movedAt < stalledMs
    },

    /** @param {Response | Stream} request @returns {number} since when it was looked at */
    beganAt: (request) => seen.get(request)?.beganAt ?? now(),

    /** @param {Response | Stream} request */
    hasMoved: (request) => (seen.get(request)?.movedAt ?? null) !== null
  }
}

/** @param {Socket} socket */
function bytesOfSocket (socket) {
  return `${socket.bytesRead},${sentBytes(socket)}`
}

/** @param {Socket} socket  A large piece counts as written once all of it is with the system; what waits below gets less meanwhile. */
export function sentBytes (socket) {
  const below = socket._parent ?? socket
  return `${socket.bytesWritten - socket.writableLength},${below._handle?.writeQueueSize}`
}

/** @param {Stream} stream */
function bytesOfStream (stream) {
  /** @type {{ bytesRead: number, bytesWritten: number } | undefined} */
  const handle = privateField(stream, 'kHandle')
  const written = (handle?.bytesWritten ?? 0) - stream.writableLength
  // Of a large piece only its session tells how much has gone.
  return [handle?.bytesRead, written, stream.writableLength > 0 && stream.session?.socket?.bytesWritten].join()
}
