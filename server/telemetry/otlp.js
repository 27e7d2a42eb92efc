import { errorText } from '../errors.js'
import { createDelivery } from './delivery.js'
import { logsRequest, metricsRequest } from './otlp-json.js'
import { postOtlp } from './otlp-post.js'

/** @typedef {import('./log-record.js').LogRecord} LogRecord */
/** @typedef {{ close: (ms: number) => Promise<unknown> }} Closable */

/**
 * Sends metrics to a collector at regular times. What fails is not tried again: the next sums have all of it.
 * @param {import('./otlp-settings.js').OtlpTarget} target
 * @param {object} parts
 * @param {number} parts.intervalMs
 * @param {() => Promise<import('./metric.js').Metric[]>} parts.read
 * @param {import('./otlp-json.js').Sender} parts.sender
 * @param {(outcome: { error: string | null, dropped: number }) => void} parts.onOutcome
 * @param {() => number} [parts.time]  wall, ms
 * @returns {Closable}
 */
export function sendMetrics (target, { intervalMs, read, sender, onOutcome, time = Date.now }) {
  const startMs = time()
  const closing = new AbortController()
  let isClosed = false
  /** @type {NodeJS.Timeout} */
  let timer
  planNext()

  return {
    async close (ms) {
      isClosed = true
      clearTimeout(timer)
      const limit = setTimeout(() => closing.abort(), ms)
      await sendOnce()
      clearTimeout(limit)
    }
  }

  function planNext () {
    timer = setTimeout(() => sendOnce().then(() => { if (!isClosed) planNext() }), intervalMs).unref()
  }

  async function sendOnce () {
    try {
      const metrics = await read()
      const { error, rejected } = await postOtlp(target, metricsRequest(metrics, { startMs, nowMs: time() }, sender), { signal: closing.signal })
      onOutcome({ error, dropped: rejected })
    } catch (error) {
      onOutcome({ error: errorText(error), dropped: 0 })
    }
  }
}

/**
 * @param {import('./otlp-settings.js').OtlpTarget} target
 * @param {{ sender: import('./otlp-json.js').Sender, onOutcome: (outcome: { error: string | null, dropped: number }) => void }} parts
 */
export function sendLogs (target, { sender, onOutcome }) {
  return createDelivery((/** @type {LogRecord[]} */ batch, signal) => postOtlp(target, logsRequest(batch, { nowMs: Date.now() }, sender), { signal }), { onOutcome })
}
