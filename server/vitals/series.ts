import { DeckError } from '../errors.ts'
import { didYouMean } from '../config/nearest.ts'
import { decodeStep } from './codec.ts'
import { COLUMN_NAMES, COLUMNS, indexOf, requestsOf, shownValue } from './columns.ts'
import { joinSteps, type Points } from './points.ts'
import type { createRing } from './ring.ts'

/**
 * Vitals over time as columns of one length, ready for uPlot: `time` is the begin of each step in seconds since the
 * epoch, and the cluster and each slot have one array per column, with null for an unknown value.
 */
type Series = {
  stepMs: number,
  time: number[],
  cluster: Record<string, (number | null)[]>,
  /** ascending */
  slots: ({ slot: number, columns: Record<string, (number | null)[]> })[],
  /** if they were asked for: what is older than `time` */
  points?: Points,
  /** where to go on if this was too much for one answer, else null */
  nextMs: number | null
}

// So many values take about 10 ms to collect and to make JSON of.
const MAX_VALUES = 100_000
const PAGE_ROWS = 100
const ERRORS = indexOf('requests5xx')

/** of a column; the row covers `stepS` seconds */
type Reader = (row: ArrayLike<number>, offset: number, stepS: number) => number | null

const READERS: Map<string, Reader> = new Map()
READERS.set('requests', requestsIn).set('requestsPerSecond', perSecond).set('requests5xxPerSecond', errorsPerSecond)
COLUMNS.forEach(({ name }, index) => READERS.set(name, (row, offset) => shownValue(index, row[offset + index])))

type Ring = Pick<ReturnType<typeof createRing>, 'values' | 'find' | 'newest'>
export function createSeries ({ now, memoryS, cluster, slots, read, maxValues = MAX_VALUES }: {
  now: () => number,
  /** how long seconds are kept */
  memoryS: number,
  cluster: Ring,
  slots: ReadonlyMap<number, { ring: Ring }>,
  read: (query: { stepS: number, sinceS: number, untilS: number, limit: number }) => { at: number, body: Uint8Array }[],
  maxValues?: number
}) {
  /**
   * @throws {RangeError} for any other step; DeckError `invalid-query` for an unknown column; and what the database
   * says
   */
  return function series (
    { sinceMs, untilMs = now(), stepMs, columns = COLUMN_NAMES, slots: wanted = 'all', pointMs }: {
      /** from this moment on */
      sinceMs: number,
      /** before this moment; default: now */
      untilMs?: number,
      /** 1000, 10,000 or 60,000 */
      stepMs: number,
      /** by name; default: all */
      columns?: readonly string[],
      /** default: all */
      slots?: 'all' | 'none' | number,
      /** joins the steps of so much time, see points.ts */
      pointMs?: number
    }
  ): Series {
    if (![1000, 10_000, 60_000].includes(stepMs))
      throw new RangeError(`stepMs: expected 1000, 10000 or 60000, received ${stepMs}`)
    const table = createTable(readersOf(columns), stepMs / 1000, maxValues)
    const range = { sinceS: Math.ceil(sinceMs / 1000), untilS: Math.ceil(untilMs / 1000) }
    const isWanted = (slot: number) => wanted === 'all' || slot === wanted
    const nextS = stepMs === 1000
      ? fromMemory(table, { isWanted, ...range })
      : fromDatabase(table, { stepS: stepMs / 1000, isWanted, ...range })
    const steps = table.read()
    return { stepMs, ...(pointMs === undefined ? steps : joinSteps(steps, pointMs)),
      nextMs: nextS === null ? null : nextS * 1000 }
  }

  /** @returns where to go on */
  function fromMemory (table: Table,
    { sinceS, untilS, isWanted }: { sinceS: number, untilS: number, isWanted: (slot: number) => boolean }
  ): number | null {
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

  function fromDatabase (table: Table,
    { stepS, sinceS, untilS, isWanted }: { stepS: number, sinceS: number, untilS: number,
      isWanted: (slot: number) => boolean }): number | null
  {
    for (;;) {
      const steps = read({ stepS, sinceS, untilS, limit: PAGE_ROWS })
      for (const { at, body } of steps) {
        if (table.isFull()) return at
        table.begin(at)
        decodeStep(body, (slot, row) => {
          if (slot === 0 || isWanted(slot)) table.add(slot, row, 0)
        })
        sinceS = at + 1
      }
      if (steps.length < PAGE_ROWS) return null
    }
  }
}

type Table = ReturnType<typeof createTable>

/** @throws {DeckError} invalid-query */
function readersOf (names: readonly string[]): Map<string, Reader> {
  return new Map(names.map((name) => {
    const reader = READERS.get(name)
    if (reader) return [name, reader]
    const expected = `columns: expected some of ${COLUMN_NAMES.join(', ')}`
    throw new DeckError('invalid-query',
      `${expected}, received ${JSON.stringify(name)}${didYouMean(name, COLUMN_NAMES)}`)
  }))
}

function createTable (readersByName: Map<string, Reader>, stepS: number, maxValues: number) {
  const names = [...readersByName.keys()]
  const readers = [...readersByName.values()]
  const time: number[] = []
  /** by slot, then by column; slot 0 is the cluster */
  const groups: Map<number, (number | null)[][]> = new Map([[0, names.map(() => [])]])

  return { isFull: () => time.length * groups.size * names.length >= maxValues, begin (second: number) {
    time.push(second)
  }, add (slot: number, row: ArrayLike<number>, offset: number) {
    const columns = columnsOf(slot)
    const last = time.length - 1
    for (let index = 0; index < columns.length; index++)
      putValue(columns[index], last, readers[index](row, offset, stepS))
  }, read () {
    for (const columns of groups.values()) for (const column of columns) putValue(column, time.length, undefined)
    const [cluster, ...slots] = [...groups].sort(([a], [b]) => a - b).map(([slot, columns]) => {
      return { slot, columns: Object.fromEntries(names.map((name, index) => [name, columns[index]])) }
    })
    return { time, cluster: cluster.columns, slots }
  } }

  function columnsOf (slot: number) {
    let columns = groups.get(slot)
    if (!columns) groups.set(slot, columns = names.map(() => []))
    return columns
  }
}

/** Fills the places before it with null. `value`: undefined: none. */
function putValue (column: (number | null)[], index: number, value: number | null | undefined) {
  while (column.length < index) column.push(null)
  if (value !== undefined) column.push(value)
}

function requestsIn (row: ArrayLike<number>, offset: number) {
  const requests = requestsOf(row, offset)
  return Number.isNaN(requests) ? null : requests
}

/** @returns requests */
export function perSecond (row: ArrayLike<number>, offset: number, stepS: number) {
  return rateOf(requestsIn(row, offset), stepS)
}

function errorsPerSecond (row: ArrayLike<number>, offset: number, stepS: number) {
  return rateOf(shownValue(ERRORS, row[offset + ERRORS]), stepS)
}

function rateOf (count: number | null, stepS: number) {
  return count === null ? null : Math.round(count / stepS * 10) / 10
}
