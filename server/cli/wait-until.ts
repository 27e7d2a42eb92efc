import { setTimeout as wait } from 'node:timers/promises'
import { timedOut } from './api-client.ts'

const POLL_MS = 100

/** @throws {import('../errors.ts').DeckError} timed-out */
export async function waitUntil (isDone: () => boolean | Promise<boolean>, signal: AbortSignal, timeoutMs: number) {
  while (!await isDone()) {
    if (signal.aborted) throw timedOut(timeoutMs)
    await wait(POLL_MS)
  }
}
