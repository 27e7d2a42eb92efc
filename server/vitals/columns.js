import { STATUS_CLASSES } from '../../workers/protocol.js'

/**
 * The vitals of a worker, a slot or the cluster: one number for each column, NaN if it is unknown.
 * @typedef {Float64Array} Row
 *
 * @typedef {'sum' | 'max' | 'mean' | 'merged'} Rule  `merged`: by the histogram, as no arithmetic on quantiles is right
 *
 * @typedef {'rssBytes' | 'heapUsedBytes' | 'heapTotalBytes' | 'externalBytes'} MemoryName
 * @typedef {'cpuPercent' | 'eventLoopUtilization' | 'loopDelayP50Ms' | 'loopDelayP99Ms' | 'loopDelayMaxMs'} LoopName
 * @typedef {MemoryName | LoopName | 'inFlight' | 'openConnections' | 'processes' | 'threads' | 'descriptors'} MeasuredName
 * @typedef {`requests${Capitalize<typeof STATUS_CLASSES[number]>}`} StatusName
 * @typedef {MeasuredName | StatusName | 'latencyP50Ms' | 'latencyP90Ms' | 'latencyP99Ms'} ColumnName
 *
 * @typedef {object} Column
 * @property {ColumnName} name
 * @property {Rule} across  how workers add up to a slot, or to the cluster
 * @property {Rule} over  how seconds add up to a longer step
 * @property {number} perUnit  the precision that is kept: 1000 for thousandths, 1/1024 for whole KiB
 */

const KIB = 1 / 1024

/**
 * Memory, requests in flight and connections are the highest of a step, since it is the peak that hurts.
 * @type {readonly Readonly<Column>[]}
 */
export const COLUMNS = Object.freeze([
  { name: 'rssBytes', across: 'sum', over: 'max', perUnit: KIB },
  { name: 'heapUsedBytes', across: 'sum', over: 'max', perUnit: KIB },
  { name: 'heapTotalBytes', across: 'sum', over: 'max', perUnit: KIB },
  { name: 'externalBytes', across: 'sum', over: 'max', perUnit: KIB },
  { name: 'cpuPercent', across: 'sum', over: 'mean', perUnit: 10 },
  { name: 'eventLoopUtilization', across: 'mean', over: 'mean', perUnit: 1000 },
  { name: 'loopDelayP50Ms', across: 'mean', over: 'mean', perUnit: 1000 },
  { name: 'loopDelayP99Ms', across: 'max', over: 'max', perUnit: 1000 },
  { name: 'loopDelayMaxMs', across: 'max', over: 'max', perUnit: 1000 },
  { name: 'inFlight', across: 'sum', over: 'max', perUnit: 1 },
  { name: 'openConnections', across: 'sum', over: 'max', perUnit: 1 },
  ...STATUS_CLASSES.map(statusColumn),
  { name: 'latencyP50Ms', across: 'merged', over: 'merged', perUnit: 1000 },
  { name: 'latencyP90Ms', across: 'merged', over: 'merged', perUnit: 1000 },
  { name: 'latencyP99Ms', across: 'merged', over: 'merged', perUnit: 1000 },
  { name: 'processes', across: 'sum', over: 'max', perUnit: 1 },
  { name: 'threads', across: 'sum', over: 'max', perUnit: 1 },
  { name: 'descriptors', across: 'sum', over: 'max', perUnit: 1 }
])

/** The columns that can be asked for; the first three are computed from others. */
export const COLUMN_NAMES = Object.freeze(['requests', 'requestsPerSecond', 'requests5xxPerSecond', ...COLUMNS.map(({ name }) => name)])

export const FIRST_STATUS = indexOf('requests2xx')
/** The quantiles that are kept, with the index of their columns. */
export const QUANTILES = Object.freeze([[0.5, indexOf('latencyP50Ms')], [0.9, indexOf('latencyP90Ms')], [0.99, indexOf('latencyP99Ms')]])

/** @param {typeof STATUS_CLASSES[number]} status @returns {Column} */
function statusColumn (status) {
  const name = /** @type {StatusName} */ (`requests${status[0].toUpperCase()}${status.slice(1)}`)
  return { name, across: 'sum', over: 'sum', perUnit: 1 }
}

/** @param {ColumnName} name @returns {number} the index of the column in a row */
export function indexOf (name) {
  return COLUMNS.findIndex((column) => column.name === name)
}

/** @param {ArrayLike<number>} row @param {number} [offset] @returns {number} all requests that have ended, of any status */
export function requestsOf (row, offset = 0) {
  let sum = 0
  for (let index = 0; index < STATUS_CLASSES.length; index++) sum += row[offset + FIRST_STATUS + index]
  return sum
}

/** @param {number} index of a column @param {number} value @returns {number | null} rounded; null: unknown */
export function shownValue (index, value) {
  if (Number.isNaN(value)) return null
  const { perUnit } = COLUMNS[index]
  return Math.round(value * perUnit) / perUnit
}

/** @param {ArrayLike<number>} row @param {number} [offset] */
export function toObject (row, offset = 0) {
  return /** @type {Record<ColumnName, number | null>} */ (Object.fromEntries(COLUMNS.map(({ name }, index) => [name, shownValue(index, row[offset + index])])))
}
