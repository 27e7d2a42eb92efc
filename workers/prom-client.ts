import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout } from 'node:timers'
import { MAX_APP_SERIES, type AppMetric } from './protocol.ts'

/**
 * What is used of prom-client, versions 11 to 15. The maps of counters and histograms are read by themselves too, as a
 * process that ends cannot wait for `get`.
 */
type Labels = Record<string, unknown>
type Entry = { labels?: Labels, value: number, sum: number, count: number, bucketValues?: Record<string, number> }
type Metric = { name: string, help: string, type: string, aggregator?: string, get: () => Promise<{ values?: Entry[] }>,
  hashMap?: Record<string, Entry>, upperBounds?: number[] }
/** whose values only grow */
type Growing = Metric & { hashMap: Record<string, Entry> }
type Registry = { getMetricsAsArray: () => Metric[], getMetricsAsJSON: () => Promise<unknown>, _defaultLabels?: Labels }
type Aggregator = { prototype: { clusterMetrics: () => Promise<string> } }
/** a copy of prom-client that the app has loaded */
export type Client = { registry: Registry, Registry: { prototype: Registry }, Aggregator: Aggregator | null }

const REGISTRY_FILE = `${path.sep}${path.join('prom-client', 'lib', 'registry.js')}`
const AGGREGATOR_FILE = 'cluster.js'
/** The app may ask others for the value of a gauge, which may never answer. */
const COLLECTED_WITHIN_MS = 500
const CUMULATIVE = ['counter', 'histogram', 'summary']

/** @returns those that the app has loaded itself, by `require` or by `import` */
export function findClients (): Client[] {
  const { cache } = createRequire(process.execPath)
  return Object.keys(cache).filter((file) => file.endsWith(REGISTRY_FILE)).flatMap((file) => {
    const Registry = cache[file]?.exports
    const Aggregator = cache[path.join(path.dirname(file), AGGREGATOR_FILE)]?.exports
    const registry = Registry?.globalRegistry
    return typeof registry?.getMetricsAsArray === 'function'
      ? [{ registry, Registry, Aggregator: Aggregator?.prototype?.clusterMetrics ? Aggregator : null }]
      : []
  })
}

/**
 * The default registry, or those that the app has given to `AggregatorRegistry.setRegistries`. Only the listener of
 * prom-client knows these: it asks each of them for its metrics when a primary wants them.
 */
export function registriesOf ({ registry, Registry: { prototype } }: Client): Registry[] {
  const answer = process.listeners('message').find((listener) =>
    Function.prototype.toString.call(listener).includes('GET_METRICS_REQ')
  )
  if (!answer) return [registry]
  const chosen: Set<Registry> = new Set()
  const { getMetricsAsJSON } = prototype
  prototype.getMetricsAsJSON = function () {
    chosen.add(this)
    return new Promise(() => {})
  }
  try {
    answer({ type: 'prom-client:getMetricsReq', requestId: -1 }, undefined)
  } catch {
    // It is of another kind than those that are known.
  } finally {
    prototype.getMetricsAsJSON = getMetricsAsJSON
  }
  return chosen.size > 0 ? [...chosen] : [registry]
}

/** What only grows, as it is now. */
export function readGrowing (registries: Registry[]) {
  return bounded(
    registries.flatMap((registry) =>
      metricsOf(registry).flatMap((metric) => isGrowing(metric) ? [toGrowing(metric, registry)] : [])
    )
  )
}

/** All that the registries have. The app may collect it first. */
export async function readAll (registries: Registry[]) {
  const all = registries.flatMap((registry) => metricsOf(registry).map((metric) => ({ metric, registry })))
  const late: Promise<Entry[]> = new Promise((resolve) => setTimeout(resolve, COLLECTED_WITHIN_MS, []).unref())
  const answers = await Promise.all(all.map(({ metric }) => Promise.race([collect(metric), late])))
  // All at the same moment: what came in while others were collected counts everywhere.
  return bounded(
    all.flatMap(({ metric, registry }, index) =>
      isGrowing(metric) ? [toGrowing(metric, registry)] : toGauge(metric, registry, answers[index])
    )
  )
}

function metricsOf (registry: Registry): Metric[] {
  return registry.getMetricsAsArray().filter(({ name, type }) => typeof name === 'string' && typeof type === 'string')
}

function isGrowing (metric: Metric): metric is Growing {
  return CUMULATIVE.includes(metric.type) && typeof metric.hashMap === 'object' && metric.hashMap !== null
}

/** @returns none: the app's own code has failed */
async function collect (metric: Metric): Promise<Entry[]> {
  try {
    return (await metric.get()).values ?? []
  } catch {
    return []
  }
}

function toGrowing ({ hashMap, upperBounds = [], ...metric }: Growing, registry: Registry): AppMetric {
  return describe(metric, Object.values(hashMap).map(({ labels, value, sum, count, bucketValues }) => {
    const own = { ...registry._defaultLabels, ...labels }
    return metric.type === 'counter'
      ? [own, value]
      : [own, sum, count, bucketValues ? cumulative(upperBounds, bucketValues) : []]
  }))
}

function toGauge (metric: Metric, registry: Registry, values: Entry[]): AppMetric[] {
  return hasOneValue(metric)
    ? [describe(metric, values.map(({ labels, value }) => [{ ...registry._defaultLabels, ...labels }, value]))]
    : []
}

/** A counter that is none of prom-client's own has no map. */
function hasOneValue ({ type }: Metric) {
  return type !== 'histogram' && type !== 'summary'
}

function describe ({ name, help, type, aggregator = 'sum' }: Pick<Metric, 'name' | 'help' | 'type' | 'aggregator'>,
  rows: AppMetric['rows']): AppMetric
{
  return { name, help, type, aggregator, rows }
}

function cumulative (bounds: readonly number[], counts: Record<string, number>): [le: number, count: number][] {
  let sum = 0
  return bounds.map((le) => {
    sum += counts[le] ?? 0
    return [le, sum]
  })
}

/** @returns how many lines Prometheus reads of it, each a series to it */
function linesOf (row: AppMetric['rows'][number]): number {
  if (row.length === 2) return 1
  const [, , , buckets] = row
  return 2 + (buckets.length > 0 ? buckets.length + 1 : 0)
}

/** The first of a name counts, and no more series than the master takes. */
function bounded (all: AppMetric[]): { metrics: AppMetric[], leftOut: number } {
  const metrics: Map<string, AppMetric> = new Map()
  let series = 0
  let leftOut = 0
  for (const metric of all) {
    if (metrics.has(metric.name)) continue
    const lines = metric.rows.reduce((sum, row) => sum + linesOf(row), 0)
    if (series + lines <= MAX_APP_SERIES) {
      series += lines
      metrics.set(metric.name, metric)
    } else leftOut += lines
  }
  return { metrics: [...metrics.values()], leftOut }
}
