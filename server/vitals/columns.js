import { STATUS_CLASSES } from '../../workers/protocol.js'

/**
 * What is known of a worker, a slot or the cluster for some time: one number for each column, NaN where there is none.
 * @typedef {Float64Array} Row
 *
 * @typedef {'sum' | 'max' | 'mean' | 'merged'} Rule  `merged`: by the histogram, as no arithmetic on quantiles is right
 *
 * @typedef {'rssBytes' | 'heapUsedBytes' | 'heapTotalBytes' | 'externalBytes' | 'cpuPercent' | 'eventLoopUtilization' | 'loopDelayP50Ms' | 'loopDelayP99Ms' |
 *   'loopDelayMaxMs' | 'inFlight' | 'openConnections' | `requests${Capitalize<typeof STATUS_CLASSES[number]>}` | 'latencyP50Ms' | 'latencyP90Ms' | 'latencyP99Ms'} ColumnName
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
  ...STATUS_CLASSES.map((each) => {
    const name = /** @type {ColumnName} */ (`requests${each[0].toUpperCase()}${each.slice(1)}`)
    return /** @type {const} */ ({ name, across: 'sum', over: 'sum', perUnit: 1 })
  }),
  { name: 'latencyP50Ms', across: 'merged', over: 'merged', perUnit: 1000 },
  { name: 'latencyP90Ms', across: 'merged', over: 'merged', perUnit: 1000 },
  { name: 'latencyP99Ms', across: 'merged', over: 'merged', perUnit: 1000 }
])

/** What can be asked for: these, and what follows from them. */
export const COLUMN_NAMES = Object.freeze(['requests', 'requestsPerSecond', 'requests5xxPerSecond', ...COLUMNS.map(({ name }) => name)])

/** @type {ReadonlyMap<string, number>} */
const INDEX = new Map(COLUMNS.map(({ name }, index) => [name, index]))

export const FIRST_STATUS = indexOf('requests2xx')
/** The quantiles that are kept, and where. */
export const QUANTILES = Object.freeze([[0.5, indexOf('latencyP50Ms')], [0.9, indexOf('latencyP90Ms')], [0.99, indexOf('latencyP99Ms')]])

/** @param {string} name @returns {number} where the column is in a row */
export function indexOf (name) {
  return /** @type {number} */ (INDEX.get(name))
}

/** @param {ArrayLike<number>} row @param {number} [offset] @returns {number} all requests that have ended, however they did */
export function requestsOf (row, offset = 0) {
  let sum = 0
  for (let index = 0; index < STATUS_CLASSES.length; index++) sum += row[offset + FIRST_STATUS + index]
  return sum
}

/** @param {number} index of a column @param {number} value @returns {number | null} as it is shown: rounded, and null where it is not known */
export function shownValue (index, value) {
  if (Number.isNaN(value)) return null
  const { perUnit } = COLUMNS[index]
  return Math.round(value * perUnit) / perUnit
}

/** @param {ArrayLike<number>} row @param {number} [offset] @returns {Record<string, number | null>} by name */
export function toObject (row, offset = 0) {
  return Object.fromEntries(COLUMNS.map(({ name }, index) => [name, shownValue(index, row[offset + index])]))
}
