import type { IncomingMessage } from 'node:http'

/** More than any request needs, so that a client that sends a little too much can still read the refusal. */
const MAX_READ_BYTES = 4 * 1024 * 1024
/** When a large upload is answered, the buffers of both ends may still hold this much. */
const MAX_LATE_BYTES = 64 * 1024 * 1024

/**
 * Cuts a connection whose body does not end, as even a refused body is read to its end. Call it in the turn in which
 * reading begins.
 */
export function cutEndlessBody<T extends IncomingMessage> (req: T): T {
  let left = mayTakeTime(req.socket) ? MAX_LATE_BYTES : MAX_READ_BYTES
  return req.on('data', (chunk) => {
    left -= chunk.length
    if (left < 0) req.socket.destroy()
  })
}

/** A slow body may pause for this long. */
const SILENT_MS = 60_000
/** sockets */
const patient: WeakSet<object> = new WeakSet()

/** Lets the body of this request take longer, as long as data keeps coming. */
export function takeTime (req: IncomingMessage) {
  const { socket } = req
  patient.add(socket)
  let seen = -1
  const watch = setInterval(() => {
    if (socket.bytesRead === seen) socket.destroy()
    seen = socket.bytesRead
  }, SILENT_MS)
  watch.unref()
  req.once('close', () => {
    patient.delete(socket)
    clearInterval(watch)
  })
}

export function mayTakeTime (socket: object) {
  return patient.has(socket)
}
