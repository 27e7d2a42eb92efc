import os from 'node:os'
import { loadPosix } from '../system/posix.ts'
import { createDelivery } from './delivery.ts'
import { deckMetrics, masterMetrics, type Facts } from './deck-metrics.ts'
import { eventRecord, lineRecord, type LogRecord } from './log-record.ts'
import { sendLogs, sendMetrics } from './otlp.ts'
import { readOtlpSettings, type Environment } from './otlp-settings.ts'
import { createSyslog } from './syslog.ts'
import { FACILITY, NEEDS_KOFFI, PRIORITIES, sendEach, TAKES_NOTHING } from './datagrams.ts'
import type { EventStream } from '../events/stream.ts'
import type { Metric } from './metric.ts'

export type Options = { otlp: 'on' | 'off', workerOutput: 'on' | 'off', journald: 'on' | 'off', syslog?: string }
/** of log records */
type Receiver = Pick<ReturnType<typeof createDelivery<LogRecord>>, 'push' | 'room' | 'close'>

type Stream = 'stdout' | 'stderr'
type Cursor = { lag: () => number, read: (maxBytes: number) => Promise<{ lines: string[] }> }
/** What is needed of the logs. */
type Logs = { slots: () => number[], begin: (slot: number) => Record<Stream, number>,
  cursor: (slot: number, stream: Stream, position: number) => Cursor }

/** How long an app that ends waits for a collector. */
const CLOSE_MS = 2000

const STREAMS = ['stdout', 'stderr'] as const
const EVERY_MS = 1000
const READ_BYTES = 64 * 1024
/** With less room for records, so few bytes would be read at a time that it is better to wait. */
const MIN_ROOM = 32

const SOCKET = '/run/systemd/journal/socket'
const MAX_NAME_CHARS = 64

/**
 * Sends metrics, events and what the workers write to those who collect these: OpenTelemetry, where the environment of
 * the app names a collector, journald and syslog.
 */
export function startTelemetry ({ options, environment, app, master, events, logs, readApp, facts }: {
  options: Options,
  /** of the workers */
  environment: Environment,
  app: { name: string },
  /** `isShared`: its own figures are not of this app alone */
  master: { version: string, nodeVersion: string, isShared: boolean },
  events: EventStream,
  logs: Logs,
  /** what the app counts itself */
  readApp: () => Promise<Metric[]>,
  facts: () => Facts
}) {
  const otlp = readOtlpSettings(options.otlp === 'on' ? environment : {})
  const sender = { version: master.version, attributes: resourceOf(otlp.resource, app.name, master.version) }
  const outcomes = createOutcomes(events)
  for (const problem of otlp.problems) outcomes.tell(problem)
  const metrics = otlp.metrics &&
    sendMetrics(otlp.metrics, { intervalMs: otlp.intervalMs, read: readAll, sender,
      onOutcome: outcomes.of('The collector', 'metrics') })
  const receivers = openReceivers()
  const unsubscribe = receivers.length === 0 ? () => {} : events.subscribe((event) => {
    if (!event.type.startsWith('telemetry.')) tellAll(eventRecord(event))
  })
  const lines = receivers.length > 0 && options.workerOutput === 'on'
    ? followWorkerLines(logs, { push: tellAll, room: () => Math.min(...receivers.map(({ room }) => room)) })
    : null

  return { async close () {
    outcomes.close()
    await lines?.stop()
    unsubscribe()
    await Promise.all([metrics, ...receivers].map((each) => each?.close(CLOSE_MS)))
  } }

  function openReceivers (): Receiver[] {
    const journal = options.journald === 'on'
      ? createDelivery(createJournal({ identifier: app.name }), { onOutcome: outcomes.of('journald', 'records') })
      : null
    return [otlp.logs && sendLogs(otlp.logs, { sender, onOutcome: outcomes.of('The collector', 'logs') }), journal,
      openSyslog()].filter((each) => each !== null)
  }

  function openSyslog (): Receiver | null {
    if (options.syslog === undefined) return null
    const syslog = createSyslog(options.syslog, { app: app.name })
    const delivery = createDelivery(syslog.send, { onOutcome: outcomes.of('syslog', 'records') })
    return { push: delivery.push, get room () {
      return delivery.room
    }, close: (ms) => delivery.close(ms).finally(syslog.close) }
  }

  function tellAll (record: LogRecord) {
    for (const { push } of receivers) push(record)
  }

  async function readAll () {
    return [...master.isShared ? [] : masterMetrics(master), ...deckMetrics(facts()), ...await readApp()]
  }
}

function resourceOf (named: Record<string, string>, name: string, version: string) {
  const host = os.hostname()
  return { 'service.name': name, 'service.instance.id': `clusterdeck-${name}@${host}`, 'host.name': host,
    'telemetry.distro.name': 'clusterdeck', 'telemetry.distro.version': version, ...named }
}

/** Publishes one event when a receiver begins to fail, and one when it takes records again. */
function createOutcomes (events: EventStream) {
  /** how many records are lost since it fails, by receiver and kind */
  const failing: Map<string, number> = new Map()
  /** The receivers whose refusal of some records has been published. */
  const refused: Set<string> = new Set()
  let isClosed = false

  return { close () {
    isClosed = true
  }, tell: (problem: string) => events.publish({ type: 'telemetry.failed', actor: 'system', message: problem }),
    of:
      (who: string, what: string): (outcome: { error: string | null, dropped: number }) => void =>
      ({ error, dropped }) => {
        if (isClosed) return
        const key = `${who} ${what}`
        const before = failing.get(key)
        if (error !== null) {
          failing.set(key, (before ?? 0) + dropped)
          if (before === undefined)
            events.publish({ type: 'telemetry.failed', actor: 'system',
              message: `${who} does not take ${what}: ${error}` })
        } else if (before !== undefined) {
          failing.delete(key)
          const lost = before + dropped
          events.publish({ type: 'telemetry.recovered', actor: 'system',
            message: `${who} takes ${what} again${lost > 0 ? `; ${lost.toLocaleString('en-US')} were lost` : ''}` })
        } else if (dropped > 0 && !refused.has(key)) {
          refused.add(key)
          events.publish({ type: 'telemetry.failed', actor: 'system',
            message: `${who} has refused ${dropped.toLocaleString('en-US')} of the ${what}` })
        }
      } }
}

/**
 * Reads what the workers write from their log files, as fast as it is taken: what is not taken yet stays in the files.
 * `room`: for how many records; `now`: wall, ms.
 */
export function followWorkerLines (logs: Logs,
  { push, room, now = Date.now, setTimer = setTimeout }: { push: (record: LogRecord) => void, room: () => number,
    now?: () => number, setTimer?: (work: () => void, ms: number) => { unref: () => unknown } })
{
  const cursors: Map<string, Cursor> = new Map()
  let isStopped = false
  let reading: Promise<void> = Promise.resolve()
  waitForMore()

  return {
    /** Reads once more what is there. */
    async stop () {
      isStopped = true
      await reading
      await readAll()
    }
  }

  function waitForMore () {
    setTimer(() => {
      if (isStopped) return
      reading = readAll().then(waitForMore)
    }, EVERY_MS).unref()
  }

  async function readAll () {
    for (const slot of logs.slots()) for (const stream of STREAMS) await readStream(slot, stream)
  }

  async function readStream (slot: number, stream: Stream) {
    try {
      const cursor = cursorOf(slot, stream)
      while (room() >= MIN_ROOM && cursor.lag() > 0) {
        // A line that is told has two bytes or more.
        const { lines } = await cursor.read(Math.min(READ_BYTES, 2 * room()))
        const at = now()
        for (const text of lines) if (text !== '') push(lineRecord({ slot, stream, text, at }))
      }
    } catch {
      // ENOENT, EACCES: the logs report it themselves.
    }
  }

  function cursorOf (slot: number, stream: Stream) {
    const key = `${slot}.${stream}`
    const cursor = cursors.get(key) ?? logs.cursor(slot, stream, logs.begin(slot)[stream])
    cursors.set(key, cursor)
    return cursor
  }
}

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

function journalEntry ({ level, text, event, attributes, trace }: LogRecord, identifier: string): Buffer {
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
