import { sign } from './signature.js'

/** @typedef {ReturnType<typeof createHook>} Hook */
/** @typedef {{ id: string, body: string, what: string }} Message */

const MAX_TRIES = 8
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000
const PATIENCE_MS = 10_000
const MAX_QUEUED = 100

/**
 * Delivers messages to one address, in order, one at a time. Nobody waits for it, and it never throws.
 * @param {{ url: string, secret: string }} target
 * @param {object} options
 * @param {(reason: string) => void} options.onFailed a message was given up
 * @param {() => void} [options.onDelivered]
 * @param {() => number} [options.time] wall, ms
 * @param {() => number} [options.random]
 * @param {typeof globalThis.fetch} [options.fetch]
 * @param {number} [options.firstDelayMs]
 * @param {number} [options.patienceMs] for one answer
 * @param {number} [options.maxQueued]
 */
export function createHook ({ url, secret }, { onFailed, onDelivered = () => {}, time = Date.now, random = Math.random, fetch = globalThis.fetch, firstDelayMs = FIRST_DELAY_MS, patienceMs = PATIENCE_MS, maxQueued = MAX_QUEUED }) {
  /** @type {Message[]} oldest first; the first one is being delivered */
  const queue = []
  /** @type {Promise<void> | null} */
  let working = null
  let isClosing = false
  const closing = new AbortController()
  let wake = () => {}

  return {
    /** @param {Message} message */
    push (message) {
      if (isClosing) return
      queue.push(message)
      // The one that is under way stays; what came right after it is the oldest that can go.
      if (queue.length > maxQueued) onFailed(`${queue.splice(1, 1)[0].what}: dropped, ${maxQueued} others wait`)
      working ??= work()
    },

    /** One more try for what waits, but no longer than that. @param {number} ms */
    async close (ms) {
      isClosing = true
      wake()
      const timer = setTimeout(() => closing.abort(), ms)
      await working
      clearTimeout(timer)
    }
  }

  async function work () {
    while (queue.length > 0) {
      const reason = await deliver(queue[0])
      const [message] = queue.splice(0, 1)
      if (reason === null) onDelivered()
      else onFailed(`${message.what}: ${reason}`)
    }
    working = null
  }

  /** @param {Message} message @returns {Promise<string | null>} why it was given up */
  async function deliver (message) {
    for (let tries = 1; ; tries++) {
      const failure = await attempt(message)
      if (failure === null) return null
      if (!failure.canRetry || tries === MAX_TRIES || isClosing) return `${failure.reason}, given up after ${tries} ${tries === 1 ? 'try' : 'tries'}`
      await pause(delayOf(tries))
    }
  }

  /** @param {number} tries */
  function delayOf (tries) {
    return Math.min(MAX_DELAY_MS, firstDelayMs * 2 ** (tries - 1)) * (0.5 + random())
  }

  /** @param {number} ms cut short by `close` */
  function pause (ms) {
    return /** @type {Promise<void>} */ (new Promise((resolve) => {
      if (isClosing) return resolve()
      const timer = setTimeout(resolve, ms).unref()
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    }))
  }

  /** @param {Message} message @returns {Promise<{ reason: string, canRetry: boolean } | null>} */
  async function attempt ({ id, body }) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        // Where an answer points to was not configured.
        redirect: 'manual',
        headers: { 'content-type': 'application/json', 'user-agent': 'clusterdeck', ...sign({ id, time: time(), body }, secret) },
        body,
        signal: AbortSignal.any([AbortSignal.timeout(patienceMs), closing.signal])
      })
      await response.body?.cancel()
      const { status, ok } = response
      return ok ? null : { reason: `answered ${status}`, canRetry: status >= 500 || status === 408 || status === 429 }
    } catch (/** @type {any} */ error) {
      // Not the message: it may hold the address with what is secret in it.
      return { reason: error.name === 'TimeoutError' ? `no answer within ${patienceMs} ms` : String(error.cause?.code ?? error.name), canRetry: true }
    }
  }
}
