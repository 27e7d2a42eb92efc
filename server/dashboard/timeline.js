import { countOverTime } from '../api/histogram.js'
import { formatExactDuration } from '../../public/format.js'
import { count } from '../health.js'

/**
 * The history as a graph over time, in which a range can be selected.
 * @typedef {ReturnType<typeof toTimeline>} Timeline
 */

/** Width of a step and of its bar, and the full height, in units of the box. */
const STEP = 10
const WIDTH = 8
const HEIGHT = 60
/** A bar of few events stays visible. */
const MIN_HEIGHT = 3
/** How many turns of the event loop the count may take while a viewer waits for the page. */
const MAX_TURNS = 60

/** @param {import('../api/histogram.js').History} history @param {import('../api/histogram.js').Query} query @param {number} now */
export async function countTimeline (history, query, now) {
  return toTimeline(await countOverTime(history, query, { now, maxTurns: MAX_TURNS }))
}

/** @param {import('../api/histogram.js').Histogram} histogram */
export function toTimeline ({ from, to, stepMs, countedSince, items }) {
  const most = Math.max(...items.map((item) => item.count))
  const sumOf = (/** @type {'count' | 'problems'} */ name) => items.reduce((total, item) => total + item[name], 0)
  const [total, problems] = [sumOf('count'), sumOf('problems')]
  return {
    from,
    to,
    stepMs,
    countedSince,
    box: { width: items.length * STEP, height: HEIGHT },
    bars: items.flatMap((item, index) => item.count === 0 ? [] : [toBar(item, index, most)]),
    counts: items.map((item) => `${item.count},${item.problems}`).join(' '),
    summary: summaryOf(total, problems),
    step: formatExactDuration(stepMs)
  }
}

/** @param {number} total @param {number} problems */
function summaryOf (total, problems) {
  if (problems === 0) return count(total, 'event')
  return problems === total ? count(problems, 'problem') : `${count(total, 'event')}, ${count(problems, 'problem')}`
}

/** @param {{ count: number, problems: number }} item @param {number} index @param {number} most */
function toBar ({ count, problems }, index, most) {
  const all = heightOf(count, most)
  const bad = Math.min(all, heightOf(problems, most))
  return { x: index * STEP + (STEP - WIDTH) / 2, width: WIDTH, bad: { y: HEIGHT - bad, height: bad }, rest: { y: HEIGHT - all, height: all - bad } }
}

/** @param {number} count @param {number} most */
function heightOf (count, most) {
  return count === 0 ? 0 : Math.max(MIN_HEIGHT, Math.round(HEIGHT * count / most))
}
