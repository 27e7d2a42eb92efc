import { startBudget } from './budget.js'
import { cursorAt, FIRST_CHUNK, resizeChunk, toConditions } from './event-search.js'
import { SPAN_SIZE } from './events.js'

/**
 * @typedef {import('./event-search.js').EventQuery} EventQuery
 * @typedef {import('./event-search.js').Search} Search
 * @typedef {{ step: number, type: string, cause: string | null, count: number }} Count  `step`: how many of the step's length after the epoch
 * @typedef {Count & { firstMs: number, lastMs: number, lastId: number }} CountWithEnds  when the first and the last of them happened, and the newest
 * @typedef {ReturnType<typeof startBudget>} Budget
 */
/** @template {Count} Read @typedef {{ found: Search, stepMs: number, add: (count: Read) => void, budget: Budget }} Reading */

/** Filters by what the spans do not count. */
const UNCOUNTED = /** @type {const} */ (['q', 'slot', 'worker', 'release', 'rollout'])

/**
 * How many events there are in each step of time, within the time that one call may hold the loop.
 *
 * Where all events of a span are in one step, its counts say it; else its rows do. So a million events take a few rows per
 * span and the rows of those spans in which a step ends, unless a filter asks for what the spans do not count.
 * @param {import('./open.js').Db} db
 * @param {import('./event-search.js').EventSearch} search
 * @param {{ clock: () => number }} parts `clock`: monotonic ms
 */
export function createEventCounts (db, search, { clock }) {
  const timesOfSpan = db.prepare('SELECT oldest_ms AS oldestMs, newest_ms AS newestMs FROM spans WHERE span = ?')
  const keptIds = db.prepare('SELECT (SELECT max(id) FROM events) AS newest, (SELECT min(id) FROM events) AS oldest')
  const keptTimes = db.prepare('SELECT min(oldest_ms) AS oldestMs, max(newest_ms) AS newestMs FROM spans')

  return { count: countEvents, countWithEnds, times: readTimes }

  /** The first and the last time of what is kept, give or take a span. @returns {{ oldestMs: number, newestMs: number } | null} null: nothing is */
  function readTimes () {
    const { oldestMs, newestMs } = /** @type {{ oldestMs: number | null, newestMs: number | null }} */ (keptTimes.get())
    return oldestMs === null || newestMs === null ? null : { oldestMs, newestMs }
  }

  /**
   * @param {EventQuery & { stepMs: number }} query  its `limit` says nothing here
   * @returns {{ counts: Count[], next: string | null, reachedMs: number | null }} `next`: its time was spent, and more is to be added;
   *   `reachedMs`: nothing that is left to count is later than that
   */
  function countEvents (query) {
    const tally = createTally()
    const rest = readCounts(query, UNCOUNTED.some((name) => query[name] !== undefined) ? byRows : bySpans, tally.add)
    return { counts: tally.list(), ...rest }
  }

  /**
   * The same with what the spans do not know.
   * @param {EventQuery & { stepMs: number }} query
   * @returns {{ counts: CountWithEnds[], next: string | null, reachedMs: number | null }} as many of one step as it was read in parts
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
   * @param {(reading: Reading<Read>) => (newest: number) => number} reader  reads a piece that begins with that id, and says below which one it goes on
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
    const kept = /** @type {import('./event-search.js').IdRange} */ (keptIds.get())
    const { sql, values } = toConditions(found.query, found.filters)
    const ofSpan = search.prepare(`SELECT type, cause, count FROM span_counts WHERE span = @span${sql}`)
    return (/** @type {number} */ newest) => {
      const span = Math.floor(newest / SPAN_SIZE)
      const oldest = span * SPAN_SIZE
      const isWhole = oldest >= kept.oldest && newest === Math.min(oldest + SPAN_SIZE - 1, kept.newest)
      const { oldestMs, newestMs } = spanTimes(span)
      const step = Math.floor(newestMs / stepMs)
      if (isWhole && isWithin(oldestMs, newestMs, found.times) && Math.floor(oldestMs / stepMs) === step) {
        for (const { type, cause, count } of /** @type {any[]} */ (ofSpan.all({ ...values, span }))) add({ step, type, cause: cause || null, count })
      } else {
        search.groups({ filter: null }, { newest, oldest: Math.max(oldest, found.range.oldest) }, found.conditions, stepMs).forEach(add)
      }
      return oldest - 1
    }
  }

  /** @param {number} span */
  function spanTimes (span) {
    return /** @type {{ oldestMs: number, newestMs: number }} */ (timesOfSpan.get(span) ?? { oldestMs: -Infinity, newestMs: Infinity })
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
