import { errorText } from '../errors.js'
import { createDelivery } from './delivery.js'
import { logsRequest, metricsRequest } from './otlp-json.js'
import { postOtlp } from './otlp-post.js'
import { joinMetrics } from './metric.js'

/** @typedef {import('./log-record.js').LogRecord} LogRecord */
/** @typedef {{ close: (ms: number) => Promise<unknown> }} Closable */

/** What a record takes in a request beside its text, about. */
const RECORD_BYTES = 300

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
  /** How many series go into a request: fewer once the collector has refused more as too large. */
  let maxSeries = Infinity
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
      const series = (await read()).flatMap((metric) => metric.series.map((each) => ({ ...metric, series: [each] })))
      const nowMs = time()
      /** @type {string | null} */
      let failed = null
      let dropped = 0
      do {
        const metrics = joinMetrics([{ labels: {}, metrics: series.slice(0, maxSeries) }])
        const { error, rejected, isTooLarge } = await postOtlp(target, metricsRequest(metrics, { startMs, nowMs }, sender), { signal: closing.signal })
        const count = Math.min(series.length, maxSeries)
        if (isTooLarge && count > 1) {
          maxSeries = Math.ceil(count / 2)
          continue
        }
        series.splice(0, isTooLarge || error === null ? count : Infinity)
        failed ??= error
        dropped += isTooLarge ? count : rejected
      } while (series.length > 0)
      onOutcome({ error: failed, dropped })
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
  return createDelivery((/** @type {LogRecord[]} */ batch, signal) => postOtlp(target, logsRequest(batch, { nowMs: Date.now() }, sender), { signal }), { onOutcome, bytesOf: ({ text }) => RECORD_BYTES + Buffer.byteLength(text) })
}
