import { setImmediate, setTimeout } from 'node:timers'
import { findClients, readAll, readGrowing, registriesOf, type Client } from './prom-client.ts'
import type { Channel } from './channel.ts'
import type { AppMetric } from './protocol.ts'

/** An app may load prom-client late. The last time repeats. */
const LOOKS_MS = [10_000, 60_000, 600_000]
/** What a process that is killed has counted since its last report is lost. */
const REPORT_MS = 5000
/** The reports take no more than a thousandth of the time. */
const REST_FACTOR = 1000

/**
 * Tells the master what the app counts by prom-client: all of it when the master asks, and now and then what only
 * grows, so that little is lost with a process that is killed. The app's own copy of prom-client is found once the app
 * listens; none is loaded.
 */
export function tellAppMetrics (channel: Channel) {
  /** What the master knows, by name, as JSON. */
  const told: Map<string, string> = new Map()
  let clients: Client[] = []
  let hasBegun = false
  let hasReported = false
  let lastQuestion = 0
  /** Questions of the app for the metrics of all workers. */
  const asked: Map<number, (text: string) => void> = new Map()

  channel.on('read-app-metrics', ({ id }) => {
    readAll(registries()).then(
      ({ metrics, leftOut }) =>
        channel.send({ type: 'app-metrics', id, metrics: news(metrics), gone: takeGone(metrics), leftOut }),
      () => {}
    )
  })
  channel.on('app-metrics-text', ({ id, text }) => {
    asked.get(id)?.(text)
    asked.delete(id)
  })

  return {
    /** Call it once the app listens, or runs. */
    begin () {
      if (hasBegun) return
      hasBegun = true
      setImmediate(look, 0)
    },

    /** Tells what has grown since the last report, at once: this process ends. */
    end () {
      if (clients.length > 0) reportGrowing()
    }
  }

  function look (round: number) {
    clients = findClients()
    if (clients.length === 0) return setTimeout(look, LOOKS_MS[Math.min(round, LOOKS_MS.length - 1)], round + 1).unref()
    for (const { Aggregator } of clients) if (Aggregator) Aggregator.prototype.clusterMetrics = askMaster
    reportRegularly()
  }

  function reportRegularly () {
    const begunAt = performance.now()
    reportGrowing()
    setTimeout(reportRegularly, Math.max(REPORT_MS, (performance.now() - begunAt) * REST_FACTOR)).unref()
  }

  function reportGrowing () {
    try {
      const { metrics, leftOut } = readGrowing(registries())
      const changed = news(metrics)
      if (changed.length > 0 || !hasReported)
        channel.send({ type: 'app-metrics', id: null, metrics: changed, gone: [], leftOut })
      hasReported = true
    } catch {
      // The app may have replaced what is used here.
    }
  }

  function registries () {
    return [...new Set(clients.flatMap(registriesOf))]
  }

  /** @returns those that the master does not know so */
  function news (metrics: AppMetric[]) {
    return metrics.filter((metric) => {
      const text = JSON.stringify(metric)
      const isNew = told.get(metric.name) !== text
      told.set(metric.name, text)
      return isNew
    })
  }

  /** `metrics`: all that there are. Returns names of those that the app has removed. */
  function takeGone (metrics: AppMetric[]): string[] {
    const names = new Set(metrics.map(({ name }) => name))
    const gone = [...told.keys()].filter((name) => !names.has(name))
    for (const name of gone) told.delete(name)
    return gone
  }

  /** In place of `AggregatorRegistry.clusterMetrics`, which asks workers of this process: it has none. */
  function askMaster (): Promise<string> {
    const id = ++lastQuestion
    return new Promise((resolve) => {
      asked.set(id, resolve)
      channel.send({ type: 'app-metrics-wanted', id })
    })
  }
}
