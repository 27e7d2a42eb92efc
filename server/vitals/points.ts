/**
 * Steps joined into the points of a chart: of each point the mean, the lowest and the highest value, as rounded as a
 * chart is read. The steps of the last point stay as they are, as more of them are to come.
 */
type Columns = Record<string, (number | null)[]>
type Spread = { mean: Columns, low: Columns, high: Columns }
/** `time`: the first step of each that was measured */
export type Points = { pointMs: number, time: number[], cluster: Spread, slots: ({ slot: number } & Spread)[] }
type Steps = { time: number[], cluster: Columns, slots: { slot: number, columns: Columns }[] }

const DIGITS = 4

export function joinSteps ({ time, cluster, slots }: Steps, pointMs: number): Steps & { points: Points } {
  const pointOf = (second: number) => Math.floor(second * 1000 / pointMs)
  const starts = Array.from(time.keys()).filter((index) =>
    index === 0 || pointOf(time[index]) > pointOf(time[index - 1])
  )
  const open = starts.at(-1) ?? 0
  const whole = starts.slice(0, -1)
  const spread = (columns: Columns) => spreadOf(columns, whole, open)
  const openColumns = (columns: Columns) => mapValues(columns, (values) => values.slice(open))
  return {
    points: { pointMs, time: whole.map((index) => time[index]), cluster: spread(cluster),
      slots: slots.map(({ slot, columns }) => ({ slot, ...spread(columns) })) },
    time: time.slice(open),
    cluster: openColumns(cluster),
    slots: slots.map(({ slot, columns }) => ({ slot, columns: openColumns(columns) }))
  }
}

/** `starts`: of the points; `end`: of the last */
function spreadOf (columns: Columns, starts: readonly number[], end: number): Spread {
  const points = mapValues(columns,
    (values) =>
      starts.map((start, index) => values.slice(start, starts[index + 1] ?? end).filter((value) => value !== null)))
  const joined = (join: (values: number[]) => number) =>
    mapValues(points, (lists) =>
      lists.map((known) => known.length === 0 ? null : Number(join(known).toPrecision(DIGITS))))
  return { mean: joined((values) => values.reduce((sum, value) => sum + value, 0) / values.length),
    low: joined((values) => Math.min(...values)), high: joined((values) => Math.max(...values)) }
}

function mapValues<T, U> (values: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]))
}
