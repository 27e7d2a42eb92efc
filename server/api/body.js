/** More than any request needs, so that a client that sends a little too much can still read the refusal. */
const MAX_READ_BYTES = 4 * 1024 * 1024
/** When a large upload is answered, the buffers of both ends may still hold this much. */
const MAX_LATE_BYTES = 64 * 1024 * 1024

/**
 * Cuts a connection whose body does not end, as even a refused body is read to its end. Call it in the turn in which
 * reading begins.
 * @template {import('node:http').IncomingMessage} T @param {T} req @returns {T}
 */
export function cutEndlessBody (req) {
  let left = mayTakeTime(req.socket) ? MAX_LATE_BYTES : MAX_READ_BYTES
  return req.on('data', (chunk) => {
    left -= chunk.length
    if (left < 0) req.socket.destroy()
  })
}

/** A slow body may pause for this long. */
const SILENT_MS = 60_000
/** @type {WeakSet<object>} sockets */
const patient = new WeakSet()

/**
 * Lets the body of this request take longer, as long as data keeps coming.
 * @param {import('node:http').IncomingMessage} req
 */
export function takeTime (req) {
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

/** @param {object} socket */
export function mayTakeTime (socket) {
  return patient.has(socket)
}
