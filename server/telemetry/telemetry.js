import os from 'node:os'
import { createDelivery } from './delivery.js'
import { deckMetrics, masterMetrics } from './deck-metrics.js'
import { createJournal } from './journald.js'
import { eventRecord } from './log-record.js'
import { sendLogs, sendMetrics } from './otlp.js'
import { readOtlpSettings } from './otlp-settings.js'
import { createSyslog } from './syslog.js'
import { followWorkerLines } from './worker-lines.js'

/** @typedef {import('./otlp-settings.js').Environment} Environment */
/** @typedef {{ otlp: 'on' | 'off', workerOutput: 'on' | 'off', journald: 'on' | 'off', syslog?: string }} Options */
/** @typedef {Pick<ReturnType<typeof createDelivery<import('./log-record.js').LogRecord>>, 'push' | 'room' | 'close'>} Receiver  of log records */

/** How long an app that ends waits for a collector. */
const CLOSE_MS = 2000

/**
 * Sends metrics, events and what the workers write to those who collect these: OpenTelemetry, where the environment of the app names a
 * collector, journald and syslog.
 * @param {object} parts
 * @param {Options} parts.options
 * @param {Environment} parts.environment  of the workers
 * @param {{ name: string }} parts.app
 * @param {{ version: string, nodeVersion: string, isShared: boolean }} parts.master  `isShared`: its own figures are not of this app alone
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {import('./worker-lines.js').Logs} parts.logs
 * @param {() => Promise<import('./metric.js').Metric[]>} parts.readApp  what the app counts itself
 * @param {() => import('./deck-metrics.js').Facts} parts.facts
 */
export function startTelemetry ({ options, environment, app, master, events, logs, readApp, facts }) {
  const otlp = readOtlpSettings(options.otlp === 'on' ? environment : {})
  const sender = { version: master.version, attributes: resourceOf(otlp.resource, app.name, master.version) }
  const outcomes = createOutcomes(events)
  for (const problem of otlp.problems) outcomes.tell(problem)
  const metrics = otlp.metrics && sendMetrics(otlp.metrics, { intervalMs: otlp.intervalMs, read: readAll, sender, onOutcome: outcomes.of('The collector', 'metrics') })
  const receivers = openReceivers()
  const unsubscribe = receivers.length === 0 ? () => {} : events.subscribe((event) => { if (!event.type.startsWith('telemetry.')) tellAll(eventRecord(event)) })
  const lines = receivers.length > 0 && options.workerOutput === 'on' ? followWorkerLines(logs, { push: tellAll, room: () => Math.min(...receivers.map(({ room }) => room)) }) : null

  return {
    async close () {
      outcomes.close()
      await lines?.stop()
      unsubscribe()
      await Promise.all([metrics, ...receivers].map((each) => each?.close(CLOSE_MS)))
    }
  }

  /** @returns {Receiver[]} */
  function openReceivers () {
    const journal = options.journald === 'on' ? createDelivery(createJournal({ identifier: app.name }), { onOutcome: outcomes.of('journald', 'records') }) : null
    return [otlp.logs && sendLogs(otlp.logs, { sender, onOutcome: outcomes.of('The collector', 'logs') }), journal, openSyslog()].filter((each) => each !== null)
  }

  /** @returns {Receiver | null} */
  function openSyslog () {
    if (options.syslog === undefined) return null
    const syslog = createSyslog(options.syslog, { app: app.name })
    const delivery = createDelivery(syslog.send, { onOutcome: outcomes.of('syslog', 'records') })
    return { push: delivery.push, get room () { return delivery.room }, close: (ms) => delivery.close(ms).finally(syslog.close) }
  }

  /** @param {import('./log-record.js').LogRecord} record */
  function tellAll (record) {
    for (const { push } of receivers) push(record)
  }

  async function readAll () {
    return [...master.isShared ? [] : masterMetrics(master), ...deckMetrics(facts()), ...await readApp()]
  }
}

/** @param {Record<string, string>} named @param {string} name @param {string} version */
function resourceOf (named, name, version) {
  const host = os.hostname()
  return { 'service.name': name, 'service.instance.id': `clusterdeck-${name}@${host}`, 'host.name': host, 'telemetry.distro.name': 'clusterdeck', 'telemetry.distro.version': version, ...named }
}

/** Publishes one event when a receiver begins to fail, and one when it takes records again. @param {import('../events/stream.js').EventStream} events */
function createOutcomes (events) {
  /** @type {Map<string, number>} how many records are lost since it fails, by receiver and kind */
  const failing = new Map()
  /** The receivers whose refusal of some records has been published. @type {Set<string>} */
  const refused = new Set()
  let isClosed = false

  return {
    close () { isClosed = true },

    /** @param {string} problem */
    tell: (problem) => events.publish({ type: 'telemetry.failed', actor: 'system', message: problem }),

    /** @param {string} who @param {string} what @returns {(outcome: { error: string | null, dropped: number }) => void} */
    of: (who, what) => ({ error, dropped }) => {
      if (isClosed) return
      const key = `${who} ${what}`
      const before = failing.get(key)
      if (error !== null) {
        failing.set(key, (before ?? 0) + dropped)
        if (before === undefined) events.publish({ type: 'telemetry.failed', actor: 'system', message: `${who} does not take ${what}: ${error}` })
      } else if (before !== undefined) {
        failing.delete(key)
        const lost = before + dropped
        events.publish({ type: 'telemetry.recovered', actor: 'system', message: `${who} takes ${what} again${lost > 0 ? `; ${lost.toLocaleString('en-US')} were lost` : ''}` })
      } else if (dropped > 0 && !refused.has(key)) {
        refused.add(key)
        events.publish({ type: 'telemetry.failed', actor: 'system', message: `${who} has refused ${dropped.toLocaleString('en-US')} of the ${what}` })
      }
    }
  }
}
