import { startBudget } from './budget.ts'
import { cursorAt, FIRST_CHUNK, resizeChunk, toConditions } from './event-search.ts'
import { SPAN_SIZE } from './events.ts'
import type { EventQuery, EventSearch, Search, Times } from './event-search.ts'
import type { Db, Rows } from './sqlite.ts'

/** `step`: number of the step since the epoch */
export type Count = { step: number, type: string, cause: string | null, count: number }
/** `lastId`: of the newest event */
export type CountWithEnds = Count & { firstMs: number, lastMs: number, lastId: number }
type Budget = ReturnType<typeof startBudget>
type SpanTimes = { oldestMs: number, newestMs: number }
type Reading<Read extends Count> = { found: Search, stepMs: number, add: (count: Read) => void, budget: Budget }

/** The spans do not count by these filters. */
const UNCOUNTED: readonly ('q' | 'slot' | 'worker' | 'release' | 'rollout')[] = ['q', 'slot', 'worker', 'release',
  'rollout']

/**
 * Counts the events of each step of time, within the time that one call may hold the loop. If all events of a span are
 * in one step, the counts of the span are enough; otherwise its rows are counted. So a million events take a few rows
 * per span and the rows of the spans in which a step ends. `clock`: monotonic ms.
 */
export function createEventCounts (db: Db, search: EventSearch, { clock }: { clock: () => number }) {
  const timesOfSpan: Rows<SpanTimes> = db.prepare(
    'SELECT oldest_ms AS oldestMs, newest_ms AS newestMs FROM spans WHERE span = ?'
  )
  const keptTimes: Rows<SpanTimes> = db.prepare(`
    SELECT min(oldest_ms) AS oldestMs, max(newest_ms) AS newestMs FROM spans HAVING count(*) > 0`)

  return {
    count: countEvents,
    countWithEnds,
    /** The first and the last time of what is kept, give or take a span. Returns null: nothing is kept. */
    times: (): SpanTimes | null => keptTimes.get() ?? null
  }

  /**
   * `query`: without a limit. Returns `next`: the time was spent before the end; `reachedMs`: no event that is left to
   * count is later.
   */
  function countEvents (
    query: EventQuery & { stepMs: number }
  ): { counts: Count[], next: string | null, reachedMs: number | null } {
    const tally = createTally()
    const rest = readCounts(query, UNCOUNTED.some((name) => query[name] !== undefined) ? byRows : bySpans, tally.add)
    return { counts: tally.list(), ...rest }
  }

  /**
   * As `countEvents`, with the first and the last time of each count. A step that is read in parts has a count for each
   * part.
   */
  function countWithEnds (
    query: EventQuery & { stepMs: number }
  ): { counts: CountWithEnds[], next: string | null, reachedMs: number | null } {
    const counts: CountWithEnds[] = []
    const rest = readCounts(query, byRows, (count) => counts.push(count))
    return { counts, ...rest }
  }

  /** `reader`: reads a piece that begins with this id, and returns where the next begins */
  function readCounts<Read extends Count> ({ stepMs, ...query }: EventQuery & { stepMs: number },
    reader: (reading: Reading<Read>) => (newest: number) => number, add: (count: Read) => void)
  {
    const found = search.begin(query)
    if (found === null) return { next: null, reachedMs: null }
    const budget = startBudget(clock)
    const below = reader({ found, stepMs, add, budget })
    let { newest } = found.range
    do newest = below(newest)
    while (newest >= found.range.oldest && !budget.isSpent())
    if (newest < found.range.oldest) return { next: null, reachedMs: null }
    return { next: cursorAt(newest + 1), reachedMs: spanTimes(Math.floor(newest / SPAN_SIZE)).newestMs }
  }

  function byRows ({ found, stepMs, add, budget }: Reading<CountWithEnds>) {
    let chunk = FIRST_CHUNK
    return (newest: number) => {
      const beganAt = budget.elapsedMs()
      const lead = search.leadingFilter(found.filters, { newest, oldest: found.range.oldest }, chunk)
      search.groups(lead, { newest, oldest: lead.oldest }, found.conditions, stepMs).forEach(add)
      chunk = resizeChunk(chunk, budget.elapsedMs() - beganAt)
      return lead.oldest - 1
    }
  }

  function bySpans ({ found, stepMs, add }: Reading<Count>) {
    const kept = search.keptIds()
    const { sql, values } = toConditions(found.query, found.filters)
    const ofSpan: Rows<{ type: string, cause: string, count: number }> = search.prepare(
      `SELECT type, cause, count FROM span_counts WHERE span = @span${sql}`
    )
    return (newest: number) => {
      const span = Math.floor(newest / SPAN_SIZE)
      const oldest = span * SPAN_SIZE
      const isWhole = kept !== null && oldest >= kept.oldest && newest === Math.min(oldest + SPAN_SIZE - 1, kept.newest)
      const { oldestMs, newestMs } = spanTimes(span)
      const step = Math.floor(newestMs / stepMs)
      if (isWhole && isWithin(oldestMs, newestMs, found.times) && Math.floor(oldestMs / stepMs) === step) {
        for (const { type, cause, count } of ofSpan.all({ ...values, span }))
          add({ step, type, cause: cause || null, count })
      } else {
        search.groups({ filter: null }, { newest, oldest: Math.max(oldest, found.range.oldest) }, found.conditions,
          stepMs).forEach(add)
      }
      return oldest - 1
    }
  }

  function spanTimes (span: number) {
    return timesOfSpan.get(span) ?? { oldestMs: -Infinity, newestMs: Infinity }
  }
}

function isWithin (oldestMs: number, newestMs: number, { since, until }: Times) {
  return (since === null || oldestMs >= since) && (until === null || newestMs < until)
}

function createTally () {
  const counts: Map<string, Count> = new Map()
  return { add ({ step, type, cause, count }: Count) {
    const key = `${step} ${type} ${cause ?? ''}`
    const known = counts.get(key)
    if (known) known.count += count
    else counts.set(key, { step, type, cause, count })
  }, list: () => [...counts.values()] }
}
