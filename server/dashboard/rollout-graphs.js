import { formatLatency, formatPercent } from '../../public/format.js'

/**
 * What the judge saw over the time of a rollout, as small graphs: new workers against old ones.
 * @typedef {import('../deck.js').RolloutView} RolloutView
 * @typedef {import('../lifecycle/state.js').Comparison} Comparison
 * @typedef {import('./rollout-story.js').Axis} Axis
 * @typedef {import('./rollout-story.js').Span} Span
 */

/** The box of a graph in its own units; the browser stretches it to the room that there is. */
const GRAPH_BOX = Object.freeze({ width: 400, height: 72 })

const PADDING = 4
/** As lifecycle/rollout/trial.js looks. */
const LOOKS_EVERY = '5 seconds'

/** @type {readonly { id: string, name: string, valueOf: (figures: Comparison['canary']) => number | null, format: (value: number | null) => string, least: number }[]} `least`: the top of the axis, so that nothing much does not look like much */
const MEASURES = Object.freeze([
  { id: 'errors', name: '5xx', valueOf: ({ errorRate }) => errorRate === null ? null : errorRate * 100, format: formatPercent, least: 1 },
  { id: 'p99', name: 'p99', valueOf: ({ p99Ms }) => p99Ms, format: formatLatency, least: 1 }
])

/** @param {RolloutView} rollout @param {{ axis: Axis, still: Span[], isRunning: boolean }} parts */
export function graphsOf (rollout, { axis, still, isRunning }) {
  const comparisons = rollout.comparisons ?? []
  const x = (/** @type {number} */ ms) => rounded(GRAPH_BOX.width * Math.min(Math.max((ms - axis.startMs) / axis.lengthMs, 0), 1))
  return {
    none: comparisons.length === 0 ? whyNone(rollout, isRunning) : null,
    looks: comparisons.map(({ at, canary, baseline }) => ({ at, canary: inWords(canary), baseline: inWords(baseline) })),
    bands: still.map(({ startMs, endMs }) => ({ x: x(startMs), width: Math.max(1, rounded(x(endMs) - x(startMs))) })),
    marks: (rollout.verdicts ?? []).map(({ at, passed }) => ({ x: x(Date.parse(at)), tone: passed === null ? 'warn' : passed ? 'ok' : 'bad' })),
    lines: comparisons.length === 0 ? [] : MEASURES.map((measure) => graphOf(measure, comparisons, x))
  }
}

/** @param {RolloutView} rollout @param {boolean} isRunning @returns {string} */
function whyNone ({ kind, comparisons }, isRunning) {
  if (kind !== 'deploy') return 'Only deploys are judged.'
  if (isRunning) return `The judge compares new workers with old ones every ${LOOKS_EVERY}. It has not looked yet.`
  return comparisons ? `It was over before the judge looked for the first time: it looks every ${LOOKS_EVERY}.` : 'Nothing was kept of what the judge saw: this rollout is of an earlier version.'
}

/** @param {typeof MEASURES[number]} measure @param {Comparison[]} comparisons @param {(ms: number) => number} x */
function graphOf ({ id, name, valueOf, format, least }, comparisons, x) {
  const sides = { canary: comparisons.map(({ canary }) => valueOf(canary)), baseline: comparisons.map(({ baseline }) => valueOf(baseline)) }
  const max = Math.max(least, ...[...sides.canary, ...sides.baseline].filter((value) => value !== null))
  const y = (/** @type {number} */ value) => rounded(GRAPH_BOX.height - PADDING - (GRAPH_BOX.height - 2 * PADDING) * value / max)
  const line = (/** @type {'canary' | 'baseline'} */ side) => lineOf(comparisons.map((comparison, index) => {
    const value = sides[side][index]
    // It counts anew: what comes now does not go on from there.
    const isNew = index > 0 && comparison[side].requests < comparisons[index - 1][side].requests
    return { x: x(Date.parse(comparison.at)), y: value === null ? null : y(value), isNew }
  }))
  const last = { canary: format(sides.canary.at(-1) ?? null), baseline: format(sides.baseline.at(-1) ?? null) }
  const peak = { canary: format(highest(sides.canary)), baseline: format(highest(sides.baseline)) }
  return { id, name, max: format(max), last, canary: line('canary'), baseline: line('baseline'), summary: `${name}: new workers ${last.canary} at the end, at most ${peak.canary}; old workers ${last.baseline} at the end, at most ${peak.baseline}` }
}

/** @param {{ x: number, y: number | null, isNew: boolean }[]} points @returns {{ path: string, end: string | null }} for the `d` of SVG paths */
function lineOf (points) {
  let isPenDown = false
  const path = points.map(({ x, y, isNew }) => {
    const command = isPenDown && !isNew ? 'L' : 'M'
    isPenDown = y !== null
    return y === null ? '' : `${command}${x} ${y}`
  }).join('')
  const end = points.findLast(({ y }) => y !== null)
  return { path, end: end ? `M${end.x} ${end.y}h0` : null }
}

/** @param {Comparison['canary']} figures */
function inWords ({ workers, requests, errorRate, p99Ms }) {
  return { workers, requests: requests.toLocaleString('en-US'), errors: formatPercent(errorRate === null ? null : errorRate * 100), p99: formatLatency(p99Ms) }
}

/** @param {(number | null)[]} values */
function highest (values) {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** @param {number} value */
function rounded (value) {
  return Math.round(value * 10) / 10
}
