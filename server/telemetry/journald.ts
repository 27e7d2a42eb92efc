import { loadPosix } from '../system/posix.ts'
import { FACILITY, NEEDS_KOFFI, PRIORITIES, sendEach, TAKES_NOTHING } from './datagrams.ts'
import type { LogRecord } from './log-record.ts'

const SOCKET = '/run/systemd/journal/socket'
const MAX_NAME_CHARS = 64

/**
 * Sends records to journald by its native protocol, which has fields: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/.
 * `identifier`: for `journalctl -t`.
 */
export function createJournal (
  { identifier, path = SOCKET, load = loadPosix }: { identifier: string, path?: string, load?: typeof loadPosix }
) {
  return sendEach(async (record) => {
    const posix = load()
    if (!posix) return NEEDS_KOFFI
    return posix.sendDatagram(path, journalEntry(record, identifier)) ? null : TAKES_NOTHING
  })
}

export function journalEntry ({ level, text, event, attributes, trace }: LogRecord, identifier: string): Buffer {
  const fields = { MESSAGE: text, PRIORITY: PRIORITIES[level], SYSLOG_IDENTIFIER: identifier, SYSLOG_FACILITY: FACILITY,
    ...event !== null && { CLUSTERDECK_EVENT: event },
    ...Object.fromEntries(
      Object.entries(attributes).map((
        [name, value]
      ) => [name.toUpperCase().replace(/[^A-Z0-9]/g, '_').slice(0, MAX_NAME_CHARS), value])
    ), ...trace && { TRACE_ID: trace.traceId, ...trace.spanId && { SPAN_ID: trace.spanId } } }
  return Buffer.concat(Object.entries(fields).map(([name, value]) => fieldOf(name, String(value))))
}

/** A value of several lines has its length before it, as nobody could tell its end. */
function fieldOf (name: string, value: string) {
  if (!value.includes('\n')) return Buffer.from(`${name}=${value}\n`)
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(bytes.length))
  return Buffer.concat([Buffer.from(`${name}\n`), length, bytes, Buffer.from('\n')])
}
