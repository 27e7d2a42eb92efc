/** Nothing here takes as much; whoever sends a little too much still comes to read why it is refused. */
const MAX_READ_BYTES = 4 * 1024 * 1024
/** What is on its way already when somebody who may send much is answered, in the buffers of both ends. */
const MAX_LATE_BYTES = 64 * 1024 * 1024

/**
 * Cuts the connection of whoever sends on and on: what reads a body reads it to its end, refused or not. To be called in
 * the turn in which its reading begins.
 * @template {import('node:http').IncomingMessage} T @param {T} req @returns {T}
 */
export function cutEndlessBody (req) {
  let left = mayTakeTime(req.socket) ? MAX_LATE_BYTES : MAX_READ_BYTES
  return req.on('data', (chunk) => {
    left -= chunk.length
    if (left < 0) req.socket.destroy()
  })
}

/** How long one that may take its time may be silent. */
const SILENT_MS = 60_000
/** @type {WeakSet<object>} sockets */
const patient = new WeakSet()

/**
 * Of somebody who may send that much: its body may take longer than others', for as long as something comes.
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
