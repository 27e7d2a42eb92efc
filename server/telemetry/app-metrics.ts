import { MAX_APP_SERIES, type ToMaster, type ToWorker } from '../../workers/protocol.ts'
import { toPrometheusText } from './prometheus-text.ts'
import { countOf, createKeptMetrics, linesOf, sumMetric } from './summed-metrics.ts'
import { readMetrics, type ToldMetric } from './told-metrics.ts'
import type { Metric } from './metric.ts'

export type AppMetrics = ReturnType<typeof createAppMetrics>
/** a worker that has metrics */
type Source = { metrics: Map<string, ToldMetric>, leftOut: number, endedAt: number | null }

/** A worker that blocks its event loop answers later than this: what it sent before counts. */
const PATIENCE_MS = 1000
/** The last messages of a worker may arrive after its exit. */
const LAST_WORDS_MS = 2000

/** What the app counts by prom-client, over all of its workers, those that have ended among them. */
export function createAppMetrics ({ tell, patienceMs = PATIENCE_MS, now = () => performance.now() }: {
  tell: (worker: number, message: ToWorker) => void,
  patienceMs?: number,
  /** monotonic, ms */
  now?: () => number
}) {
  /** by worker */
  const sources: Map<number, Source> = new Map()
  const kept = createKeptMetrics(MAX_APP_SERIES)
  let lastQuestion = 0
  let question: { id: number, workers: Set<number>, end: () => void, answered: Promise<void> } | null = null

  return {
    /**
     * @param message which any code of the app may have sent
     * @param how false: the worker has ended, and the message was still on its way
     */
    accept (worker: number, message: Extract<ToMaster, { type: 'app-metrics' }>, { isAlive }: { isAlive: boolean }) {
      const { metrics, gone, leftOut } = readMetrics(message)
      const source = sources.get(worker) ?? { metrics: new Map(), leftOut, endedAt: null }
      if (isAlive) sources.set(worker, source)
      source.leftOut = leftOut
      for (const metric of metrics) take(source, metric)
      for (const name of gone) takeAway(source, name)
      if (question?.id === message.id) heardFrom(worker)
    },

    /** Answers an app that asks prom-client for the metrics of all workers. */
    async answer (worker: number, { id }: { id: number }) {
      const { metrics } = await read()
      tell(worker, { type: 'app-metrics-text', id, text: toPrometheusText(metrics) })
    },

    /** `worker`: has ended */
    left (worker: number) {
      const source = sources.get(worker)
      if (source) source.endedAt = now()
      heardFrom(worker)
    },

    read,

    /** Tells whether no worker has told of any */
    isEmpty: () => sources.size === 0
  }

  /** @returns `leftOut`: how many series more there were than may be told */
  async function read (): Promise<{ metrics: Metric[], leftOut: number }> {
    await (question ?? askWorkers()).answered
    return sumAll()
  }

  function askWorkers () {
    const id = ++lastQuestion
    const workers = new Set([...sources].flatMap(([worker, { endedAt }]) => endedAt === null ? [worker] : []))
    const { promise: reached, resolve: reach }: PromiseWithResolvers<void> = Promise.withResolvers()
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

  function heardFrom (worker: number) {
    question?.workers.delete(worker)
    if (question?.workers.size === 0) question.end()
  }

  function sumAll () {
    keepEnded()
    const newestFirst = [...sources].sort(([a], [b]) => b - a).map(([, source]) => source)
    const living = newestFirst.filter(({ endedAt }) => endedAt === null)
    const ending = newestFirst.filter(({ endedAt }) => endedAt !== null)
    const metrics: Metric[] = []
    let series = 0
    let leftOut = living.reduce((most, source) => Math.max(most, source.leftOut), 0)
    for (const name of new Set(
      [...living, ...ending].flatMap(({ metrics }) => [...metrics.keys()]).concat(kept.names())
    )) {
      const own = (of: Source[]) => of.flatMap(({ metrics }) => metrics.get(name) ?? [])
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

  function take ({ metrics }: Source, metric: ToldMetric) {
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

  function takeAway ({ metrics }: Source, name: string) {
    const metric = metrics.get(name)
    if (metric) kept.add(metric)
    metrics.delete(name)
  }
}
