import { DeckError } from '../errors.js'
import { didYouMean } from '../config/nearest.js'
import { decodeStep } from './codec.js'
import { COLUMN_NAMES, COLUMNS, indexOf, requestsOf, shownValue } from './columns.js'
import { joinSteps } from './points.js'

/**
 * Vitals over time as columns of one length, ready for uPlot: `time` is the begin of each step in seconds since the epoch, and
 * the cluster and each slot have one array per column, with null for an unknown value.
 * @typedef {object} Series
 * @property {number} stepMs
 * @property {number[]} time
 * @property {Record<string, (number | null)[]>} cluster
 * @property {({ slot: number, columns: Record<string, (number | null)[]> })[]} slots  ascending
 * @property {import('./points.js').Points} [points]  if they were asked for: what is older than `time`
 * @property {number | null} nextMs  where to go on if this was too much for one answer, else null
 */

// So many values take about 10 ms to collect and to make JSON of.
const MAX_VALUES = 100_000
const PAGE_ROWS = 100
const ERRORS = indexOf('requests5xx')

/** @typedef {(row: ArrayLike<number>, offset: number, stepS: number) => number | null} Reader  of a column; the row covers `stepS` seconds */

/** @type {Map<string, Reader>} */
const READERS = new Map()
READERS.set('requests', requestsIn).set('requestsPerSecond', perSecond).set('requests5xxPerSecond', errorsPerSecond)
COLUMNS.forEach(({ name }, index) => READERS.set(name, (row, offset) => shownValue(index, row[offset + index])))

/**
 * @param {object} parts
 * @param {() => number} parts.now
 * @param {number} parts.memoryS  how long seconds are kept
 * @param {Ring} parts.cluster
 * @param {ReadonlyMap<number, { ring: Ring }>} parts.slots
 * @param {(query: { stepS: number, sinceS: number, untilS: number, limit: number }) => { at: number, body: Uint8Array }[]} parts.read
 * @param {number} [parts.maxValues]
 *
 * @typedef {Pick<ReturnType<typeof import('./ring.js').createRing>, 'values' | 'find' | 'newest'>} Ring
 */
export function createSeries ({ now, memoryS, cluster, slots, read, maxValues = MAX_VALUES }) {
  /**
   * @param {object} query
   * @param {number} query.sinceMs  from this moment on
   * @param {number} [query.untilMs]  before this moment; default: now
   * @param {number} query.stepMs  1000, 10,000 or 60,000
   * @param {readonly string[]} [query.columns]  by name; default: all
   * @param {'all' | 'none' | number} [query.slots]  default: all
   * @param {number} [query.pointMs]  joins the steps of so much time, see points.js
   * @returns {Series}
   * @throws {RangeError} for any other step; DeckError `invalid-query` for an unknown column; and what the database says
   */
  return function series ({ sinceMs, untilMs = now(), stepMs, columns = COLUMN_NAMES, slots: wanted = 'all', pointMs }) {
    if (![1000, 10_000, 60_000].includes(stepMs)) throw new RangeError(`stepMs: expected 1000, 10000 or 60000, received ${stepMs}`)
    const table = createTable(readersOf(columns), stepMs / 1000, maxValues)
    const range = { sinceS: Math.ceil(sinceMs / 1000), untilS: Math.ceil(untilMs / 1000) }
    const isWanted = (/** @type {number} */ slot) => wanted === 'all' || slot === wanted
    const nextS = stepMs === 1000 ? fromMemory(table, { isWanted, ...range }) : fromDatabase(table, { stepS: stepMs / 1000, isWanted, ...range })
    const steps = table.read()
    return { stepMs, ...(pointMs === undefined ? steps : joinSteps(steps, pointMs)), nextMs: nextS === null ? null : nextS * 1000 }
  }

  /** @param {Table} table @param {{ sinceS: number, untilS: number, isWanted: (slot: number) => boolean }} range @returns {number | null} where to go on */
  function fromMemory (table, { sinceS, untilS, isWanted }) {
    const last = Math.min(cluster.newest, untilS - 1)
    for (let second = Math.max(sinceS, cluster.newest - memoryS + 1); second <= last; second++) {
      const offset = cluster.find(second)
      if (offset < 0) continue
      if (table.isFull()) return second
      table.begin(second)
      table.add(0, cluster.values, offset)
      for (const [slot, { ring }] of slots) {
        if (!isWanted(slot)) continue
        const place = ring.find(second)
        if (place >= 0) table.add(slot, ring.values, place)
      }
    }
    return null
  }

  /** @param {Table} table @param {{ stepS: number, sinceS: number, untilS: number, isWanted: (slot: number) => boolean }} range @returns {number | null} */
  function fromDatabase (table, { stepS, sinceS, untilS, isWanted }) {
    for (;;) {
      const steps = read({ stepS, sinceS, untilS, limit: PAGE_ROWS })
      for (const { at, body } of steps) {
        if (table.isFull()) return at
        table.begin(at)
        decodeStep(body, (slot, row) => { if (slot === 0 || isWanted(slot)) table.add(slot, row, 0) })
        sinceS = at + 1
      }
      if (steps.length < PAGE_ROWS) return null
    }
  }
}

/** @typedef {ReturnType<typeof createTable>} Table */

/** @param {readonly string[]} names @returns {Map<string, Reader>} @throws {DeckError} invalid-query */
function readersOf (names) {
  return new Map(names.map((name) => {
    const reader = READERS.get(name)
    if (reader) return [name, reader]
    const expected = `columns: expected some of ${COLUMN_NAMES.join(', ')}`
    throw new DeckError('invalid-query', `${expected}, received ${JSON.stringify(name)}${didYouMean(name, COLUMN_NAMES)}`)
  }))
}

/** @param {Map<string, Reader>} readersByName @param {number} stepS @param {number} maxValues */
function createTable (readersByName, stepS, maxValues) {
  const names = [...readersByName.keys()]
  const readers = [...readersByName.values()]
  /** @type {number[]} */
  const time = []
  /** @type {Map<number, (number | null)[][]>} by slot, then by column; slot 0 is the cluster */
  const groups = new Map([[0, names.map(() => [])]])

  return {
    isFull: () => time.length * groups.size * names.length >= maxValues,

    /** @param {number} second */
    begin (second) { time.push(second) },

    /** @param {number} slot @param {ArrayLike<number>} row @param {number} offset */
    add (slot, row, offset) {
      const columns = columnsOf(slot)
      const last = time.length - 1
      for (let index = 0; index < columns.length; index++) putValue(columns[index], last, readers[index](row, offset, stepS))
    },

    read () {
      for (const columns of groups.values()) for (const column of columns) putValue(column, time.length, undefined)
      const [cluster, ...slots] = [...groups].sort(([a], [b]) => a - b).map(([slot, columns]) => {
        return { slot, columns: Object.fromEntries(names.map((name, index) => [name, columns[index]])) }
      })
      return { time, cluster: cluster.columns, slots }
    }
  }

  function columnsOf (/** @type {number} */ slot) {
    let columns = groups.get(slot)
    if (!columns) groups.set(slot, columns = names.map(() => []))
    return columns
  }
}

/** Fills the places before it with null. @param {(number | null)[]} column @param {number} index @param {number | null | undefined} value  undefined: none */
function putValue (column, index, value) {
  while (column.length < index) column.push(null)
  if (value !== undefined) column.push(value)
}

/** @param {ArrayLike<number>} row @param {number} offset */
function requestsIn (row, offset) {
  const requests = requestsOf(row, offset)
  return Number.isNaN(requests) ? null : requests
}

/** @param {ArrayLike<number>} row @param {number} offset @param {number} stepS */
function perSecond (row, offset, stepS) {
  return rateOf(requestsIn(row, offset), stepS)
}

/** @param {ArrayLike<number>} row @param {number} offset @param {number} stepS */
function errorsPerSecond (row, offset, stepS) {
  return rateOf(shownValue(ERRORS, row[offset + ERRORS]), stepS)
}

/** @param {number | null} count @param {number} stepS */
function rateOf (count, stepS) {
  return count === null ? null : Math.round(count / stepS * 10) / 10
}
