import { setTimeout as wait } from 'node:timers/promises'

/** Waits for something that may never come, but no longer than this, and leaves no timer behind. */
export async function waitAtMost (promise: Promise<unknown>, ms: number) {
  const timer = new AbortController()
  try {
    await Promise.race([promise, wait(ms, undefined, { signal: timer.signal }).catch(() => {})])
  } finally {
    timer.abort()
  }
}
