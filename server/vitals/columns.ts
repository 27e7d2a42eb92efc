import { STATUS_CLASSES } from '../../workers/protocol.ts'

/** The vitals of a worker, a slot or the cluster: one number for each column, NaN if it is unknown. */
export type Row = Float64Array
/** `merged`: by the histogram, as no arithmetic on quantiles is right */
type Rule = 'sum' | 'max' | 'mean' | 'merged'
type MemoryName = 'rssBytes' | 'heapUsedBytes' | 'heapTotalBytes' | 'externalBytes'
type LoopName = 'cpuPercent' | 'eventLoopUtilization' | 'loopDelayP50Ms' | 'loopDelayP99Ms' | 'loopDelayMaxMs'
export type MeasuredName = MemoryName | LoopName | 'inFlight' | 'openConnections' | 'processes' | 'threads'
  | 'descriptors'
type StatusName = `requests${Capitalize<typeof STATUS_CLASSES[number]>}`
export type ColumnName = MeasuredName | StatusName | 'latencyP50Ms' | 'latencyP90Ms' | 'latencyP99Ms'
type Column = {
  name: ColumnName,
  /** how workers add up to a slot, or to the cluster */
  across: Rule,
  /** how seconds add up to a longer step */
  over: Rule,
  /** the precision that is kept: 1000 for thousandths, 1/1024 for whole KiB */
  perUnit: number
}

const KIB = 1 / 1024

/** Memory, requests in flight and connections are the highest of a step, since it is the peak that hurts. */
export const COLUMNS: readonly Readonly<Column>[] = Object.freeze([{ name: 'rssBytes', across: 'sum', over: 'max',
  perUnit: KIB }, { name: 'heapUsedBytes', across: 'sum', over: 'max', perUnit: KIB }, { name: 'heapTotalBytes',
  across: 'sum', over: 'max', perUnit: KIB }, { name: 'externalBytes', across: 'sum', over: 'max', perUnit: KIB }, {
  name: 'cpuPercent',
  across: 'sum',
  over: 'mean',
  perUnit: 10
}, { name: 'eventLoopUtilization', across: 'mean', over: 'mean', perUnit: 1000 }, { name: 'loopDelayP50Ms',
  across: 'mean', over: 'mean', perUnit: 1000 }, { name: 'loopDelayP99Ms', across: 'max', over: 'max', perUnit: 1000 },
  { name: 'loopDelayMaxMs', across: 'max', over: 'max', perUnit: 1000 }, { name: 'inFlight', across: 'sum', over: 'max',
  perUnit: 1 }, { name: 'openConnections', across: 'sum', over: 'max', perUnit: 1 },
  ...STATUS_CLASSES.map(statusColumn), { name: 'latencyP50Ms', across: 'merged', over: 'merged', perUnit: 1000 }, {
  name: 'latencyP90Ms',
  across: 'merged',
  over: 'merged',
  perUnit: 1000
}, { name: 'latencyP99Ms', across: 'merged', over: 'merged', perUnit: 1000 }, { name: 'processes', across: 'sum',
  over: 'max', perUnit: 1 }, { name: 'threads', across: 'sum', over: 'max', perUnit: 1 }, { name: 'descriptors',
  across: 'sum', over: 'max', perUnit: 1 }])

/** The columns that can be asked for; the first three are computed from others. */
export const COLUMN_NAMES = Object.freeze(['requests', 'requestsPerSecond', 'requests5xxPerSecond',
  ...COLUMNS.map(({ name }) => name)])

export const FIRST_STATUS = indexOf('requests2xx')
/** The quantiles that are kept, with the index of their columns. */
export const QUANTILES = Object.freeze([[0.5, indexOf('latencyP50Ms')], [0.9, indexOf('latencyP90Ms')], [0.99,
  indexOf('latencyP99Ms')]])

function statusColumn (status: typeof STATUS_CLASSES[number]): Column {
  const name = `requests${status[0].toUpperCase()}${status.slice(1)}` as StatusName
  return { name, across: 'sum', over: 'sum', perUnit: 1 }
}

export function indexOf (name: ColumnName): number {
  return COLUMNS.findIndex((column) => column.name === name)
}

export function requestsOf (row: ArrayLike<number>, offset: number = 0): number {
  let sum = 0
  for (let index = 0; index < STATUS_CLASSES.length; index++) sum += row[offset + FIRST_STATUS + index]
  return sum
}

/** `index`: of a column. Returns rounded; null: unknown. */
export function shownValue (index: number, value: number): number | null {
  if (Number.isNaN(value)) return null
  const { perUnit } = COLUMNS[index]
  return Math.round(value * perUnit) / perUnit
}

export function toObject (row: ArrayLike<number>, offset: number = 0) {
  return Object.fromEntries(COLUMNS.map(({ name }, index) => [name, shownValue(index, row[offset + index])])) as Record<
    ColumnName,
    number | null
  >
}
