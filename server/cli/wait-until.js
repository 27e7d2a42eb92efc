import { setTimeout as wait } from 'node:timers/promises'
import { timedOut } from './api-client.js'

const POLL_MS = 100

/**
 * @param {() => boolean | Promise<boolean>} isDone @param {AbortSignal} signal @param {number} timeoutMs
 * @throws {import('../errors.js').DeckError} timed-out
 */
export async function waitUntil (isDone, signal, timeoutMs) {
  while (!await isDone()) {
    if (signal.aborted) throw timedOut(timeoutMs)
    await wait(POLL_MS)
  }
}
