import os from 'node:os'
import { deckMetrics, masterMetrics } from './deck-metrics.js'
import { eventRecord } from './log-record.js'
import { sendLogs, sendMetrics } from './otlp.js'
import { readOtlpSettings } from './otlp-settings.js'
import { followWorkerLines } from './worker-lines.js'

/** @typedef {import('./otlp-settings.js').Environment} Environment */
/** @typedef {{ otlp: 'on' | 'off', workerOutput: 'on' | 'off' }} Options */

/** How long an app that ends waits for a collector. */
const CLOSE_MS = 2000

/**
 * Sends metrics and events of an app to where its environment says that a collector of OpenTelemetry is.
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
  const settings = readOtlpSettings(environment)
  const sender = { version: master.version, attributes: resourceOf(settings.resource, app.name, master.version) }
  const outcomes = createOutcomes(events)
  for (const problem of settings.problems) outcomes.tell('OpenTelemetry', problem)
  const metrics = settings.metrics && sendMetrics(settings.metrics, { intervalMs: settings.intervalMs, read: readAll, sender, onOutcome: outcomes.of('metrics') })
  const records = settings.logs && sendLogs(settings.logs, { sender, onOutcome: outcomes.of('logs') })
  const unsubscribe = records ? events.subscribe((event) => { if (!event.type.startsWith('telemetry.')) records.push(eventRecord(event)) }) : () => {}
  const lines = records && options.workerOutput === 'on' ? followWorkerLines(logs, { push: records.push, hasRoom: () => records.room > 0 }) : null

  return {
    async close () {
      outcomes.close()
      await lines?.stop()
      unsubscribe()
      await Promise.all([metrics?.close(CLOSE_MS), records?.close(CLOSE_MS)])
    }
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

/** Tells once that a collector does not take what it is sent, and once that it does again. @param {import('../events/stream.js').EventStream} events */
function createOutcomes (events) {
  /** @type {Map<string, number>} what is being lost, by what it is, and how much of it */
  const failing = new Map()
  /** What has been refused in part, which is told once. @type {Set<string>} */
  const refused = new Set()
  let isClosed = false

  return {
    close () { isClosed = true },

    /** @param {string} what @param {string} reason */
    tell: (what, reason) => events.publish({ type: 'telemetry.failed', actor: 'system', message: `${what}: ${reason}` }),

    /** @param {string} what @returns {(outcome: { error: string | null, dropped: number }) => void} */
    of: (what) => ({ error, dropped }) => {
      if (isClosed) return
      const before = failing.get(what)
      if (error !== null) {
        failing.set(what, (before ?? 0) + dropped)
        if (before === undefined) events.publish({ type: 'telemetry.failed', actor: 'system', message: `the collector does not take ${what}: ${error}` })
      } else if (before !== undefined) {
        failing.delete(what)
        const lost = before + dropped
        events.publish({ type: 'telemetry.recovered', actor: 'system', message: `the collector takes ${what} again${lost > 0 ? `; ${lost.toLocaleString('en-US')} were lost` : ''}` })
      } else if (dropped > 0 && !refused.has(what)) {
        refused.add(what)
        events.publish({ type: 'telemetry.failed', actor: 'system', message: `the collector has refused ${dropped.toLocaleString('en-US')} of the ${what}` })
      }
    }
  }
}
