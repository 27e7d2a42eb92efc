import { once, type EventEmitter } from 'node:events'

const PATIENCE_MS = 20_000

/** What comes next, unless the connection ends before. Returns what came with it. */
export async function untilAnswer (connection: EventEmitter, event: string) {
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS)
  const { signal } = over
  try {
    return await Promise.race([once(connection, event, { signal }), once(connection, 'close', { signal }).then(() => {
      throw new Error('closed without an answer')
    })])
  } catch (error) {
    throw error instanceof Error && error.name === 'AbortError' ? error.cause : error
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
