import { setTimeout as wait } from 'node:timers/promises'

/**
 * Waits for something that may never come, but no longer than this, and leaves no timer behind.
 * @param {Promise<unknown>} promise @param {number} ms
 */
export async function waitAtMost (promise, ms) {
  const timer = new AbortController()
  try {
    await Promise.race([promise, wait(ms, undefined, { signal: timer.signal }).catch(() => {})])
  } finally {
    timer.abort()
  }
}
