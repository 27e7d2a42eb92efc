/**
 * Values over time. Steps may differ in length, as older values come in longer ones.
 * @typedef {{ fromS: number, toS: number, stepS: number }} Range
 * @typedef {Record<string, (number | null)[]>} Columns  null where nothing was measured
 * @typedef {{ time: number[], pointS: number, mean: Columns, low: Columns, high: Columns, newest: Record<string, number | null> }} Vitals
 *   `time`: seconds since the epoch, ascending; `pointS`: how long a point stands for; `newest`: null if no value is of now
 * @typedef {{ time: number[], stepMs: number, values: Columns, low?: Columns, high?: Columns }} Steps  `low`, `high`: if a step is more than one value
 * @typedef {(number | null)[]} Row  by column
 * @typedef {{ second: number, stepS: number, mean: Row, low: Row, high: Row }} Point
 */

/** How many seconds a point may stand for: times that people count in. */
const POINTS_S = Object.freeze([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400])
/** How old the newest value may be to count as current, in seconds and in steps. */
const FRESH_S = 5
const FRESH_STEPS = 3
const MISSED_STEPS = 3

/** @param {readonly string[]} columns */
export function createSeries (columns) {
  /** @type {Point[]} */
  let points = []

  return {
    /** The second up to which all is known; null without any. */
    get knownUntil () {
      const last = points.at(-1)
      return last ? last.second + last.stepS : null
    },

    /** Adds only values that are newer than the newest. @param {Steps} steps */
    append ({ time, stepMs, values, low = values, high = values }) {
      const stepS = stepMs / 1000
      const rowAt = (/** @type {Columns} */ of, /** @type {number} */ index) => columns.map((name) => of[name]?.[index] ?? null)
      for (const [index, second] of time.entries()) {
        if (second <= (points.at(-1)?.second ?? -Infinity)) continue
        // A point whose first seconds nobody measured begins late, and ends where the next one begins.
        points.push({ second, stepS: stepS - second % stepS, mean: rowAt(values, index), low: rowAt(low, index), high: rowAt(high, index) })
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
        if (!isAfterGap && last && Math.floor(last.second / pointS) === Math.floor(point.second / pointS)) last.points.push(point)
        else groups.push({ second: point.second, points: [point] })
        knownUntil = point.second + point.stepS
      }
      if (toS - knownUntil > freshS(stepS)) groups.push(...emptyGroups(knownUntil, toS))
      return { time: groups.map(({ second }) => second), pointS, ...summaryOf(groups), newest: newestValues(range) }
    }
  }

  /** @param {readonly Group[]} groups */
  function summaryOf (groups) {
    const columnsOf = (/** @type {(points: Point[], index: number) => number} */ join) => Object.fromEntries(columns.map((name, index) => [name, groups.map((group) => {
      const known = group.points.filter(({ mean }) => mean[index] !== null)
      return known.length === 0 ? null : join(known, index)
    })]))
    return {
      mean: columnsOf(meanOf),
      low: columnsOf((known, index) => Math.min(...known.map(({ low }) => Number(low[index])))),
      high: columnsOf((known, index) => Math.max(...known.map(({ high }) => Number(high[index]))))
    }
  }

  /** @param {Range} range @returns {Record<string, number | null>} */
  function newestValues ({ toS, stepS }) {
    return Object.fromEntries(columns.map((name, index) => {
      const last = points.findLast(({ second, mean }) => second < toS && mean[index] !== null)
      return [name, last && last.second + last.stepS > toS - freshS(stepS) ? last.mean[index] : null]
    }))
  }
}

/** @typedef {{ second: number, points: Point[] }} Group  `points`: none where nothing was measured */

/** Longer ones weigh more. @param {readonly Point[]} points @param {number} index of a column */
function meanOf (points, index) {
  const sum = points.reduce((total, { mean, stepS }) => total + Number(mean[index]) * stepS, 0)
  return sum / points.reduce((total, { stepS }) => total + stepS, 0)
}

/** @param {Range} range @param {number} room @returns {number} how many seconds a point stands for */
export function pointLength ({ fromS, toS, stepS }, room) {
  return POINTS_S.find((pointS) => pointS % stepS === 0 && (toS - fromS) / pointS <= room) ?? POINTS_S[POINTS_S.length - 1]
}

/** @param {number} from @param {number} to @returns {Group[]} */
function emptyGroups (from, to) {
  return to > from ? [{ second: from, points: [] }, { second: to, points: [] }] : [{ second: from, points: [] }]
}

/** A second that was missed is no gap in a point of many. @param {number} stepS @param {number} pointS */
function gapS (stepS, pointS) {
  return Math.max(stepS / 2, Math.min(pointS, MISSED_STEPS * stepS))
}

/** @param {number} stepS */
function freshS (stepS) {
  return Math.max(FRESH_S, FRESH_STEPS * stepS)
}
