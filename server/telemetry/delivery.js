import { errorText } from '../errors.js'
import { createClosing } from '../system/closing.js'

/** @typedef {import('./otlp-post.js').Outcome} Outcome */

const MAX_WAITING = 2048
const MAX_BATCH = 512
const BATCH_MS = 1000
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000

/**
 * Delivers records in batches, in order, one batch at a time. Nobody waits for it, and it never throws. What is too much while the
 * receiver does not answer is dropped, oldest first, but for the batch that is being sent.
 * @template T
 * @param {(batch: T[], signal: AbortSignal) => Promise<Outcome>} send
 * @param {object} [options]
 * @param {(trouble: { error: string | null, dropped: number }) => void} [options.onOutcome]  after each try; `error`: null where it was delivered
 * @param {number} [options.batchMs]  how long the first record waits for others
 * @param {number} [options.firstDelayMs]  before the second try
 * @param {number} [options.maxWaiting]
 * @param {() => number} [options.random]
 */
export function createDelivery (send, { onOutcome = () => {}, batchMs = BATCH_MS, firstDelayMs = FIRST_DELAY_MS, maxWaiting = MAX_WAITING, random = Math.random } = {}) {
  /** @type {T[]} oldest first, and so the batch that is being sent comes first */
  const waiting = []
  let sending = 0
  let dropped = 0
  /** @type {Promise<void> | null} */
  let working = null
  const closing = createClosing()

  return {
    /** How many more it takes without dropping any. */
    get room () { return maxWaiting - waiting.length },

    /** @param {T} record */
    push (record) {
      if (closing.hasBegun) return
      waiting.push(record)
      if (waiting.length > maxWaiting) dropped += waiting.splice(sending, 1).length
      working ??= deliverAll()
    },

    /** Tries once more to deliver what waits, within this time. @param {number} ms */
    close: (ms) => closing.end(working, ms)
  }

  async function deliverAll () {
    await closing.pause(batchMs)
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_BATCH)
      sending = batch.length
      await deliverBatch(batch)
      waiting.splice(0, sending)
      sending = 0
    }
    working = null
  }

  /** @param {T[]} batch */
  async function deliverBatch (batch) {
    for (let tries = 1; ; tries++) {
      const { error, canRetry, retryAfterMs, rejected } = await trySending(batch)
      const isLast = error === null || !canRetry || closing.hasBegun
      dropped += isLast && error !== null ? batch.length : rejected
      onOutcome({ error, dropped })
      dropped = 0
      if (isLast) return
      await closing.pause(Math.min(MAX_DELAY_MS, retryAfterMs ?? firstDelayMs * 2 ** (tries - 1) * (0.5 + random())))
    }
  }

  /** @param {T[]} batch @returns {Promise<Outcome>} */
  async function trySending (batch) {
    try {
      return await send(batch, closing.signal)
    } catch (error) {
      return { error: errorText(error), canRetry: false, retryAfterMs: null, rejected: 0 }
    }
  }
}
