/**
 * Values over time. Steps may differ in length, as older values come in longer ones.
 * @typedef {{ fromS: number, toS: number, stepS: number }} Range
 * @typedef {Record<string, (number | null)[]>} Columns  null where nothing was measured
 * @typedef {{ time: number[], pointS: number, mean: Columns, low: Columns, high: Columns, newest: Record<string, number | null> }} Vitals
 *   `time`: seconds since the epoch, ascending; `pointS`: how long a point stands for; `newest`: null if no value is of now
 * @typedef {{ time: number[], stepMs: number, values: Columns }} Steps
 */

/** How many seconds a point may stand for: times that people count in. */
const POINTS_S = Object.freeze([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400])
/** How old the newest value may be to count as current, in seconds and in steps. */
const FRESH_S = 5
const FRESH_STEPS = 3
const MISSED_STEPS = 3

/** @param {readonly string[]} columns */
export function createSeries (columns) {
  /** @type {{ second: number, stepS: number, row: (number | null)[] }[]} */
  let points = []

  return {
    /** The newest second that is known of; null without any. */
    get newest () { return points.at(-1)?.second ?? null },

    /** Adds only values that are newer than the newest. @param {Steps} steps */
    append ({ time, stepMs, values }) {
      for (const [index, second] of time.entries()) {
        if (second > (points.at(-1)?.second ?? -Infinity)) {
          points.push({ second, stepS: stepMs / 1000, row: columns.map((name) => values[name]?.[index] ?? null) })
        }
      }
    },

    /** @param {number} second earlier points are removed */
    trim (second) {
      const kept = points.findIndex((point) => point.second >= second)
      points = kept < 0 ? [] : points.slice(kept)
    },

    /**
     * Values that share a point of the chart become their mean, with the lowest and the highest beside it, as noise would fill
     * the chart and a mean alone would hide the peaks. Nulls are put around each gap, so that no line crosses it and the flag
     * shows no value there.
     * @param {Range} range @param {number} room for how many points @returns {Vitals}
     */
    within (range, room) {
      const { fromS, toS, stepS } = range
      const pointS = pointLength(range, room)
      /** @type {Group[]} */
      const groups = []
      let knownUntil = fromS
      for (const point of points) {
        if (point.second >= toS) break
        const isAfterGap = point.second - knownUntil >= gapS(point.stepS, pointS)
        if (isAfterGap) groups.push(...emptyGroups(knownUntil, point.second - point.stepS / 2))
        const last = groups.at(-1)
        if (!isAfterGap && last && Math.floor(last.second / pointS) === Math.floor(point.second / pointS)) last.rows.push(point.row)
        else groups.push({ second: point.second, rows: [point.row] })
        knownUntil = point.second + point.stepS
      }
      if (toS - knownUntil > freshS(stepS)) groups.push(...emptyGroups(knownUntil, toS))
      return { time: groups.map(({ second }) => second), pointS, ...summaryOf(groups), newest: newestValues(range) }
    }
  }

  /** @param {readonly Group[]} groups */
  function summaryOf (groups) {
    const known = columns.map((_name, index) => groups.map(({ rows }) => rows.map((row) => row[index]).filter((value) => value !== null)))
    const columnsOf = (/** @type {(values: number[]) => number} */ join) => Object.fromEntries(columns.map((name, index) => [name, known[index].map((values) => values.length === 0 ? null : join(values))]))
    return {
      mean: columnsOf((values) => values.reduce((sum, value) => sum + value, 0) / values.length),
      low: columnsOf((values) => Math.min(...values)),
      high: columnsOf((values) => Math.max(...values))
    }
  }

  /** @param {Range} range @returns {Record<string, number | null>} */
  function newestValues ({ toS, stepS }) {
    return Object.fromEntries(columns.map((name, index) => {
      const last = points.findLast(({ second, row }) => second < toS && row[index] !== null)
      return [name, last && last.second >= toS - freshS(stepS) ? last.row[index] : null]
    }))
  }
}

/** @typedef {{ second: number, rows: (number | null)[][] }} Group  `rows`: none where nothing was measured */

/** @param {Range} range @param {number} room @returns {number} seconds */
function pointLength ({ fromS, toS, stepS }, room) {
  return POINTS_S.find((pointS) => pointS % stepS === 0 && (toS - fromS) / pointS <= room) ?? POINTS_S[POINTS_S.length - 1]
}

/** @param {number} from @param {number} to @returns {Group[]} */
function emptyGroups (from, to) {
  return to > from ? [{ second: from, rows: [] }, { second: to, rows: [] }] : [{ second: from, rows: [] }]
}

/** A second that was missed is no gap in a point of many. @param {number} stepS @param {number} pointS */
function gapS (stepS, pointS) {
  return Math.max(stepS / 2, Math.min(pointS, MISSED_STEPS * stepS))
}

/** @param {number} stepS */
function freshS (stepS) {
  return Math.max(FRESH_S, FRESH_STEPS * stepS)
}
