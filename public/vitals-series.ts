/** Values over time. Steps may differ in length, as older values come in longer ones. */
export type Range = { fromS: number, toS: number, stepS: number }
/** null where nothing was measured */
type Columns = Record<string, (number | null)[]>
/**
 * `time`: seconds since the epoch, ascending; `pointS`: how long a point stands for; `newest`: null if no value is of
 * now
 */
export type Vitals = { time: number[], pointS: number, mean: Columns, low: Columns, high: Columns,
  newest: Record<string, number | null> }
/** `low`, `high`: if a step is more than one value */
export type Steps = { time: number[], stepMs: number, values: Columns, low?: Columns, high?: Columns }
/** by column */
type Row = (number | null)[]
type Point = { second: number, stepS: number, mean: Row, low: Row, high: Row }

/** How many seconds a point may stand for: times that people count in. */
const POINTS_S = Object.freeze([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
  86_400])
/** How old the newest value may be to count as current, in seconds and in steps. */
const FRESH_S = 5
const FRESH_STEPS = 3
const MISSED_STEPS = 3

export function createSeries (columns: readonly string[]) {
  let points: Point[] = []

  return {
    /** The second up to which all is known; null without any. */
    get knownUntil () {
      const last = points.at(-1)
      return last ? last.second + last.stepS : null
    },

    /** Adds only values that are newer than the newest. */
    append ({ time, stepMs, values, low = values, high = values }: Steps) {
      const stepS = stepMs / 1000
      const rowAt = (of: Columns, index: number) => columns.map((name) => of[name]?.[index] ?? null)
      for (const [index, second] of time.entries()) {
        if (second <= (points.at(-1)?.second ?? -Infinity)) continue
        // A point whose first seconds nobody measured begins late, and ends where the next one begins.
        points.push({ second, stepS: stepS - second % stepS, mean: rowAt(values, index), low: rowAt(low, index),
          high: rowAt(high, index) })
      }
    },

    /** `second`: earlier points are removed */
    trim (second: number) {
      const kept = points.findIndex((point) => point.second >= second)
      points = kept < 0 ? [] : points.slice(kept)
    },

    /**
     * Values that share a point of the chart become their mean, with the lowest and the highest beside it, as noise
     * would fill the chart and a mean alone would hide the peaks. Nulls are put around each gap, so that no line
     * crosses it and the flag shows no value there. `room`: for how many points.
     */
    within (range: Range, room: number): Vitals {
      const { fromS, toS, stepS } = range
      const pointS = pointLength(range, room)
      const groups: Group[] = []
      let knownUntil = fromS
      for (const point of points) {
        if (point.second >= toS) break
        const isAfterGap = point.second - knownUntil >= gapS(point.stepS, pointS)
        if (isAfterGap) groups.push(...emptyGroups(knownUntil, point.second - point.stepS / 2))
        const last = groups.at(-1)
        if (!isAfterGap && last && Math.floor(last.second / pointS) === Math.floor(point.second / pointS))
          last.points.push(point)
        else groups.push({ second: point.second, points: [point] })
        knownUntil = point.second + point.stepS
      }
      if (toS - knownUntil > freshS(stepS)) groups.push(...emptyGroups(knownUntil, toS))
      return { time: groups.map(({ second }) => second), pointS, ...summaryOf(groups), newest: newestValues(range) }
    }
  }

  function summaryOf (groups: readonly Group[]) {
    const columnsOf = (join: (points: Point[], index: number) => number) =>
      Object.fromEntries(columns.map((name, index) => [name, groups.map((group) => {
        const known = group.points.filter(({ mean }) => mean[index] !== null)
        return known.length === 0 ? null : join(known, index)
      })]))
    return { mean: columnsOf(meanOf),
      low: columnsOf((known, index) => Math.min(...known.map(({ low }) => Number(low[index])))),
      high: columnsOf((known, index) => Math.max(...known.map(({ high }) => Number(high[index])))) }
  }

  /** All of the same step, as the page shows them beside each other. */
  function newestValues ({ toS, stepS }: Range): Record<string, number | null> {
    const last = points.at(-1)
    const isFresh = last !== undefined && last.second + last.stepS > toS - freshS(stepS)
    return Object.fromEntries(columns.map((name, index) => [name, isFresh ? last.mean[index] : null]))
  }
}

/** `points`: none where nothing was measured */
type Group = { second: number, points: Point[] }

/** Longer ones weigh more. `index`: of a column. */
function meanOf (points: readonly Point[], index: number) {
  const sum = points.reduce((total, { mean, stepS }) => total + Number(mean[index]) * stepS, 0)
  return sum / points.reduce((total, { stepS }) => total + stepS, 0)
}

export function pointLength ({ fromS, toS, stepS }: Range, room: number): number {
  return POINTS_S.find((pointS) => pointS % stepS === 0 && (toS - fromS) / pointS <= room) ??
    POINTS_S[POINTS_S.length - 1]
}

function emptyGroups (from: number, to: number): Group[] {
  return to > from ? [{ second: from, points: [] }, { second: to, points: [] }] : [{ second: from, points: [] }]
}

/** A second that was missed is no gap in a point of many. */
function gapS (stepS: number, pointS: number) {
  return Math.max(stepS / 2, Math.min(pointS, MISSED_STEPS * stepS))
}

function freshS (stepS: number) {
  return Math.max(FRESH_S, FRESH_STEPS * stepS)
}
