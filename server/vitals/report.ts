import { BUCKETS } from '../../workers/histogram.ts'
import { MAX_ROUTES, MAX_TARGET_CHARS, STATUS_CLASSES, type RouteReport } from '../../workers/protocol.ts'
import { COLUMNS, FIRST_STATUS, indexOf, type MeasuredName, type Row } from './columns.ts'

/** A checked report: any code of the app could have sent one under our name. */
export type Report = {
  /** without quantiles, which its histogram gives */
  row: Row,
  /** by STATUS_CLASSES; null: nobody counts its requests */
  statuses: number[] | null,
  /** sparse histogram */
  latency: number[],
  latencySumMs: number,
  /** that have answered in that time */
  routes: RouteReport[],
  /** since the last report */
  intervalMs: number,
  /** in that time */
  cpuSeconds: number
}

const MAX_BYTES = 2 ** 48
const MAX_MS = 2 ** 31
/** A Date knows no later time. */
const MAX_TIME_MS = 8.64e15
const MAX_COUNT = 2 ** 31
const MAX_CPU_PERCENT = 100_000
const MAX_ROUTE_CHARS = 200

/** The fields of a report that are columns, with the highest value of each. */
const LIMITS: readonly [MeasuredName, number][] = [['rssBytes', MAX_BYTES], ['heapUsedBytes', MAX_BYTES], [
  'heapTotalBytes',
  MAX_BYTES
], ['externalBytes', MAX_BYTES], ['cpuPercent', MAX_CPU_PERCENT], ['eventLoopUtilization', 1], ['loopDelayP50Ms',
  MAX_MS], ['loopDelayP99Ms', MAX_MS], ['loopDelayMaxMs', MAX_MS], ['inFlight', MAX_COUNT], ['openConnections',
  MAX_COUNT], ['processes', MAX_COUNT], ['threads', MAX_COUNT], ['descriptors', MAX_COUNT]]
/** What every report has. */
const OF_ALL: readonly string[] = ['rssBytes', 'cpuPercent']
/** What only the report of a program has, which is measured from outside; the others have all but these. */
const OF_PROGRAMS: readonly string[] = ['processes', 'threads', 'descriptors']
/** Every worker reports each second, so the places of the columns are looked up once. */
const FIELDS = LIMITS.map(([name, limit]) => ({ name, limit, index: indexOf(name), isOfAll: OF_ALL.includes(name),
  isOfNode: !OF_PROGRAMS.includes(name) })
)
const CPU_PERCENT = indexOf('cpuPercent')

/** `body`: of a `vitals` message @throws {TypeError} says which field is wrong */
export function readReport (body: unknown): Report {
  const fields: Record<string, unknown> = Object(body)
  const row = new Float64Array(COLUMNS.length).fill(NaN)
  const isOfNode = fields.statuses !== undefined
  for (const { name, limit, index, ...field } of FIELDS) {
    const isRequired = isOfNode ? field.isOfNode : field.isOfAll
    if (isRequired || fields[name] !== undefined) row[index] = numberUpTo(limit, fields[name], name)
  }
  const intervalMs = numberUpTo(MAX_MS, fields.intervalMs, 'intervalMs')
  const statuses = isOfNode ? countsOf(fields.statuses) : null
  if (statuses) row.set(statuses, FIRST_STATUS)
  return { row, statuses, latency: statuses ? histogramOf(fields.latency) : [],
    routes: fields.routes === undefined ? [] : routesOf(fields.routes), intervalMs,
    latencySumMs: statuses ? numberUpTo(MAX_COUNT * MAX_MS, fields.latencySumMs, 'latencySumMs') : 0,
    cpuSeconds: row[CPU_PERCENT] / 100 * intervalMs / 1000 }
}

function numberUpTo (limit: number, value: unknown, name: string): number {
  if (typeof value === 'number' && value >= 0 && value <= limit) return value
  throw unexpectedError(name, `a number from 0 to ${limit}`)
}

function countsOf (value: unknown): number[] {
  if (Array.isArray(value) && value.length === STATUS_CLASSES.length && value.every(isCount)) return value
  throw unexpectedError('statuses', `${STATUS_CLASSES.length} counts`)
}

function histogramOf (value: unknown): number[] {
  if (isHistogram(value)) return value
  throw unexpectedError('latency', 'pairs of an ascending bucket and a count')
}

function isHistogram (value: unknown): value is number[] {
  return Array.isArray(value) && value.length % 2 === 0 && value.length <= 2 * BUCKETS && isSparse(value)
}

function routesOf (value: unknown): RouteReport[] {
  if (Array.isArray(value) && value.length <= MAX_ROUTES + 1 && value.every(isRoute)) return value
  throw unexpectedError('routes', `at most ${MAX_ROUTES + 1} routes, each with its errors and latency`)
}

function isRoute (value: unknown) {
  const { route, errors, latency, slowest } = Object(value)
  return typeof route === 'string' && route.length > 0 && route.length <= MAX_ROUTE_CHARS && isCount(errors) &&
    isHistogram(latency) && (slowest === undefined || isSlowRequest(slowest))
}

function isSlowRequest (value: unknown) {
  const { method, path, status, ms, at } = Object(value)
  return isCount(status) &&
    [method, path].every((each) => typeof each === 'string' && each.length <= MAX_TARGET_CHARS) &&
    [ms, at].every((each) => typeof each === 'number' && each >= 0 && each <= MAX_TIME_MS)
}

function isSparse (pairs: unknown[]) {
  let last = -1
  for (let n = 0; n < pairs.length; n += 2) {
    const index = pairs[n]
    if (!isCount(index) || index <= last || index >= BUCKETS || !isCount(pairs[n + 1])) return false
    last = index
  }
  return true
}

function isCount (value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
}

function unexpectedError (name: string, expected: string) {
  return new TypeError(`vitals: ${name}: expected ${expected}`)
}
