/**
 * Values over time. Steps may differ in length, as older values come in longer ones.
 * @typedef {{ fromS: number, toS: number, stepS: number }} Range
 * @typedef {{ time: number[] } & Record<string, (number | null)[]>} Vitals
 *   `time`: seconds since the epoch, ascending; columns are null where nothing was measured
 * @typedef {{ time: number[], stepMs: number, values: Record<string, (number | null)[]> }} Steps
 */

/** A chart cannot show more points. */
const MAX_POINTS = 3000
/** How old the newest value may be to count as current, in seconds and in steps. */
const FRESH_S = 5
const FRESH_STEPS = 3

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
     * Puts nulls around each gap, so that no line crosses it and the flag shows no value there. Points that are too close
     * become one with the highest value, as peaks matter most.
     * @param {Range} range @returns {Vitals}
     */
    within ({ fromS, toS, stepS }) {
      const groupS = Math.max(1, Math.ceil((toS - fromS) / MAX_POINTS / stepS)) * stepS
      /** @type {{ second: number, row: (number | null)[] }[]} */
      const rows = []
      let knownUntil = fromS
      for (const point of points) {
        if (point.second >= toS) break
        const isAfterGap = point.second - knownUntil >= point.stepS / 2
        if (isAfterGap) rows.push(...emptyRows(knownUntil, point.second - point.stepS / 2))
        const last = rows.at(-1)
        const isOfGroup = !isAfterGap && last && Math.floor(last.second / groupS) === Math.floor(point.second / groupS)
        if (isOfGroup) last.row = last.row.map((value, index) => highestOf(value, point.row[index]))
        else rows.push({ second: point.second, row: point.row })
        knownUntil = point.second + point.stepS
      }
      if (toS - knownUntil > freshS(stepS)) rows.push(...emptyRows(knownUntil, toS))
      const values = Object.fromEntries(columns.map((name, index) => [name, rows.map(({ row }) => row[index])]))
      return Object.assign(values, { time: rows.map(({ second }) => second) })
    }
  }

  /** @param {number} from @param {number} to */
  function emptyRows (from, to) {
    const row = columns.map(() => null)
    return to > from ? [{ second: from, row }, { second: to, row }] : [{ second: from, row }]
  }
}

/** @param {Vitals} vitals @param {string} column @param {Range} range @returns {number | null} null: nobody knows */
export function newestOf (vitals, column, { toS, stepS }) {
  const index = vitals[column].findLastIndex((value) => value !== null)
  return index >= 0 && vitals.time[index] >= toS - freshS(stepS) ? vitals[column][index] : null
}

/** @param {number} stepS */
function freshS (stepS) {
  return Math.max(FRESH_S, FRESH_STEPS * stepS)
}

/** @param {number | null} a @param {number | null} b */
function highestOf (a, b) {
  return a === null || b === null ? a ?? b : Math.max(a, b)
}
