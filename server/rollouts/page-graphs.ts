import { formatLatency, formatPercent } from '../../public/format.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { Comparison } from '../lifecycle/state.ts'
import type { Axis, Span } from './page-story.ts'

/** The measurements of the judge during a rollout, as small graphs: new workers against old ones. */

/** The box of a graph in its own units; the browser stretches it to the room that there is. */
const GRAPH_BOX = Object.freeze({ width: 400, height: 72 })

const PADDING = 4
/** Two labels that are closer than this would cover each other. */
const LABEL_HEIGHT = 15
/** The interval of lifecycle/rollout/trial.js. */
const MEASURED_EVERY = '5 s'

/** `least`: the least top of the axis, so that small values look small */
const MEASURES: readonly { id: string, name: string, valueOf: (figures: Comparison['canary']) => number | null,
  format: (value: number | null) => string, least: number }[] = Object.freeze([{ id: 'errors', name: '5xx',
    valueOf: ({ errorRate }) => errorRate === null ? null : errorRate * 100, format: formatPercent, least: 1 }, {
    id: 'p99',
    name: 'p99',
    valueOf: ({ p99Ms }) => p99Ms,
    format: formatLatency,
    least: 1
  }])

export function graphsOf (rollout: RolloutView,
  { axis, still, isProgram }: { axis: Axis, still: Span[], isProgram: boolean })
{
  const comparisons = rollout.comparisons ?? []
  const none = whyNoGraphs(comparisons, isProgram)
  const xOf = placeOn(axis)
  return { none,
    bands: still.map(({ startMs, endMs }) => ({ x: xOf(startMs),
      width: Math.max(1, toOneDecimal(xOf(endMs) - xOf(startMs))) })
    ),
    marks: (rollout.verdicts ?? []).map(({ at, passed }) => ({ x: xOf(Date.parse(at)),
      tone: passed === null ? 'warn' : passed ? 'ok' : 'bad' })
    ), lines: none ? [] : linesOf(rollout, axis) }
}

/** Each measure of both sides, over that time. */
export function linesOf ({ comparisons = [], from, to }: Pick<RolloutView, 'comparisons' | 'from' | 'to'>, axis: Axis) {
  const names = { canary: to === from ? 'new' : to ?? 'new', baseline: to === from ? 'old' : from }
  return MEASURES.map((measure) => graphOf(measure, { comparisons, names, x: placeOn(axis) }))
}

function placeOn ({ startMs, lengthMs }: Axis) {
  return (ms: number) => toOneDecimal(GRAPH_BOX.width * Math.min(Math.max((ms - startMs) / lengthMs, 0), 1))
}

/** Null: there are some */
function whyNoGraphs (comparisons: Comparison[], isProgram: boolean): string | null {
  if (comparisons.length === 0) return `New workers are compared with old ones every ${MEASURED_EVERY}.`
  const hasRequests = comparisons.some(({ canary, baseline }) => canary.requests > 0 || baseline.requests > 0)
  return isProgram && !hasRequests
    ? 'Nobody counts the requests of a program in another language. A canary of it is judged by CPU and memory.'
    : null
}

function graphOf ({ id, name, valueOf, format, least }: typeof MEASURES[number],
  { comparisons, names, x }: { comparisons: Comparison[], names: { canary: string, baseline: string },
    x: (ms: number) => number })
{
  const sides = { canary: comparisons.map(({ canary }) => valueOf(canary)),
    baseline: comparisons.map(({ baseline }) => valueOf(baseline)) }
  const max = Math.max(least, ...[...sides.canary, ...sides.baseline].filter((value) => value !== null))
  const yOf = (value: number) =>
    toOneDecimal(GRAPH_BOX.height - PADDING - (GRAPH_BOX.height - 2 * PADDING) * value / max)
  const lineOfSide = (side: 'canary' | 'baseline') =>
    lineOf(comparisons.map((comparison, index) => {
      const value = sides[side][index]
      // The counts began again, so the line begins again.
      const isNew = index > 0 && comparison[side].requests < comparisons[index - 1][side].requests
      return { x: x(Date.parse(comparison.at)), y: value === null ? null : yOf(value), isNew }
    }))
  const last = { canary: format(sides.canary.at(-1) ?? null), baseline: format(sides.baseline.at(-1) ?? null) }
  const peak = { canary: format(highestOf(sides.canary)), baseline: format(highestOf(sides.baseline)) }
  const labels = labelsOf((['canary', 'baseline'] as const).map((side) => {
    const value = sides[side].findLast((each) => each !== null) ?? null
    return { side, text: `${names[side]} ${format(value)}`, y: value === null ? GRAPH_BOX.height : yOf(value) }
  }))
  return { id, name, max: format(max), last, labels, canary: lineOfSide('canary'), baseline: lineOfSide('baseline'),
    summary:
      `${name}: new workers ${last.canary} at the end, at most ${peak.canary}; old workers ${last.baseline} at the end, at most ${peak.baseline}` }
}

/** At the ends of their lines, as far as there is room for both. */
function labelsOf<L extends { y: number }> (labels: L[]): L[] {
  const [upper, lower] = labels.toSorted((one, other) => one.y - other.y)
  const top = Math.min(upper.y, GRAPH_BOX.height - LABEL_HEIGHT - PADDING)
  return [{ ...upper, y: top }, { ...lower, y: Math.max(lower.y, top + LABEL_HEIGHT) }]
}

/** @returns for the `d` of SVG paths */
function lineOf (points: { x: number, y: number | null, isNew: boolean }[]): { path: string, end: string | null } {
  let isPenDown = false
  const path = points.map(({ x, y, isNew }) => {
    const command = isPenDown && !isNew ? 'L' : 'M'
    isPenDown = y !== null
    return y === null ? '' : `${command}${x} ${y}`
  }).join('')
  const end = points.findLast(({ y }) => y !== null)
  return { path, end: end ? `M${end.x} ${end.y}h0` : null }
}

function highestOf (values: (number | null)[]) {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.max(...known)
}

function toOneDecimal (value: number) {
  return Math.round(value * 10) / 10
}
