import { errorText } from '../errors.ts'
import { createDelivery } from './delivery.ts'
import { logsRequest, metricsRequest, type Sender } from './otlp-json.ts'
import { postOtlp } from './otlp-post.ts'
import { joinMetrics, type Metric } from './metric.ts'
import type { LogRecord } from './log-record.ts'
import type { OtlpTarget } from './otlp-settings.ts'

type Closable = { close: (ms: number) => Promise<unknown> }

/** What a record takes in a request beside its text, about. */
const RECORD_BYTES = 300

/** Sends metrics to a collector at regular times. What fails is not tried again: the next sums have all of it. */
export function sendMetrics (target: OtlpTarget, { intervalMs, read, sender, onOutcome, time = Date.now }: {
  intervalMs: number,
  read: () => Promise<Metric[]>,
  sender: Sender,
  onOutcome: (outcome: { error: string | null, dropped: number }) => void,
  /** wall, ms */
  time?: () => number
}): Closable {
  const startMs = time()
  const closing = new AbortController()
  let isClosed = false
  /** How many series go into a request: fewer once the collector has refused more as too large. */
  let maxSeries = Infinity
  let timer: NodeJS.Timeout
  planNext()

  return { async close (ms) {
    isClosed = true
    clearTimeout(timer)
    const limit = setTimeout(() => closing.abort(), ms)
    await sendOnce()
    clearTimeout(limit)
  } }

  function planNext () {
    timer = setTimeout(() =>
      sendOnce().then(() => {
        if (!isClosed) planNext()
      }), intervalMs).unref()
  }

  async function sendOnce () {
    try {
      const series = (await read()).flatMap((metric) => metric.series.map((each) => ({ ...metric, series: [each] })))
      const nowMs = time()
      let failed: string | null = null
      let dropped = 0
      do {
        const metrics = joinMetrics([{ labels: {}, metrics: series.slice(0, maxSeries) }])
        const { error, rejected, isTooLarge } = await postOtlp(target,
          metricsRequest(metrics, { startMs, nowMs }, sender), { signal: closing.signal })
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

export function sendLogs (target: OtlpTarget,
  { sender, onOutcome }: { sender: Sender, onOutcome: (outcome: { error: string | null, dropped: number }) => void })
{
  return createDelivery(
    (batch: LogRecord[], signal) => postOtlp(target, logsRequest(batch, { nowMs: Date.now() }, sender), { signal }),
    { onOutcome, bytesOf: ({ text }) =>
      RECORD_BYTES + Buffer.byteLength(text) }
  )
}
