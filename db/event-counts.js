import { startBudget } from './budget.js'
import { cursorAt, FIRST_CHUNK, resizeChunk, toConditions } from './event-search.js'
import { SPAN_SIZE } from './events.js'

/**
 * @typedef {import('./event-search.js').EventQuery} EventQuery
 * @typedef {import('./event-search.js').Search} Search
 * @typedef {{ step: number, type: string, cause: string | null, count: number }} Count  `step`: number of the step since the epoch
 * @typedef {Count & { firstMs: number, lastMs: number, lastId: number }} CountWithEnds  `lastId`: of the newest event
 * @typedef {ReturnType<typeof startBudget>} Budget
 * @typedef {{ oldestMs: number, newestMs: number }} SpanTimes
 */
/** @template {Count} Read @typedef {{ found: Search, stepMs: number, add: (count: Read) => void, budget: Budget }} Reading */

/** The spans do not count by these filters. @type {readonly ('q' | 'slot' | 'worker' | 'release' | 'rollout')[]} */
const UNCOUNTED = ['q', 'slot', 'worker', 'release', 'rollout']

/**
 * Counts the events of each step of time, within the time that one call may hold the loop.
 *
 * If all events of a span are in one step, the counts of the span are enough; otherwise its rows are counted. So a million
 * events take a few rows per span and the rows of the spans in which a step ends.
 * @param {import('./open.js').Db} db
 * @param {import('./event-search.js').EventSearch} search
 * @param {{ clock: () => number }} parts `clock`: monotonic ms
 */
export function createEventCounts (db, search, { clock }) {
  /** @type {import('./sqlite.js').Rows<SpanTimes>} */
  const timesOfSpan = db.prepare('SELECT oldest_ms AS oldestMs, newest_ms AS newestMs FROM spans WHERE span = ?')
  /** @type {import('./sqlite.js').Rows<SpanTimes>} */
  const keptTimes = db.prepare(`
    SELECT min(oldest_ms) AS oldestMs, max(newest_ms) AS newestMs FROM spans HAVING count(*) > 0`)

  return { count: countEvents, countWithEnds, times: readTimes }

  /** The first and the last time of what is kept, give or take a span. @returns {SpanTimes | null} null: nothing is kept */
  function readTimes () {
    return keptTimes.get() ?? null
  }

  /**
   * @param {EventQuery & { stepMs: number }} query  without a limit
   * @returns {{ counts: Count[], next: string | null, reachedMs: number | null }} `next`: the time was spent before the end;
   *   `reachedMs`: no event that is left to count is later
   */
  function countEvents (query) {
    const tally = createTally()
    const rest = readCounts(query, UNCOUNTED.some((name) => query[name] !== undefined) ? byRows : bySpans, tally.add)
    return { counts: tally.list(), ...rest }
  }

  /**
   * As `countEvents`, with the first and the last time of each count. A step that is read in parts has a count for each part.
   * @param {EventQuery & { stepMs: number }} query
   * @returns {{ counts: CountWithEnds[], next: string | null, reachedMs: number | null }}
   */
  function countWithEnds (query) {
    /** @type {CountWithEnds[]} */
    const counts = []
    const rest = readCounts(query, byRows, (count) => counts.push(count))
    return { counts, ...rest }
  }

  /**
   * @template {Count} Read
   * @param {EventQuery & { stepMs: number }} query
   * @param {(reading: Reading<Read>) => (newest: number) => number} reader  reads a piece that begins with this id, and returns where the next begins
   * @param {(count: Read) => void} add
   */
  function readCounts ({ stepMs, ...query }, reader, add) {
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

  /** @param {Reading<CountWithEnds>} reading */
  function byRows ({ found, stepMs, add, budget }) {
    let chunk = FIRST_CHUNK
    return (/** @type {number} */ newest) => {
      const beganAt = budget.elapsedMs()
      const lead = search.leadingFilter(found.filters, { newest, oldest: found.range.oldest }, chunk)
      search.groups(lead, { newest, oldest: lead.oldest }, found.conditions, stepMs).forEach(add)
      chunk = resizeChunk(chunk, budget.elapsedMs() - beganAt)
      return lead.oldest - 1
    }
  }

  /** @param {Reading<Count>} reading */
  function bySpans ({ found, stepMs, add }) {
    const kept = search.keptIds()
    const { sql, values } = toConditions(found.query, found.filters)
    /** @type {import('./sqlite.js').Rows<{ type: string, cause: string, count: number }>} */
    const ofSpan = search.prepare(`SELECT type, cause, count FROM span_counts WHERE span = @span${sql}`)
    return (/** @type {number} */ newest) => {
      const span = Math.floor(newest / SPAN_SIZE)
      const oldest = span * SPAN_SIZE
      const isWhole = kept !== null && oldest >= kept.oldest && newest === Math.min(oldest + SPAN_SIZE - 1, kept.newest)
      const { oldestMs, newestMs } = spanTimes(span)
      const step = Math.floor(newestMs / stepMs)
      if (isWhole && isWithin(oldestMs, newestMs, found.times) && Math.floor(oldestMs / stepMs) === step) {
        for (const { type, cause, count } of ofSpan.all({ ...values, span })) add({ step, type, cause: cause || null, count })
      } else {
        search.groups({ filter: null }, { newest, oldest: Math.max(oldest, found.range.oldest) }, found.conditions, stepMs).forEach(add)
      }
      return oldest - 1
    }
  }

  /** @param {number} span */
  function spanTimes (span) {
    return timesOfSpan.get(span) ?? { oldestMs: -Infinity, newestMs: Infinity }
  }
}

/** @param {number} oldestMs @param {number} newestMs @param {import('./event-search.js').Times} times */
function isWithin (oldestMs, newestMs, { since, until }) {
  return (since === null || oldestMs >= since) && (until === null || newestMs < until)
}

function createTally () {
  /** @type {Map<string, Count>} */
  const counts = new Map()
  return {
    /** @param {Count} more */
    add ({ step, type, cause, count }) {
      const key = `${step} ${type} ${cause ?? ''}`
      const known = counts.get(key)
      if (known) known.count += count
      else counts.set(key, { step, type, cause, count })
    },

    list: () => [...counts.values()]
  }
}
