import { privateField } from './private-field.ts'
import type { ServerHttp2Stream as Stream } from 'node:http2'
import type { AnyResponse as Response, AnySocket as Socket } from './node-internals.d.ts'

/** `movedAt`: null: not since the first look */
type Seen = { beganAt: number, bytes: string, movedAt: number | null }

/** Tells which requests still move, by the bytes that have come and gone since the last look. */
export function createProgress ({ stalledMs, now }: { stalledMs: number, now: () => number }) {
  /** by request */
  const seen: WeakMap<Response | Stream, Seen> = new WeakMap()

  return {
    /** Tells whether it is a transfer */
    look (request: Response | Stream, carrier: Socket | Stream): boolean {
      const bytes = 'session' in carrier ? bytesOfStream(carrier) : bytesOfSocket(carrier)
      const { beganAt, ...last } = seen.get(request) ?? { beganAt: now(), bytes, movedAt: null }
      const movedAt = last.bytes === bytes ? last.movedAt : now()
      seen.set(request, { beganAt, bytes, movedAt })
      return movedAt !== null && now() - movedAt < stalledMs
    },

    /** @returns since when it was looked at */
    beganAt: (request: Response | Stream): number => seen.get(request)?.beganAt ?? now(),

    hasMoved: (request: Response | Stream) => (seen.get(request)?.movedAt ?? null) !== null
  }
}

function bytesOfSocket (socket: Socket) {
  return `${socket.bytesRead},${sentBytes(socket)}`
}

/** `socket`: A large piece counts as written once all of it is with the system; what waits below gets less meanwhile */
export function sentBytes (socket: Socket) {
  const below = socket._parent ?? socket
  return `${socket.bytesWritten - socket.writableLength},${below._handle?.writeQueueSize}`
}

function bytesOfStream (stream: Stream) {
  const handle: { bytesRead: number, bytesWritten: number } | undefined = privateField(stream, 'kHandle')
  const written = (handle?.bytesWritten ?? 0) - stream.writableLength
  // Of a large piece only its session tells how much has gone.
  return [handle?.bytesRead, written, stream.writableLength > 0 && stream.session?.socket?.bytesWritten].join()
}
