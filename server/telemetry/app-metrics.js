import { MAX_APP_SERIES } from '../../workers/protocol.js'
import { toPrometheusText } from './prometheus-text.js'
import { countOf, createKeptMetrics, linesOf, sumMetric } from './summed-metrics.js'
import { readTold } from './told-metrics.js'

/** @typedef {ReturnType<typeof createAppMetrics>} AppMetrics */
/** @typedef {import('./metric.js').Metric} Metric */
/** @typedef {import('./told-metrics.js').ToldMetric} ToldMetric */
/** @typedef {{ metrics: Map<string, ToldMetric>, leftOut: number, endedAt: number | null }} Source  a worker that has metrics */

/** A worker that blocks its event loop answers later than this: what it sent before counts. */
const PATIENCE_MS = 1000
/** The last messages of a worker may arrive after its exit. */
const LAST_WORDS_MS = 2000

/**
 * What the app counts by prom-client, over all of its workers, those that have ended among them.
 * @param {object} parts
 * @param {(worker: number, message: import('../../workers/protocol.js').ToWorker) => void} parts.tell
 * @param {number} [parts.patienceMs]
 * @param {() => number} [parts.now]  monotonic, ms
 */
export function createAppMetrics ({ tell, patienceMs = PATIENCE_MS, now = () => performance.now() }) {
  /** @type {Map<number, Source>} by worker */
  const sources = new Map()
  const kept = createKeptMetrics(MAX_APP_SERIES)
  let lastQuestion = 0
  /** @type {{ id: number, workers: Set<number>, end: () => void, answered: Promise<void> } | null} */
  let question = null

  return {
    /**
     * @param {number} worker @param {Extract<import('../../workers/protocol.js').ToMaster, { type: 'app-metrics' }>} message  which any code of the app may have sent
     * @param {{ isAlive: boolean }} how  false: the worker has ended, and the message was still on its way
     */
    accept (worker, message, { isAlive }) {
      const { metrics, gone, leftOut } = readTold(message)
      const source = sources.get(worker) ?? { metrics: new Map(), leftOut, endedAt: null }
      if (isAlive) sources.set(worker, source)
      source.leftOut = leftOut
      for (const metric of metrics) take(source, metric)
      for (const name of gone) takeAway(source, name)
      if (question?.id === message.id) heardFrom(worker)
    },

    /** Answers an app that asks prom-client for the metrics of all workers. @param {number} worker @param {{ id: number }} message */
    async answer (worker, { id }) {
      const { metrics } = await read()
      tell(worker, { type: 'app-metrics-text', id, text: toPrometheusText(metrics) })
    },

    /** @param {number} worker has ended */
    left (worker) {
      const source = sources.get(worker)
      if (source) source.endedAt = now()
      heardFrom(worker)
    },

    read
  }

  /** @returns {Promise<{ metrics: Metric[], leftOut: number }>} `leftOut`: how many series more there were than may be told */
  async function read () {
    await (question ?? askWorkers()).answered
    return sumAll()
  }

  function askWorkers () {
    const id = ++lastQuestion
    const workers = new Set([...sources].flatMap(([worker, { endedAt }]) => endedAt === null ? [worker] : []))
    /** @type {PromiseWithResolvers<void>} */
    const { promise: reached, resolve: reach } = Promise.withResolvers()
    const timer = setTimeout(end, patienceMs)
    const asked = { id, workers, end, answered: reached }
    question = asked
    for (const worker of workers) tell(worker, { type: 'read-app-metrics', id })
    if (workers.size === 0) end()
    return asked

    function end () {
      clearTimeout(timer)
      question = null
      reach()
    }
  }

  /** @param {number} worker */
  function heardFrom (worker) {
    question?.workers.delete(worker)
    if (question?.workers.size === 0) question.end()
  }

  function sumAll () {
    keepEnded()
    const newestFirst = [...sources].sort(([a], [b]) => b - a).map(([, source]) => source)
    const living = newestFirst.filter(({ endedAt }) => endedAt === null)
    const ending = newestFirst.filter(({ endedAt }) => endedAt !== null)
    /** @type {Metric[]} */
    const metrics = []
    let series = 0
    let leftOut = living.reduce((most, source) => Math.max(most, source.leftOut), 0)
    for (const name of new Set([...living, ...ending].flatMap(({ metrics }) => [...metrics.keys()]).concat(kept.names()))) {
      const own = (/** @type {Source[]} */ of) => of.flatMap(({ metrics }) => metrics.get(name) ?? [])
      const metric = sumMetric(own(living), [...own(ending), ...kept.named(name)])
      if (!metric) continue
      const lines = metric.series.reduce((sum, each) => sum + linesOf(each), 0)
      if (series + lines <= MAX_APP_SERIES) {
        series += lines
        metrics.push(metric)
      } else leftOut += lines
    }
    return { metrics, leftOut }
  }

  function keepEnded () {
    for (const [worker, { metrics, endedAt }] of sources) {
      if (endedAt === null || now() - endedAt < LAST_WORDS_MS) continue
      for (const metric of metrics.values()) kept.add(metric)
      sources.delete(worker)
    }
  }

  /** @param {Source} source @param {ToldMetric} metric */
  function take ({ metrics }, metric) {
    const before = metrics.get(metric.name)
    metrics.set(metric.name, metric)
    if (!before) return
    // What the app has reset or removed was counted all the same.
    if (before.type !== metric.type) return kept.add(before)
    kept.add(before, [...before.series].filter(([key, series]) => {
      const after = metric.series.get(key)
      return !after || countOf(after) < countOf(series)
    }))
  }

  /** @param {Source} source @param {string} name */
  function takeAway ({ metrics }, name) {
    const metric = metrics.get(name)
    if (metric) kept.add(metric)
    metrics.delete(name)
  }
}
