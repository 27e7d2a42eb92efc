/**
 * Steps joined into the points of a chart: of each point the mean, the lowest and the highest value, as rounded as a chart is
 * read. The steps of the last point stay as they are, as more of them are to come.
 * @typedef {Record<string, (number | null)[]>} Columns
 * @typedef {{ mean: Columns, low: Columns, high: Columns }} Spread
 * @typedef {{ pointMs: number, time: number[], cluster: Spread, slots: ({ slot: number } & Spread)[] }} Points  `time`: the first step of each that was measured
 * @typedef {{ time: number[], cluster: Columns, slots: { slot: number, columns: Columns }[] }} Steps
 */

const DIGITS = 4

/** @param {Steps} steps @param {number} pointMs @returns {Steps & { points: Points }} */
export function joinSteps ({ time, cluster, slots }, pointMs) {
  const pointOf = (/** @type {number} */ second) => Math.floor(second * 1000 / pointMs)
  const starts = Array.from(time.keys()).filter((index) => index === 0 || pointOf(time[index]) > pointOf(time[index - 1]))
  const open = starts.at(-1) ?? 0
  const whole = starts.slice(0, -1)
  const spread = (/** @type {Columns} */ columns) => spreadOf(columns, whole, open)
  const openColumns = (/** @type {Columns} */ columns) => mapValues(columns, (values) => values.slice(open))
  return {
    points: { pointMs, time: whole.map((index) => time[index]), cluster: spread(cluster), slots: slots.map(({ slot, columns }) => ({ slot, ...spread(columns) })) },
    time: time.slice(open),
    cluster: openColumns(cluster),
    slots: slots.map(({ slot, columns }) => ({ slot, columns: openColumns(columns) }))
  }
}

/** @param {Columns} columns @param {readonly number[]} starts of the points @param {number} end of the last @returns {Spread} */
function spreadOf (columns, starts, end) {
  const points = mapValues(columns, (values) => starts.map((start, index) => values.slice(start, starts[index + 1] ?? end).filter((value) => value !== null)))
  const joined = (/** @type {(values: number[]) => number} */ join) => mapValues(points, (lists) => lists.map((known) => known.length === 0 ? null : Number(join(known).toPrecision(DIGITS))))
  return {
    mean: joined((values) => values.reduce((sum, value) => sum + value, 0) / values.length),
    low: joined((values) => Math.min(...values)),
    high: joined((values) => Math.max(...values))
  }
}

/** @template T, U @param {Record<string, T>} values @param {(value: T) => U} change @returns {Record<string, U>} */
function mapValues (values, change) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]))
}
