import { countOverTime, type Histogram, type History, type Query } from '../events/api-histogram.ts'
import { formatExactDuration } from '../../public/format.ts'
import { count } from '../words/health.ts'

/** The history as a graph over time, in which a range can be selected. */
export type Timeline = ReturnType<typeof toTimeline>

/** Width of a step and of its bar, and the full height, in units of the box. */
const STEP = 10
const WIDTH = 8
const HEIGHT = 60
/** A bar of few events stays visible. */
const MIN_HEIGHT = 3
/** How many turns of the event loop the count may take while a viewer waits for the page. */
const MAX_TURNS = 60

export async function countTimeline (history: History, query: Query, now: number) {
  return toTimeline(await countOverTime(history, query, { now, maxTurns: MAX_TURNS }))
}

export function toTimeline ({ from, to, stepMs, countedSince, items }: Histogram) {
  const most = Math.max(...items.map((item) => item.count))
  const sumOf = (name: 'count' | 'problems') => items.reduce((total, item) => total + item[name], 0)
  const [total, problems] = [sumOf('count'), sumOf('problems')]
  return { from, to, stepMs, countedSince, box: { width: items.length * STEP, height: HEIGHT },
    bars: items.flatMap((item, index) => item.count === 0 ? [] : [toBar(item, index, most)]),
    counts: items.map((item) => `${item.count},${item.problems}`).join(' '), summary: summaryOf(total, problems),
    step: formatExactDuration(stepMs) }
}

function summaryOf (total: number, problems: number) {
  if (problems === 0) return count(total, 'event')
  return problems === total ? count(problems, 'problem') : `${count(total, 'event')}, ${count(problems, 'problem')}`
}

function toBar ({ count, problems }: { count: number, problems: number }, index: number, most: number) {
  const all = heightOf(count, most)
  const bad = Math.min(all, heightOf(problems, most))
  return { x: index * STEP + (STEP - WIDTH) / 2, width: WIDTH, bad: { y: HEIGHT - bad, height: bad },
    rest: { y: HEIGHT - all, height: all - bad } }
}

function heightOf (count: number, most: number) {
  return count === 0 ? 0 : Math.max(MIN_HEIGHT, Math.round(HEIGHT * count / most))
}
