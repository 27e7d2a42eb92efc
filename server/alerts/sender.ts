import { createClosing } from '../system/closing.ts'
import type { Content } from './services.ts'

/** `id`: the same for every try */
export type Message = { id: string, content: Content, event: { id: number, type: string, app?: string | null } }
/** What the receiver has answered; `error`: null where it has taken the message. */
export type Answer = { status: number | null, error: string | null, canRetry: boolean }
/** sends a message once; it never throws, and never answers with what may hold a secret; `time`: wall, ms */
export type Post = (message: Message, how: { time: number, patienceMs: number, signal: AbortSignal }) => Promise<Answer>
/** The outcome of one try, or why there was none. */
export type Outcome = {
  /** `pending`: it is tried again */
  state: 'pending' | 'delivered' | 'failed',
  /** of the answer */
  status: number | null,
  durationMs: number | null,
  error: string | null,
  nextAttemptAt: string | null
}

const MAX_TRIES = 8
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000
const PATIENCE_MS = 10_000
const MAX_QUEUED = 100

/** Delivers messages to one receiver, in order, one at a time. Nobody waits for it, and it never throws. */
export function createSender (post: Post,
  { onTry, onOutcome, time = Date.now, random = Math.random, firstDelayMs = FIRST_DELAY_MS, patienceMs = PATIENCE_MS,
    maxTries = MAX_TRIES, maxQueued = MAX_QUEUED }: {
      onTry: (message: Message) => void,
      /** after each try, and for each message that is dropped */
      onOutcome: (message: Message, outcome: Outcome) => void,
      /** wall, ms */
      time?: () => number,
      random?: () => number,
      firstDelayMs?: number,
      /** for one answer */
      patienceMs?: number,
      maxTries?: number,
      maxQueued?: number
    })
{
  /** oldest first; the first one is being delivered */
  const queue: Message[] = []
  let working: Promise<void> | null = null
  const closing = createClosing()

  return {
    /** How many are not delivered yet. */
    get waiting () {
      return queue.length
    },

    push (message: Message) {
      if (closing.hasBegun) return
      queue.push(message)
      // The first one is being delivered, so the second is the oldest that can be dropped.
      if (queue.length > maxQueued)
        onOutcome(queue.splice(1, 1)[0], { ...FAILED, error: `dropped, ${maxQueued} others wait` })
      working ??= deliverQueue()
    },

    /** Tries all that wait once more, within this time. */
    close: (ms: number) => closing.end(working, ms)
  }

  async function deliverQueue () {
    while (queue.length > 0) {
      const [message] = queue
      const outcome = await deliverMessage(message)
      queue.shift()
      onOutcome(message, outcome)
    }
    working = null
  }

  /** @returns the last one */
  async function deliverMessage (message: Message): Promise<Outcome> {
    for (let tries = 1;; tries++) {
      onTry(message)
      const { canRetry, ...tried } = await attemptDelivery(message)
      if (tried.error === null) return { ...tried, state: 'delivered', nextAttemptAt: null }
      if (!canRetry || tries >= maxTries || closing.hasBegun) return { ...tried, state: 'failed', nextAttemptAt: null }
      const delayMs = delayOf(tries)
      onOutcome(message, { ...tried, state: 'pending', nextAttemptAt: new Date(time() + delayMs).toISOString() })
      await closing.pause(delayMs)
    }
  }

  function delayOf (tries: number) {
    return Math.min(MAX_DELAY_MS, firstDelayMs * 2 ** (tries - 1)) * (0.5 + random())
  }

  async function attemptDelivery (message: Message): Promise<Answer & { durationMs: number }> {
    const startTime = performance.now()
    const answer = await post(message, { time: time(), patienceMs, signal: closing.signal })
    return { ...answer, durationMs: Math.round(performance.now() - startTime) }
  }
}

/** The outcome of a message that was never tried. */
const FAILED: Outcome = Object.freeze({ state: 'failed', status: null, durationMs: null, error: null,
  nextAttemptAt: null })
