import { privateField } from './private-field.js'

/**
 * @typedef {import('./node-internals.d.ts').AnySocket} Socket
 * @typedef {import('node:http2').ServerHttp2Stream} Stream
 */

/**
 * Tells which requests still move, by the bytes that have come and gone since the last look.
 * @param {{ stalledMs: number, now?: () => number }} options
 */
export function createProgress ({ stalledMs, now = () => performance.now() }) {
  /** `movedAt`: null: not since the first look. @type {WeakMap<Socket | Stream, { bytes: string, movedAt: number | null }>} */
  const seen = new WeakMap()

  return {
    /** @param {Socket | Stream} carrier  of the request @returns {boolean} whether it is a transfer */
    look (carrier) {
      const bytes = 'session' in carrier ? bytesOfStream(carrier) : bytesOfSocket(carrier)
      const last = seen.get(carrier)
      const movedAt = last && last.bytes !== bytes ? now() : last?.movedAt ?? null
      seen.set(carrier, { bytes, movedAt })
      return movedAt !== null && now() - movedAt < stalledMs
    },

    /** @param {Socket | Stream} carrier */
    hasMoved: (carrier) => (seen.get(carrier)?.movedAt ?? null) !== null
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
