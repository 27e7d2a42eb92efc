import { BUCKETS } from '../../workers/histogram.js'
import { MAX_ROUTES, STATUS_CLASSES } from '../../workers/protocol.js'
import { COLUMNS, FIRST_STATUS, indexOf } from './columns.js'

/**
 * A checked report: any code of the app could have sent one under our name.
 * @typedef {object} Report
 * @property {import('./columns.js').Row} row  without quantiles, which its histogram gives
 * @property {number[] | null} statuses  by STATUS_CLASSES; null: nobody counts its requests
 * @property {number[]} latency  sparse histogram
 * @property {number} latencySumMs
 * @property {import('../../workers/protocol.js').RouteReport[]} routes  that have answered in that time
 * @property {number} intervalMs  since the last report
 * @property {number} cpuSeconds  in that time
 */

const MAX_BYTES = 2 ** 48
const MAX_MS = 2 ** 31
const MAX_COUNT = 2 ** 31
const MAX_CPU_PERCENT = 100_000
const MAX_ROUTE_CHARS = 200

/** The fields of a report that are columns, with the highest value of each. @type {readonly [import('./columns.js').MeasuredName, number][]} */
const LIMITS = [
  ['rssBytes', MAX_BYTES],
  ['heapUsedBytes', MAX_BYTES],
  ['heapTotalBytes', MAX_BYTES],
  ['externalBytes', MAX_BYTES],
  ['cpuPercent', MAX_CPU_PERCENT],
  ['eventLoopUtilization', 1],
  ['loopDelayP50Ms', MAX_MS],
  ['loopDelayP99Ms', MAX_MS],
  ['loopDelayMaxMs', MAX_MS],
  ['inFlight', MAX_COUNT],
  ['openConnections', MAX_COUNT],
  ['processes', MAX_COUNT],
  ['threads', MAX_COUNT],
  ['descriptors', MAX_COUNT]
]
/** What every report has. @type {readonly string[]} */
const OF_ALL = ['rssBytes', 'cpuPercent']
/** What only the report of a program has, which is measured from outside; the others have all but these. @type {readonly string[]} */
const OF_PROGRAMS = ['processes', 'threads', 'descriptors']
/** Every worker reports each second, so the places of the columns are looked up once. */
const FIELDS = LIMITS.map(([name, limit]) => ({ name, limit, index: indexOf(name), isOfAll: OF_ALL.includes(name), isOfNode: !OF_PROGRAMS.includes(name) }))
const CPU_PERCENT = indexOf('cpuPercent')

/**
 * @param {unknown} body of a `vitals` message
 * @returns {Report}
 * @throws {TypeError} says which field is wrong
 */
export function readReport (body) {
  /** @type {Record<string, unknown>} */
  const fields = Object(body)
  const row = new Float64Array(COLUMNS.length).fill(NaN)
  const isOfNode = fields.statuses !== undefined
  for (const { name, limit, index, ...field } of FIELDS) {
    const isRequired = isOfNode ? field.isOfNode : field.isOfAll
    if (isRequired || fields[name] !== undefined) row[index] = numberUpTo(limit, fields[name], name)
  }
  const intervalMs = numberUpTo(MAX_MS, fields.intervalMs, 'intervalMs')
  const statuses = isOfNode ? countsOf(fields.statuses) : null
  if (statuses) row.set(statuses, FIRST_STATUS)
  return {
    row,
    statuses,
    latency: statuses ? histogramOf(fields.latency) : [],
    routes: fields.routes === undefined ? [] : routesOf(fields.routes),
    intervalMs,
    latencySumMs: statuses ? numberUpTo(MAX_COUNT * MAX_MS, fields.latencySumMs, 'latencySumMs') : 0,
    cpuSeconds: row[CPU_PERCENT] / 100 * intervalMs / 1000
  }
}

/** @param {number} limit @param {unknown} value @param {string} name @returns {number} */
function numberUpTo (limit, value, name) {
  if (typeof value === 'number' && value >= 0 && value <= limit) return value
  throw unexpectedError(name, `a number from 0 to ${limit}`)
}

/** @param {unknown} value @returns {number[]} */
function countsOf (value) {
  if (Array.isArray(value) && value.length === STATUS_CLASSES.length && value.every(isCount)) return value
  throw unexpectedError('statuses', `${STATUS_CLASSES.length} counts`)
}

/** @param {unknown} value @returns {number[]} */
function histogramOf (value) {
  if (isHistogram(value)) return value
  throw unexpectedError('latency', 'pairs of an ascending bucket and a count')
}

/** @param {unknown} value @returns {value is number[]} */
function isHistogram (value) {
  return Array.isArray(value) && value.length % 2 === 0 && value.length <= 2 * BUCKETS && isSparse(value)
}

/** @param {unknown} value @returns {import('../../workers/protocol.js').RouteReport[]} */
function routesOf (value) {
  if (Array.isArray(value) && value.length <= MAX_ROUTES + 1 && value.every(isRoute)) return value
  throw unexpectedError('routes', `at most ${MAX_ROUTES + 1} routes, each with its errors and latency`)
}

/** @param {unknown} value */
function isRoute (value) {
  const { route, errors, latency } = Object(value)
  return typeof route === 'string' && route.length > 0 && route.length <= MAX_ROUTE_CHARS && isCount(errors) && isHistogram(latency)
}

/** @param {unknown[]} pairs */
function isSparse (pairs) {
  let last = -1
  for (let n = 0; n < pairs.length; n += 2) {
    const index = pairs[n]
    if (!isCount(index) || index <= last || index >= BUCKETS || !isCount(pairs[n + 1])) return false
    last = index
  }
  return true
}

/** @param {unknown} value @returns {value is number} */
function isCount (value) {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
}

/** @param {string} name @param {string} expected */
function unexpectedError (name, expected) {
  return new TypeError(`vitals: ${name}: expected ${expected}`)
}
