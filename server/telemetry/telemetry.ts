import os from 'node:os'
import { createDelivery } from './delivery.ts'
import { deckMetrics, masterMetrics, type Facts } from './deck-metrics.ts'
import { createJournal } from './journald.ts'
import { eventRecord, type LogRecord } from './log-record.ts'
import { sendLogs, sendMetrics } from './otlp.ts'
import { readOtlpSettings, type Environment } from './otlp-settings.ts'
import { createSyslog } from './syslog.ts'
import { followWorkerLines, type Logs } from './worker-lines.ts'
import type { EventStream } from '../events/stream.ts'
import type { Metric } from './metric.ts'

export type Options = { otlp: 'on' | 'off', workerOutput: 'on' | 'off', journald: 'on' | 'off', syslog?: string }
/** of log records */
type Receiver = Pick<ReturnType<typeof createDelivery<LogRecord>>, 'push' | 'room' | 'close'>

/** How long an app that ends waits for a collector. */
const CLOSE_MS = 2000

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
