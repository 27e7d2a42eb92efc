/**
 * An answer that goes on (WHATWG HTML, 9.2): until its reader goes, is signed out, or the admin port closes.
 * @typedef {object} StreamParts
 * @property {(req: import('node:http').IncomingMessage) => unknown} authenticate
 * @property {Pick<typeof globalThis, 'setInterval' | 'clearInterval'>} timers
 * @property {AbortSignal} closing  aborted when the admin port closes
 * @typedef {ReturnType<typeof openStream>} Stream
 */

const HEARTBEAT_MS = 15_000

export const EVENT_STREAM = 'text/event-stream'

/**
 * @param {Pick<import('./endpoint.js').Call, 'req' | 'res'>} call
 * @param {StreamParts} parts
 * @param {{ onClosing?: () => void }} [options] `onClosing`: instead of ending at once when the admin port closes
 */
export function openStream ({ req, res }, { authenticate, timers, closing }, { onClosing = () => { res.end() } } = {}) {
  res.set({ 'Content-Type': `${EVENT_STREAM}; charset=utf-8`, 'X-Accel-Buffering': 'no' })
  const heartbeat = timers.setInterval(() => write(': heartbeat\n\n'), HEARTBEAT_MS)
  res.once('close', () => {
    timers.clearInterval(heartbeat)
    closing.removeEventListener('abort', onClosing)
  })
  // A HEAD asks for these headers alone.
  if (req.method === 'HEAD') end()
  else write('retry: 3000\n\n')
  closing.addEventListener('abort', onClosing)
  if (closing.aborted) queueMicrotask(onClosing)

  return { res, write, end, isOpen }

  function isOpen () {
    return !res.writableEnded && !res.destroyed
  }

  function end () {
    res.end()
  }

  /** @param {string} text */
  function write (text) {
    if (!isOpen()) return
    // Signed out, or the session is over: this stream must not outlive it.
    if (!authenticate(req)) end()
    else res.write(text)
  }
}
