import { createClosing } from '../system/closing.js'

/**
 * @typedef {{ id: string, content: import('./services.js').Content, event: { id: number, type: string } }} Message  `id`: the same for every try
 *
 * What the receiver has answered; `error`: null where it has taken the message.
 * @typedef {{ status: number | null, error: string | null, canRetry: boolean }} Answer
 * @typedef {(message: Message, how: { time: number, patienceMs: number, signal: AbortSignal }) => Promise<Answer>} Post
 *   sends a message once; it never throws, and never answers with what may hold a secret; `time`: wall, ms
 *
 * The outcome of one try, or why there was none.
 * @typedef {object} Outcome
 * @property {'pending' | 'delivered' | 'failed'} state  `pending`: it is tried again
 * @property {number | null} status  of the answer
 * @property {number | null} durationMs
 * @property {string | null} error
 * @property {string | null} nextAttemptAt
 */

const MAX_TRIES = 8
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000
const PATIENCE_MS = 10_000
const MAX_QUEUED = 100

/**
 * Delivers messages to one receiver, in order, one at a time. Nobody waits for it, and it never throws.
 * @param {Post} post
 * @param {object} options
 * @param {(message: Message) => void} options.onTry
 * @param {(message: Message, outcome: Outcome) => void} options.onOutcome  after each try, and for each message that is dropped
 * @param {() => number} [options.time] wall, ms
 * @param {() => number} [options.random]
 * @param {number} [options.firstDelayMs]
 * @param {number} [options.patienceMs] for one answer
 * @param {number} [options.maxTries]
 * @param {number} [options.maxQueued]
 */
export function createSender (post, {
  onTry,
  onOutcome,
  time = Date.now,
  random = Math.random,
  firstDelayMs = FIRST_DELAY_MS,
  patienceMs = PATIENCE_MS,
  maxTries = MAX_TRIES,
  maxQueued = MAX_QUEUED
}) {
  /** @type {Message[]} oldest first; the first one is being delivered */
  const queue = []
  /** @type {Promise<void> | null} */
  let working = null
  const closing = createClosing()

  return {
    /** How many are not delivered yet. */
    get waiting () { return queue.length },

    /** @param {Message} message */
    push (message) {
      if (closing.hasBegun) return
      queue.push(message)
      // The first one is being delivered, so the second is the oldest that can be dropped.
      if (queue.length > maxQueued) onOutcome(queue.splice(1, 1)[0], { ...FAILED, error: `dropped, ${maxQueued} others wait` })
      working ??= deliverQueue()
    },

    /** Tries all that wait once more, within this time. @param {number} ms */
    close: (ms) => closing.end(working, ms)
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

  /** @param {Message} message @returns {Promise<Outcome>} the last one */
  async function deliverMessage (message) {
    for (let tries = 1; ; tries++) {
      onTry(message)
      const { canRetry, ...tried } = await attemptDelivery(message)
      if (tried.error === null) return { ...tried, state: 'delivered', nextAttemptAt: null }
      if (!canRetry || tries >= maxTries || closing.hasBegun) return { ...tried, state: 'failed', nextAttemptAt: null }
      const delayMs = delayOf(tries)
      onOutcome(message, { ...tried, state: 'pending', nextAttemptAt: new Date(time() + delayMs).toISOString() })
      await closing.pause(delayMs)
    }
  }

  /** @param {number} tries */
  function delayOf (tries) {
    return Math.min(MAX_DELAY_MS, firstDelayMs * 2 ** (tries - 1)) * (0.5 + random())
  }

  /** @param {Message} message @returns {Promise<Answer & { durationMs: number }>} */
  async function attemptDelivery (message) {
    const startTime = performance.now()
    const answer = await post(message, { time: time(), patienceMs, signal: closing.signal })
    return { ...answer, durationMs: Math.round(performance.now() - startTime) }
  }
}

/** The outcome of a message that was never tried. @type {Outcome} */
const FAILED = Object.freeze({ state: 'failed', status: null, durationMs: null, error: null, nextAttemptAt: null })
