import { formatBytes, formatLatency, formatPercent, formatRate } from '../../public/format.ts'
import { median, shortNumber, type Series } from '../vitals/api.ts'

/** What a model can read of vitals over time: where they changed, and a few rows, in place of a thousand numbers. */
/** `small`: changes below it mean nothing */
type Figure = { name: string, label: string, format: (value: number | null | undefined) => string, small: number }
export type Levels = Record<string, number | null>
type Change = { figure: string, at: string, before: number, after: number, times: number }

/** what clients feel comes first */
const FIGURES: readonly Figure[] = Object.freeze([{ name: 'latencyP99Ms', label: 'p99 latency', format: formatLatency,
  small: 5 }, { name: 'latencyP50Ms', label: 'median latency', format: formatLatency, small: 2 }, {
  name: 'requests5xxPerSecond',
  label: 'answers with 5xx a second',
  format: formatRate,
  small: 0.1
}, { name: 'requestsPerSecond', label: 'requests a second', format: formatRate, small: 1 }, { name: 'loopDelayMaxMs',
  label: 'longest block of an event loop', format: formatLatency, small: 20 }, { name: 'eventLoopUtilization',
  label: 'event loop busy',
  format: (value) => value === null || value === undefined ? '–' : `${Math.round(100 * value)} %`, small: 0.05 }, {
  name: 'cpuPercent',
  label: 'CPU of all workers',
  format: formatPercent,
  small: 5
}, { name: 'inFlight', label: 'requests in flight', format: String, small: 5 }, { name: 'openConnections',
  label: 'open connections', format: String, small: 20 }, { name: 'rssBytes', label: 'memory of all workers',
  format: formatBytes, small: 20 * 1024 * 1024 }])

export const COLUMNS = FIGURES.map(({ name }) => name).join(',')
const MAX_POINTS = 240
const MAX_ROWS = 12
/** A change is told where a figure has grown or fallen by this factor. */
const MIN_TIMES = 1.5
/** A level has at least so many points. */
const MIN_SIDE = 3

/** @returns the greatest of each figure, in the order of FIGURES */
export function changesOf ({ time, cluster }: Pick<Series, 'time' | 'cluster'>): Change[] {
  return FIGURES.flatMap(({ name, small }) => {
    const points = joined(time, cluster[name] ?? [])
    const change = levelChange(points.map(({ value }) => value), small)
    return change
      ? [{ figure: name, at: new Date(points[change.index].at * 1000).toISOString(), before: change.before,
        after: change.after, times: change.times }]
      : []
  })
}

/** @returns such as `p99 latency: 12 ms → 410 ms (34 times) from 2026-01-31T12:00:10.000Z on` */
export function changeText ({ figure, at, before, after, times }: Change): string {
  const { label, format } = FIGURES.find(({ name }) => name === figure) as Figure
  return `${label}: ${format(before)} → ${format(after)} (${
    times >= 10 ? Math.round(times) : Number(times.toPrecision(2))
  } times) from ${at} on`
}

/** @returns such as `p99 latency 12 ms → 20 ms, median latency 5 ms → 5 ms` */
export function levelsText (before: Levels, after: Levels): string {
  return FIGURES.map(({ name, label, format }) => `${label} ${format(before[name])} → ${format(after[name])}`).join(
    ', '
  )
}

/** @returns a few rows over the whole time: the medians of each part */
export function tableOf (
  { time, cluster }: Pick<Series, 'time' | 'cluster'>
): { columns: string[], rows: (string | number | null)[][] } {
  const count = Math.min(MAX_ROWS, time.length)
  const rows = Array.from({ length: count }, (_, index) => {
    const [from, to] = [Math.floor(index * time.length / count), Math.floor((index + 1) * time.length / count)]
    return [new Date(time[from] * 1000).toISOString(), ...Object.values(mediansOf(cluster, from, to))]
  })
  return { columns: ['at', ...FIGURES.map(({ name }) => name)], rows }
}

function mediansOf (cluster: Series['cluster'], from: number, to: number): Levels {
  return Object.fromEntries(
    FIGURES.map(({ name }) => [name, shortNumber(median((cluster[name] ?? []).slice(from, to)))])
  )
}

/** @returns known ones, neighbours joined where they are many */
function joined (time: number[], values: (number | null)[]): { at: number, value: number }[] {
  const known = time.flatMap((at, index) =>
    values[index] === null || values[index] === undefined ? [] : [{ at, value: Number(values[index]) }]
  )
  const size = Math.ceil(known.length / MAX_POINTS)
  return Array.from({ length: Math.ceil(known.length / (size || 1)) }, (_, index) => {
    const part = known.slice(index * size, (index + 1) * size)
    return { at: part[0].at, value: Number(median(part.map(({ value }) => value))) }
  })
}

/** Finds where a figure moved to another level: the split that explains most of its spread, on a logarithmic scale. */
export function levelChange (values: number[], small: number) {
  const logs = values.map((value) => Math.log(Math.max(value, small)))
  const total = logs.reduce((sum, each) => sum + each, 0)
  let best = { index: 0, spread: 0 }
  let left = 0
  for (let index = 1; index < logs.length; index++) {
    left += logs[index - 1]
    if (index < MIN_SIDE || logs.length - index < MIN_SIDE) continue
    const spread = index * (logs.length - index) * (left / index - (total - left) / (logs.length - index)) ** 2
    if (spread > best.spread) best = { index, spread }
  }
  const [before, after] = [values.slice(0, best.index), values.slice(best.index)].map((side) => Number(median(side)))
  if (best.index === 0 || Math.abs(after - before) < small) return null
  const times = Math.max(after, small) / Math.max(before, small)
  return times < MIN_TIMES && times > 1 / MIN_TIMES ? null : { index: best.index, before, after, times }
}
