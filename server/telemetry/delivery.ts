import { errorText } from '../errors.ts'
import { createClosing } from '../system/closing.ts'
import type { Outcome } from './otlp-post.ts'

const MAX_WAITING = 2048
const MAX_BATCH = 512
/** Some receivers take no more than 1 MB a request. */
const MAX_BATCH_BYTES = 512 * 1024
const BATCH_MS = 1000
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000

/**
 * Delivers records in batches, in order, one batch at a time. Nobody waits for it, and it never throws. What is too
 * much while the receiver does not answer is dropped, oldest first, but for the batch that is being sent. A batch that
 * is too large for the receiver is halved until it fits; the next ones are no larger.
 */
export function createDelivery<T> (send: (batch: T[], signal: AbortSignal) => Promise<Outcome>,
  { onOutcome = () => {}, batchMs = BATCH_MS, firstDelayMs = FIRST_DELAY_MS, maxWaiting = MAX_WAITING,
    bytesOf = () => 1, random = Math.random }: {
      /** after each try; `error`: null where it was delivered */
      onOutcome?: (trouble: { error: string | null, dropped: number }) => void,
      /** how long the first record waits for others */
      batchMs?: number,
      /** before the second try */
      firstDelayMs?: number,
      maxWaiting?: number,
      /** about as many as a record takes in a request */
      bytesOf?: (record: T) => number,
      random?: () => number
    } = {})
{
  /** oldest first, and so the batch that is being sent comes first */
  const waiting: T[] = []
  let sending = 0
  let dropped = 0
  let maxBytes = MAX_BATCH_BYTES
  let working: Promise<void> | null = null
  const closing = createClosing()

  return {
    /** How many more it takes without dropping any. */
    get room () {
      return maxWaiting - waiting.length
    },

    push (record: T) {
      if (closing.hasBegun) return
      waiting.push(record)
      if (waiting.length > maxWaiting) dropped += waiting.splice(sending, 1).length
      working ??= deliverAll()
    },

    /** Tries once more to deliver what waits, within this time. */
    close: (ms: number) => closing.end(working, ms)
  }

  async function deliverAll () {
    await closing.pause(batchMs)
    while (waiting.length > 0) {
      const batch = nextBatch()
      sending = batch.length
      if (await deliverBatch(batch)) waiting.splice(0, sending)
      else maxBytes = batch.reduce((sum, record) => sum + bytesOf(record), 0) / 2
      sending = 0
    }
    working = null
  }

  function nextBatch (): T[] {
    let [count, bytes] = [1, bytesOf(waiting[0])]
    while (count < Math.min(MAX_BATCH, waiting.length) && (bytes += bytesOf(waiting[count])) <= maxBytes) count++
    return waiting.slice(0, count)
  }

  /** False: it is too large for one request */
  async function deliverBatch (batch: T[]): Promise<boolean> {
    for (let tries = 1;; tries++) {
      const { error, canRetry, retryAfterMs, rejected, isTooLarge = false } = await trySending(batch)
      if (isTooLarge && batch.length > 1) return false
      const isLast = error === null || !canRetry || closing.hasBegun
      dropped += isLast && error !== null ? batch.length : rejected
      onOutcome({ error, dropped })
      dropped = 0
      // Whoever refuses even one record is not asked again at once.
      if (isLast && isTooLarge) await closing.pause(firstDelayMs)
      if (isLast) return true
      await closing.pause(Math.min(MAX_DELAY_MS, retryAfterMs ?? firstDelayMs * 2 ** (tries - 1) * (0.5 + random())))
    }
  }

  async function trySending (batch: T[]): Promise<Outcome> {
    try {
      return await send(batch, closing.signal)
    } catch (error) {
      return { error: errorText(error), canRetry: false, retryAfterMs: null, rejected: 0 }
    }
  }
}
