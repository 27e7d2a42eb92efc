import { DeckError } from '../server/errors.ts'
import { checkKept, decodeCursor, encodeCursor } from './cursor.ts'
import { COLUMNS, SPAN_SIZE, type EventRow } from './events.ts'
import { statementCache, type Db } from './sqlite.ts'
import type { CountWithEnds } from './event-counts.ts'

/** All filters given must hold. */
export type EventQuery = {
  /** a type, several of them, one with a cause such as `worker.exited:crash`, or a family such as `worker.*` */
  type?: string | string[],
  cause?: string,
  slot?: number,
  worker?: number,
  release?: string,
  rollout?: number,
  /** ISO 8601 or ms since the epoch; events at that time or later */
  since?: string | number,
  /** events before that time */
  until?: string | number,
  /** part of a message, type or cause; the case of ASCII letters does not matter */
  q?: string,
  /** 1…1000, default 100 */
  limit?: number,
  /** the `next` of the page before */
  cursor?: string | null
}

/** the column equals one of the values; `causes`: the causes that a value may have */
type Filter = { values: (string | number)[], column: string, index: string, causes?: Map<string | number, string[]> }
/** both inclusive */
type IdRange = { newest: number, oldest: number }
/** ms since the epoch */
export type Times = { since: number | null, until: number | null }
type Conditions = { sql: string, values: Record<string, string | number> }
type Rows<Row> = import('./sqlite.ts').Rows<Row>
export type EventSearch = ReturnType<typeof createEventSearch>
export type Search = { query: EventQuery, filters: Filter[], times: Times, range: IdRange, conditions: Conditions }

const CURSOR_KIND = 'e'
const MAX_TYPES = 128
const MAX_Q_CHARS = 100
const FILTER_COLUMNS: readonly ('rollout' | 'worker' | 'cause' | 'release' | 'slot')[] = ['rollout', 'worker', 'cause',
  'release', 'slot']
const NO_TIMES: Times = Object.freeze({ since: null, until: null })

// One statement reads a chunk of index entries, and its time decides how long the next chunk is. The first is small,
// because every row of it may have to come from the disk.
export const FIRST_CHUNK = 32
const MIN_CHUNK = 16
const MAX_CHUNK = 1024

/**
 * Turns a query into SQL: the ids it may concern, the conditions on their rows, and the index to read a chunk by.
 *
 * SQLite cannot be interrupted from its own thread, so everything is read in chunks. Each chunk is read by the filter
 * whose next few hundred matches reach furthest back; the other filters are checked on those rows alone.
 */
export function createEventSearch (db: Db) {
  const prepare = statementCache(db)
  // SQLite looks up a lone max() or min(), but would scan the table for both in one query.
  const bounds: Rows<{ newest: number | null, oldest: number | null }> = db.prepare(
    'SELECT (SELECT max(id) FROM events) AS newest, (SELECT min(id) FROM events) AS oldest'
  )
  const newestSpan = db.prepare('SELECT max(span) FROM spans WHERE oldest_ms < ?').pluck()
  const oldestSpan = db.prepare('SELECT min(span) FROM spans WHERE newest_ms >= ?').pluck()
  // It steps from one type to the next through the index, since there are far fewer types than events.
  const knownTypes: Rows<{ type: string }> = db.prepare(`
    WITH RECURSIVE known (type) AS (
      SELECT min(type) FROM events
      UNION ALL SELECT (SELECT min(type) FROM events WHERE type > known.type) FROM known WHERE known.type IS NOT NULL)
    SELECT type FROM known WHERE type IS NOT NULL`)

  return { prepare, begin: beginSearch, leadingFilter, rows: selectRows, groups: selectGroups, keptIds }

  /** Null: nothing can match */
  function beginSearch (query: EventQuery): Search | null {
    const times = { since: toMs('since', query.since), until: toMs('until', query.until) }
    const filters = toFilters(query)
    const range = idRange(decodeCursor(CURSOR_KIND, query.cursor), times)
    if (range === null || filters === null) return null
    return { query, filters, times, range, conditions: toConditions(query, filters, times) }
  }

  /** @returns `filter` has at most `chunk` matches from `oldest` to the newest */
  function leadingFilter (filters: Filter[], { newest, oldest }: IdRange,
    chunk: number): { filter: Filter | null, oldest: number }
  {
    let best: { filter: Filter | null, oldest: number } = { filter: null, oldest: Math.max(oldest, newest - chunk + 1) }
    for (const filter of filters) {
      const sql = unionOf(filter, (condition) =>
        `SELECT id FROM events INDEXED BY ${filter.index} WHERE ${condition} AND id BETWEEN @oldest AND @newest`)
      const nth: Rows<{ id: number }> = prepare(`${sql} ORDER BY id DESC LIMIT 1 OFFSET @chunk`)
      const reached = nth.get({ ...branchValues(filter), newest, oldest, chunk: chunk - 1 })
      const candidate = { filter, oldest: reached?.id ?? oldest }
      if (best.filter === null || candidate.oldest < best.oldest)
        best = candidate
    }
    return best
  }

  /** `conditions`: newest first */
  function selectRows (lead: { filter: Filter | null }, range: IdRange, conditions: Conditions) {
    const rows: Rows<EventRow> = prepare(`${selectionOf(lead, conditions, COLUMNS)} ORDER BY id DESC`)
    return rows.iterate(valuesOf(lead, range, conditions))
  }

  /** Counts rows by type, cause and step of time. */
  function selectGroups (lead: { filter: Filter | null }, range: IdRange, conditions: Conditions,
    stepMs: number): CountWithEnds[]
  {
    const selection = selectionOf(lead, conditions, 'at_ms, type, cause, id')
    const groups: Rows<CountWithEnds> = prepare(`
      SELECT at_ms / @stepMs AS step, type, cause, count(*) AS count, min(at_ms) AS firstMs, max(at_ms) AS lastMs, max(id) AS lastId
      FROM (${selection}) GROUP BY 1, 2, 3`)
    return groups.all({ ...valuesOf(lead, range, conditions), stepMs: BigInt(stepMs) })
  }

  function selectionOf ({ filter }: { filter: Filter | null }, conditions: Conditions, columns: string) {
    const within = `id BETWEEN @oldest AND @newest${conditions.sql}`
    return filter === null
      ? `SELECT ${columns} FROM events NOT INDEXED WHERE ${within}`
      : unionOf(filter,
        (condition) => `SELECT ${columns} FROM events INDEXED BY ${filter.index} WHERE ${condition} AND ${within}`)
  }

  function valuesOf ({ filter }: { filter: Filter | null }, range: IdRange, conditions: Conditions) {
    return { ...conditions.values, ...(filter && branchValues(filter)), ...range }
  }

  /** Null: nothing can match */
  function idRange (before: number, { since, until }: Times): IdRange | null {
    const stored = keptIds()
    checkKept(before, () => stored !== null && stored.oldest < before)
    if (stored === null) return null
    const range = { newest: Math.min(stored.newest, before - 1), oldest: stored.oldest }
    if (until !== null) {
      const span = newestSpan.get(until)
      if (span === null) return null
      range.newest = Math.min(range.newest, (Number(span) + 1) * SPAN_SIZE - 1)
    }
    if (since !== null) {
      const span = oldestSpan.get(since)
      if (span === null) return null
      range.oldest = Math.max(range.oldest, Number(span) * SPAN_SIZE)
    }
    return range
  }

  /** Null: there are no events */
  function keptIds (): IdRange | null {
    const { newest = null, oldest = null } = bounds.get() ?? {}
    return newest === null || oldest === null ? null : { newest, oldest }
  }

  /** Null: a family without any member matches nothing */
  function toFilters (query: EventQuery): Filter[] | null {
    const { type = [] } = query
    const filters = FILTER_COLUMNS.flatMap((column) => {
      const value = query[column]
      return value === undefined || value === null ? [] : [filterOf(column, { values: [value] })]
    })
    if (type === null || type.length === 0) return filters
    const types = expandTypes(type)
    return types.values.length === 0 ? null : [...filters, filterOf('type', types)]
  }

  function expandTypes (given: string | string[]) {
    const patterns = new Set(Array.isArray(given) ? given : [given])
    if (patterns.size > MAX_TYPES)
      throw new DeckError('invalid-query', `type: expected at most ${MAX_TYPES} types, received ${patterns.size}`)
    const families = [...patterns].filter((pattern) => pattern.endsWith('*'))
    const known = patterns.size > 1 || families.length > 0
      ? knownTypes.all().map(({ type }) => type)
      : [...patterns].map(typeOf)
    // Each type costs a SELECT of its own, and of a hundred that pages ask for, a history knows few.
    const exact = [...patterns].filter((pattern) => !pattern.endsWith('*') && known.includes(typeOf(pattern)))
    const members = known.filter((type) => families.some((family) => type.startsWith(family.slice(0, -1))))
    const plain = new Set([...exact.filter((pattern) => !pattern.includes(':')), ...members])
    const causes = causesByType(exact.filter((pattern) => pattern.includes(':')), plain)
    return { values: [...plain, ...causes.keys()], causes }
  }
}

function filterOf (column: string, wanted: Pick<Filter, 'values' | 'causes'>): Filter {
  return { column: `"${column}"`, index: `events_by_${column}`, ...wanted }
}

/** `pattern`: a type, or `type:cause` */
function typeOf (pattern: string) {
  return pattern.split(':', 1)[0]
}

/** `patterns`: `type:cause`; `plain`: types of which every cause is wanted */
function causesByType (patterns: string[], plain: Set<string>) {
  const causes: Map<string, string[]> = new Map()
  for (const pattern of patterns) {
    const [type, cause] = pattern.split(':', 2)
    if (!plain.has(type)) causes.set(type, [...causes.get(type) ?? [], cause])
  }
  return causes
}

/** With one SELECT per value SQLite reads each from its index in order, and merges them without sorting. */
function unionOf ({ column, values }: Filter, select: (condition: string) => string) {
  return values.map((_, index) => select(`${column} = @value${index}`)).join(' UNION ALL ')
}

function branchValues ({ values }: Filter): Record<string, string | number> {
  return Object.fromEntries(values.map((value, index) => [`value${index}`, value]))
}

/** The conditions on every row. They repeat the leading filter, which costs little and keeps the statements few. */
export function toConditions (query: EventQuery, filters: Filter[], { since, until }: Times = NO_TIMES): Conditions {
  const values: Conditions['values'] = {}
  const conditionIn = (column: string, prefix: string, wanted: (string | number)[]) => {
    const names = wanted.map((value, index) => {
      const name = `${prefix}${index}`
      values[name] = value
      return `@${name}`
    })
    return `${column} IN (${names.join(', ')})`
  }
  const parts = filters.map(({ column, values: wanted, causes = new Map() }) => {
    const prefix = column.slice(1, -1)
    const plain = conditionIn(column, prefix, wanted.filter((value) => !causes.has(value)))
    const withCause = [...causes].map(([type, names], index) => {
      return `(${conditionIn(column, `${prefix}_${index}_`, [type])} AND ${
        conditionIn('cause', `${prefix}_cause_${index}_`, names)
      })`
    })
    return withCause.length === 0 ? plain : `(${[plain, ...withCause].join(' OR ')})`
  })
  if (since !== null) parts.push('at_ms >= @since')
  if (until !== null) parts.push('at_ms < @until')
  if (query.q)
    parts.push('(message LIKE @q ESCAPE \'\\\' OR type LIKE @q ESCAPE \'\\\' OR cause LIKE @q ESCAPE \'\\\')')
  if (since !== null) values.since = since
  if (until !== null) values.until = until
  if (query.q) values.q = toPattern(query.q)
  return { sql: parts.map((part) => ` AND ${part}`).join(''), values }
}

function toPattern (q: string) {
  if (q.length > MAX_Q_CHARS)
    throw new DeckError('invalid-query', `q: expected at most ${MAX_Q_CHARS} characters, received ${q.length}`)
  return `%${q.replace(/[\\%_]/g, '\\$&')}%`
}

function toMs (name: string, value: string | number | null | undefined): number | null {
  if (value === undefined || value === null || value === '') return null
  const ms = typeof value === 'number' ? value : Date.parse(value)
  if (Number.isFinite(ms)) return ms
  throw new DeckError('invalid-query',
    `${name}: expected an ISO 8601 time, received ${JSON.stringify(String(value).slice(0, 60))}`)
}

/** A chunk should take half a millisecond to one: short enough to stop in time, long enough to be worth a statement. */
export function resizeChunk (chunk: number, tookMs: number) {
  if (tookMs < 0.5) return Math.min(chunk * 2, MAX_CHUNK)
  return tookMs > 1 ? Math.max(chunk >> 1, MIN_CHUNK) : chunk
}

/** @returns the page begins below this id */
export function beforeOf (cursor: string): number {
  return decodeCursor(CURSOR_KIND, cursor)
}

/** `before`: the next page begins below this id */
export function cursorAt (before: number) {
  return encodeCursor(CURSOR_KIND, before)
}
