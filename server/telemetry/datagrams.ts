import type { LogRecord } from './log-record.ts'
import type { Outcome } from './otlp-post.ts'

const DELIVERED: Outcome = Object.freeze({ error: null, canRetry: false, retryAfterMs: null, rejected: 0 })

/**
 * Sends each record of a batch as a datagram of its own. Where one fails, those before it are not sent again with the
 * rest. `deliver`: resolves with the reason why it was not sent; null: it was.
 */
export function sendEach (
  deliver: (record: LogRecord) => Promise<string | null>
): (batch: LogRecord[]) => Promise<Outcome> {
  const sent: WeakSet<LogRecord> = new WeakSet()
  return async (batch) => {
    for (const record of batch) {
      if (sent.has(record)) continue
      const error = await deliver(record)
      if (error !== null) return { ...DELIVERED, error, canRetry: true }
      sent.add(record)
    }
    return DELIVERED
  }
}

/** The priorities of syslog(3), which journald has too. */
export const PRIORITIES: Readonly<Record<LogRecord['level'], number>> = Object.freeze({ error: 3, warn: 4, info: 6,
  debug: 7, none: 6 })
/** The number of `daemon` in syslog(3). */
export const FACILITY = 3
export const TAKES_NOTHING = 'its socket takes nothing'
export const NEEDS_KOFFI = 'it takes Linux and the optional package koffi'
