import { once } from 'node:events'

const PATIENCE_MS = 20_000

/**
 * What comes next, unless the connection ends before.
 * @param {import('node:events').EventEmitter} connection @param {string} event @returns {Promise<any[]>} what came with it
 */
export async function untilAnswer (connection, event) {
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS)
  const { signal } = over
  try {
    return await Promise.race([
      once(connection, event, { signal }),
      once(connection, 'close', { signal }).then(() => { throw new Error('closed without an answer') })
    ])
  } catch (/** @type {any} */ error) {
    throw error.name === 'AbortError' ? error.cause : error
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
