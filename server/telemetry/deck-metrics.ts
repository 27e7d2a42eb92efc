import { performance } from 'node:perf_hooks'
import { OWN_PREFIX } from './told-metrics.ts'
import type { Metric, Series } from './metric.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { JobMetrics } from '../jobs/outcomes.ts'
import type { snapshotOf } from '../lifecycle/snapshot.ts'
import type { Holds } from '../../workers/protocol.ts'

/**
 * The metrics of clusterdeck itself. Names, units and types follow the documentation of Prometheus. Labels are slots,
 * classes and causes, so their number does not grow with the workers that come and go.
 */
export type Facts = { vitals: ReturnType<Vitals['metrics']>, status: Status, jobs: JobMetrics[] }
type Status = Pick<ReturnType<typeof snapshotOf>, 'desiredWorkers' | 'readyWorkers' | 'finishedWorkers' | 'rollout'> & {
  workers: { slot: number, state: string, keptUntil: string | null, holds?: Partial<Holds> | null }[]
}
type Value = { labels?: Record<string, string | number>, value: number } | { sum: number, count: number,
  buckets: [number, number][] }
type Row = [name: string, type: 'gauge' | 'counter' | 'histogram', help: string, values: (facts: Facts) => Value[]]

/** by the label `kind` */
const HELD: Readonly<Record<string, 'webSockets' | 'eventStreams' | 'connections' | 'transfers' | 'sessions'>> = Object
  .freeze({ websocket: 'webSockets', 'event-stream': 'eventStreams', other: 'connections', transfer: 'transfers',
    session: 'sessions' })

const METRICS: readonly Row[] = [['workers_desired', 'gauge', 'Workers that should run.',
  ({ status }) => [{ value: status.desiredWorkers }]], ['workers_ready', 'gauge', 'Slots with a worker that is ready.',
  ({ status }) => [{ value: status.readyWorkers }]], ['workers_finished', 'gauge',
  'Slots whose program ended with exit code 0 and is not started again.',
  ({ status }) => [{ value: status.finishedWorkers }]], ['worker_up', 'gauge',
  'Whether the slot has a worker that is ready (1) or not (0).',
  ({ status }) => slotsOf(status).map((slot) => ({ labels: { slot }, value: Number(hasReady(status, slot)) }))], [
  'old_workers',
  'gauge',
  'Replaced workers that are kept for their long-lived connections.',
  ({ status }) => [{ value: status.workers.filter(({ keptUntil }) => keptUntil).length }]
], ['long_lived_connections', 'gauge',
  'Long-lived connections, transfers and sessions that draining workers still have, by kind.',
  ({ status }) =>
    Object.entries(HELD).map(([kind, name]) => ({ labels: { kind }, value: status.workers.reduce((sum, { holds }) =>
      sum + (holds?.[name] ?? 0), 0) })
    )], ['rollout_running', 'gauge', 'Whether a rollout is running (1) or not (0).',
  ({ status }) => [{ value: Number(status.rollout !== null && !status.rollout.done) }]], ['rollouts_total', 'counter',
  'Rollouts that have ended.',
  ({ vitals }) => vitals.rollouts.map(({ result, value }) => ({ labels: { result }, value }))], ['worker_exits_total',
  'counter', 'Workers that have ended.',
  ({ vitals }) => vitals.exits.map(({ cause, value }) => ({ labels: { cause }, value }))], ['ended_requests_total',
  'counter', 'Requests without an answer when their worker ended: it did not drain in time or was killed.',
  ({ vitals }) => [{ value: vitals.endedRequests }]], ['stalled_requests_total', 'counter',
  'Requests of ended_requests_total that were cut off because their bytes had stopped moving (drain.stalledMs).',
  ({ vitals }) => [{ value: vitals.stalledRequests }]], ['ended_connections_total', 'counter',
  'Connections that were open when their worker ended.', ({ vitals }) => [{ value: vitals.endedConnections }]], [
  'job_runs_total',
  'counter',
  'Runs of jobs that have ended, and times that were skipped.',
  ({ jobs }) =>
    jobs.flatMap(({ job, runs }) => Object.entries(runs).map(([result, value]) => ({ labels: { job, result }, value })))
], ['job_last_success_timestamp_seconds', 'gauge', 'When the job has succeeded last; absent: it never has.',
  ({ jobs }) =>
    jobs.flatMap(({ job, lastSuccessAt }) =>
      lastSuccessAt === null ? [] : [{ labels: { job }, value: Date.parse(lastSuccessAt) / 1000 }]
    )], ['worker_restarts_total', 'counter', 'Workers that replaced a failed one.',
  ({ status, vitals }) =>
    slotsOf(status, vitals.restarts).map((slot) => ({ labels: { slot }, value: vitals.restarts.find((each) =>
      each.slot === slot
    )?.value ?? 0 }))], ['worker_cpu_seconds_total', 'counter', 'User and system time of the slot\'s workers.',
  ({ vitals }) => vitals.cpuSeconds.map(({ slot, value }) => ({ labels: { slot }, value }))],
  newestGauge('worker_resident_memory_bytes', 'Resident memory.', 'rssBytes'),
  newestGauge('worker_heap_used_bytes', 'JavaScript heap in use.', 'heapUsedBytes'),
  newestGauge('worker_heap_size_bytes', 'JavaScript heap.', 'heapTotalBytes'),
  newestGauge('worker_external_memory_bytes', 'Memory of objects outside of the JavaScript heap.', 'externalBytes'),
  newestGauge('worker_eventloop_utilization_ratio', 'Share of time in which the event loop was busy, 0 to 1.',
    'eventLoopUtilization'),
  newestGauge('worker_eventloop_delay_p50_seconds', 'How late timers were, median of the last second.',
    'loopDelayP50Ms', 1000),
  newestGauge('worker_eventloop_delay_p99_seconds', 'How late timers were, 99th percentile of the last second.',
    'loopDelayP99Ms', 1000),
  newestGauge('worker_eventloop_delay_max_seconds', 'How late timers were, maximum of the last second.',
    'loopDelayMaxMs', 1000),
  newestGauge('worker_http_requests_in_flight', 'HTTP requests that are not answered yet.', 'inFlight'),
  newestGauge('worker_open_connections', 'Connections to the servers of the app.', 'openConnections'),
  newestGauge('worker_processes', 'Processes of a worker that runs another program than Node.', 'processes'),
  newestGauge('worker_threads', 'Threads of a worker that runs another program than Node.', 'threads'),
  newestGauge('worker_open_fds', 'Open file descriptors of a worker that runs another program than Node.',
    'descriptors'), ['http_requests_total', 'counter',
  'HTTP requests that ended, by class of their status; aborted: the connection closed first.',
  ({ vitals }) =>
    vitals.requests.map(({ slot, class: codeClass, value }) => ({ labels: { slot, code_class: codeClass }, value }))], [
  'http_request_duration_seconds',
  'histogram',
  'From the headers of a request until its answer is sent.',
  ({ vitals }) => toHistogram(vitals.duration)
]]

const US_PER_S = 1e6

/** `facts`: taken at one moment. Returns those of an app. */
export function deckMetrics (facts: Facts): Metric[] {
  return METRICS.map(([name, type, help, values]) => toMetric(name, type, help, values(facts)))
}

/** @returns those of this process */
export function masterMetrics ({ version, nodeVersion }: { version: string, nodeVersion: string }): Metric[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return [infoMetric({ version, nodeVersion }),
    toMetric('master_cpu_seconds_total', 'counter', 'User and system time of the master.', [{
      value: (user + system) / US_PER_S
    }]), toMetric('master_resident_memory_bytes', 'gauge', 'Resident memory of the master.', [{ value: rss }]),
    toMetric('master_heap_used_bytes', 'gauge', 'JavaScript heap of the master in use.', [{ value: heapUsed }]),
    toMetric('master_start_time_seconds', 'gauge', 'When the master was started.', [{
      value: Math.round(performance.timeOrigin) / 1000
    }]),
    toMetric('master_eventloop_utilization_ratio', 'gauge',
      'Share of time in which the event loop of the master was busy since it began, 0 to 1.', [{
      value: performance.eventLoopUtilization().utilization
    }])]
}

export function infoMetric ({ version, nodeVersion }: { version: string, nodeVersion: string }): Metric {
  return toMetric('info', 'gauge', 'Always 1; the version of clusterdeck and of Node.', [{
    labels: { version, node_version: nodeVersion },
    value: 1
  }])
}

/** @returns of a host */
export function appsMetric (apps: { app: string, isRunning: boolean }[]): Metric {
  return toMetric('app_running', 'gauge', 'Whether an app of the host is running (1) or not (0).',
    apps.map(({ app, isRunning }) => ({ labels: { app }, value: Number(isRunning) })))
}

export function leftOutMetric (count: number): Metric {
  return toMetric('app_series_left_out', 'gauge',
    'Series of the app\'s own metrics that are not told, as there are too many.', [{ value: count }])
}

function toMetric (suffix: string, type: Row[1], help: string, values: Value[]): Metric {
  return { name: OWN_PREFIX + suffix, type, help, series: values.map(toSeries) }
}

function toSeries (value: Value): Series {
  if (!('value' in value)) return { labels: {}, ...value }
  return { labels: Object.fromEntries(Object.entries(value.labels ?? {}).map(([name, label]) => [name, String(label)])),
    value: value.value }
}

function newestGauge (name: string, help: string, column: string, divisor: number = 1): Row {
  return [name, 'gauge', help,
    ({ vitals }) =>
      vitals.slots.flatMap(({ slot, values: { [column]: value } }) =>
        value === null ? [] : [{ labels: { slot }, value: value / divisor }]
      )]
}

function toHistogram (duration: Facts['vitals']['duration']): Value[] {
  if (duration === null) return []
  const { buckets, count, sumSeconds } = duration
  return [{ buckets: buckets.map((bucket) => [bucket.le, bucket.count]), count, sum: sumSeconds }]
}

/** `more`: slots that were removed by scaling, whose counts stay */
function slotsOf ({ workers }: Status, more: { slot: number }[] = []): number[] {
  return [...new Set([...workers, ...more].map(({ slot }) => slot))].sort((a, b) => a - b)
}

function hasReady ({ workers }: Status, slot: number) {
  return workers.some((worker) => worker.slot === slot && worker.state === 'ready')
}
