/** Nothing here takes as much; whoever sends a little too much still comes to read why it is refused. */
const MAX_READ_BYTES = 4 * 1024 * 1024

/**
 * Cuts the connection of whoever sends on and on: what reads a body reads it to its end, refused or not. To be called in
 * the turn in which its reading begins.
 * @template {import('node:http').IncomingMessage} T @param {T} req @returns {T}
 */
export function cutEndlessBody (req) {
  let left = MAX_READ_BYTES
  return req.on('data', (chunk) => {
    left -= chunk.length
    if (left < 0) req.socket.destroy()
  })
}
