import { z } from 'zod'
import { visibleNames } from '../api/apps.js'
import { operation } from '../api/endpoint.js'

/**
 * Metrics for Prometheus. Names, units and types follow its documentation. Labels are slots, classes and causes, so their
 * number does not grow with the workers that come and go.
 * @typedef {{ vitals: ReturnType<import('../vitals/vitals.js').Vitals['metrics']>, status: Status, jobs: import('../jobs/outcomes.js').JobMetrics[] }} Facts
 * @typedef {import('../deck.js').Status} Status
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'vitals' | 'jobs'>} Deck
 * @typedef {{ labels?: Record<string, string | number>, value: number, metricName?: string }} Value
 * @typedef {[name: string, type: 'gauge' | 'counter' | 'histogram', help: string, values: (facts: Facts) => Value[]]} Metric
 */

/** @type {Readonly<Record<string, 'webSockets' | 'eventStreams' | 'connections' | 'transfers' | 'sessions'>>} by the label `kind` */
const HELD = Object.freeze({ websocket: 'webSockets', 'event-stream': 'eventStreams', other: 'connections', transfer: 'transfers', session: 'sessions' })

/** @type {readonly Metric[]} */
const METRICS = [
  ['workers_desired', 'gauge', 'Workers that should run.', ({ status }) => [{ value: status.desiredWorkers }]],
  ['workers_ready', 'gauge', 'Slots with a worker that is ready.', ({ status }) => [{ value: status.readyWorkers }]],
  [
    'workers_finished',
    'gauge',
    'Slots whose program ended with exit code 0 and is not started again.',
    ({ status }) => [{ value: status.finishedWorkers }]
  ],
  [
    'worker_up',
    'gauge',
    'Whether the slot has a worker that is ready (1) or not (0).',
    ({ status }) => slotsOf(status).map((slot) => ({ labels: { slot }, value: Number(hasReady(status, slot)) }))
  ],
  [
    'old_workers',
    'gauge',
    'Replaced workers that are kept for their long-lived connections.',
    ({ status }) => [{ value: status.workers.filter(({ keptUntil }) => keptUntil).length }]
  ],
  [
    'long_lived_connections',
    'gauge',
    'Long-lived connections, transfers and sessions that draining workers still have, by kind.',
    ({ status }) => Object.entries(HELD).map(([kind, name]) => ({ labels: { kind }, value: status.workers.reduce((sum, { holds }) => sum + (holds?.[name] ?? 0), 0) }))
  ],
  [
    'rollout_running',
    'gauge',
    'Whether a rollout is running (1) or not (0).',
    ({ status }) => [{ value: Number(status.rollout !== null && !status.rollout.done) }]
  ],
  ['rollouts_total', 'counter', 'Rollouts that have ended.', ({ vitals }) => vitals.rollouts.map(({ result, value }) => ({ labels: { result }, value }))],
  ['worker_exits_total', 'counter', 'Workers that have ended.', ({ vitals }) => vitals.exits.map(({ cause, value }) => ({ labels: { cause }, value }))],
  [
    'ended_requests_total',
    'counter',
    'Requests without an answer when their worker ended: it did not drain in time or was killed.',
    ({ vitals }) => [{ value: vitals.endedRequests }]
  ],
  ['stalled_requests_total', 'counter', 'Requests of ended_requests_total that were cut off because their bytes had stopped moving (drain.stalledMs).', ({ vitals }) => [{ value: vitals.stalledRequests }]],
  ['ended_connections_total', 'counter', 'Connections that were open when their worker ended.', ({ vitals }) => [{ value: vitals.endedConnections }]],
  [
    'job_runs_total',
    'counter',
    'Runs of jobs that have ended, and times that were skipped.',
    ({ jobs }) => jobs.flatMap(({ job, runs }) => Object.entries(runs).map(([result, value]) => ({ labels: { job, result }, value })))
  ],
  [
    'job_last_success_timestamp_seconds',
    'gauge',
    'When the job has succeeded last; absent: it never has.',
    ({ jobs }) => jobs.flatMap(({ job, lastSuccessAt }) => lastSuccessAt === null ? [] : [{ labels: { job }, value: Date.parse(lastSuccessAt) / 1000 }])
  ],
  [
    'worker_restarts_total',
    'counter',
    'Workers that replaced a failed one.',
    ({ status, vitals }) => slotsOf(status, vitals.restarts).map((slot) => ({
      labels: { slot },
      value: vitals.restarts.find((each) => each.slot === slot)?.value ?? 0
    }))
  ],
  [
    'worker_cpu_seconds_total',
    'counter',
    'User and system time of the slot\'s workers.',
    ({ vitals }) => vitals.cpuSeconds.map(({ slot, value }) => ({ labels: { slot }, value }))
  ],
  newestGauge('worker_resident_memory_bytes', 'Resident memory.', 'rssBytes'),
  newestGauge('worker_heap_used_bytes', 'JavaScript heap in use.', 'heapUsedBytes'),
  newestGauge('worker_heap_size_bytes', 'JavaScript heap.', 'heapTotalBytes'),
  newestGauge('worker_external_memory_bytes', 'Memory of objects outside of the JavaScript heap.', 'externalBytes'),
  newestGauge('worker_eventloop_utilization_ratio', 'Share of time in which the event loop was busy, 0 to 1.', 'eventLoopUtilization'),
  newestGauge('worker_eventloop_delay_p50_seconds', 'How late timers were, median of the last second.', 'loopDelayP50Ms', 1000),
  newestGauge('worker_eventloop_delay_p99_seconds', 'How late timers were, 99th percentile of the last second.', 'loopDelayP99Ms', 1000),
  newestGauge('worker_eventloop_delay_max_seconds', 'How late timers were, maximum of the last second.', 'loopDelayMaxMs', 1000),
  newestGauge('worker_http_requests_in_flight', 'HTTP requests that are not answered yet.', 'inFlight'),
  newestGauge('worker_open_connections', 'Connections to the servers of the app.', 'openConnections'),
  newestGauge('worker_processes', 'Processes of a worker that runs another program than Node.', 'processes'),
  newestGauge('worker_threads', 'Threads of a worker that runs another program than Node.', 'threads'),
  newestGauge('worker_open_fds', 'Open file descriptors of a worker that runs another program than Node.', 'descriptors'),
  [
    'http_requests_total',
    'counter',
    'HTTP requests that ended, by class of their status; aborted: the connection closed first.',
    ({ vitals }) => vitals.requests.map(({ slot, class: codeClass, value }) => ({ labels: { slot, code_class: codeClass }, value }))
  ],
  ['http_request_duration_seconds', 'histogram', 'From the headers of a request until its answer is sent.', ({ vitals }) => toHistogram(vitals.duration)]
]

const PREFIX = 'clusterdeck_'
// The master has little to do, so measuring its event loop more often would be most of its work.
const LOOP_PRECISION_MS = 50

const TEXT = 'text/plain'

/**
 * Needs a token, as everything does: `authorization: { credentials_file: …/admin.token }`.
 * @param {{ deck: Deck }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function metricsResources ({ deck }) {
  return metricsResource(() => {
    const { master } = deck.snapshot()
    return { software: master, hasProcess: !master.isShared, decks: [{ deck, labels: {} }] }
  })
}

/**
 * Has the metrics of all apps, each with the label `app`.
 * @param {{ apps: import('../api/apps.js').Apps }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function hostMetricsResources ({ apps }) {
  return metricsResource((auth) => {
    const running = visibleNames(apps, auth).map((name) => ({ name, opened: apps.opened(name) }))
    return {
      software: apps.about(),
      hasProcess: true,
      running: running.map(({ name, opened }) => ({ labels: { app: name }, value: Number(opened !== null) })),
      decks: running.flatMap(({ name, opened }) => opened ? [{ deck: opened.deck, labels: { app: name } }] : [])
    }
  })
}

/**
 * @typedef {object} Measured
 * @property {{ version: string, nodeVersion: string }} software
 * @property {boolean} hasProcess  whether the figures of the master's process are among them: those of a host are told once
 * @property {Value[]} [running]  of the apps of a host
 * @property {{ deck: Deck, labels: Record<string, string> }[]} decks
 */

/** @param {(auth: import('../api/roles.js').Auth) => Measured} measure */
function metricsResource (measure) {
  /** @type {ReturnType<typeof createMetrics> | null} created by the first request */
  let metrics = null

  return {
    '/metrics': {
      GET: operation({
        name: 'getMetrics',
        summary: 'Returns all metrics in the format of Prometheus',
        role: 'viewer',
        produces: [],
        answer: { [TEXT]: z.string() },
        async handle ({ res, auth }) {
          const measured = measure(auth)
          metrics ??= createMetrics({ isHost: measured.running !== undefined, hasProcess: measured.hasProcess })
          const { contentType, text } = await (await metrics)(measured)
          res.type(contentType).send(text)
          return undefined
        }
      })
    }
  }
}

/**
 * @param {{ isHost: boolean, hasProcess: boolean }} place
 * @returns {Promise<(measured: Measured) => Promise<{ contentType: string, text: string }>>}
 */
async function createMetrics ({ isHost, hasProcess }) {
  const { default: { Registry, collectDefaultMetrics } } = await import('prom-client')
  const registry = new Registry()
  if (hasProcess) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS })
  /** @type {Measured} */
  let measured
  /** @type {(Facts & { labels: Record<string, string> })[]} taken at one moment */
  let facts
  add('info', 'gauge', 'Always 1; the version of clusterdeck and of Node.', () => {
    const { version, nodeVersion } = measured.software
    return [{ labels: { version, node_version: nodeVersion }, value: 1 }]
  })
  if (isHost) add('app_running', 'gauge', 'Whether an app of the host is running (1) or not (0).', () => measured.running ?? [])
  for (const [suffix, type, help, values] of METRICS) {
    add(suffix, type, help, () => facts.flatMap((each) => values(each).map((value) => ({ ...value, labels: { ...each.labels, ...value.labels } }))))
  }

  // One after the other, as each caller may see other apps.
  let last = Promise.resolve({ contentType: '', text: '' })
  return (now) => {
    last = last.then(() => read(now), () => read(now))
    return last
  }

  /** @param {Measured} now */
  async function read (now) {
    measured = now
    facts = now.decks.map(({ deck, labels }) => ({ labels, vitals: deck.vitals.metrics(), status: deck.snapshot(), jobs: deck.jobs.metrics() }))
    return { contentType: registry.contentType, text: await registry.metrics() }
  }

  /** The values are counted elsewhere, and prom-client asks each metric for them by this method. @param {string} suffix @param {string} type @param {string} help @param {() => Value[]} values */
  function add (suffix, type, help, values) {
    const name = PREFIX + suffix
    registry.registerMetric(/** @type {any} */ ({ name, get: async () => ({ name, help, type, values: values() }) }))
  }
}

/** @param {string} name @param {string} help @param {string} column @param {number} [divisor] @returns {Metric} */
function newestGauge (name, help, column, divisor = 1) {
  return [
    name,
    'gauge',
    help,
    ({ vitals }) => vitals.slots.flatMap(({ slot, values: { [column]: value } }) => value === null ? [] : [{ labels: { slot }, value: value / divisor }])
  ]
}

/** @param {Facts['vitals']['duration']} duration @returns {Value[]} */
function toHistogram (duration) {
  if (duration === null) return []
  const { buckets, count, sumSeconds } = duration
  const name = `${PREFIX}http_request_duration_seconds`
  return [
    ...buckets.map((bucket) => ({ metricName: `${name}_bucket`, labels: { le: bucket.le }, value: bucket.count })),
    { metricName: `${name}_bucket`, labels: { le: '+Inf' }, value: count },
    { metricName: `${name}_sum`, value: sumSeconds },
    { metricName: `${name}_count`, value: count }
  ]
}

/** @param {Status} status @param {{ slot: number }[]} [more] slots that were removed by scaling, whose counts stay @returns {number[]} */
function slotsOf ({ workers }, more = []) {
  return [...new Set([...workers, ...more].map(({ slot }) => slot))].sort((a, b) => a - b)
}

/** @param {Status} status @param {number} slot */
function hasReady ({ workers }, slot) {
  return workers.some((worker) => worker.slot === slot && worker.state === 'ready')
}
