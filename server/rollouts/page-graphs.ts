import { formatLatency, formatPercent } from '../../public/format.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { Comparison } from '../lifecycle/state.ts'
import type { Axis, Span } from './page-story.ts'

/** The measurements of the judge during a rollout, as small graphs: new workers against old ones. */

/** The box of a graph in its own units; the browser stretches it to the room that there is. */
const GRAPH_BOX = Object.freeze({ width: 400, height: 72 })

const SIDES = ['canary', 'baseline'] as const
const PADDING = 4
/** Two labels that are closer than this would cover each other. */
const LABEL_HEIGHT = 15
/** The interval of lifecycle/rollout/trial.js. */
const MEASURED_EVERY = '5 s'

/** `least`: the least top of the axis, so that small values look small; `scale`: of the figure to that of a limit */
type Measure = { id: string, name: string, valueOf: (figures: Comparison['canary']) => number | null | undefined,
  format: (value: number | null) => string, least: number, scale?: number }

const ERRORS: Measure = { id: 'errors', name: '5xx',
  valueOf: ({ errorRate }) => errorRate === null ? null : errorRate * 100, format: formatPercent, least: 1, scale: 100 }
const P99: Measure = { id: 'p99', name: 'p99', valueOf: ({ p99Ms }) => p99Ms, format: formatLatency, least: 1 }
const P50: Measure = { ...P99, id: 'p50', name: 'p50', valueOf: ({ p50Ms }) => p50Ms }

export function graphsOf (rollout: RolloutView,
  { axis, still, isProgram }: { axis: Axis, still: Span[], isProgram: boolean })
{
  const comparisons = rollout.comparisons ?? []
  const lines = linesOf(rollout, axis)
  const none = lines.length > 0 ? null : whyNoGraphs(comparisons, isProgram)
  const xOf = placeOn(axis)
  return { none,
    bands: still.map(({ startMs, endMs }) => ({ x: xOf(startMs),
      width: Math.max(1, toOneDecimal(xOf(endMs) - xOf(startMs))) })
    ),
    marks: (rollout.verdicts ?? []).map(({ at, passed }) => ({ x: xOf(Date.parse(at)),
      tone: passed === null ? 'warn' : passed ? 'ok' : 'bad' })
    ), lines }
}

/** What both sides have answered, over that time: of latency the quantile that has decided, from three points on. */
export function linesOf (
  { comparisons = [], from, to, verdicts }: Pick<RolloutView, 'comparisons' | 'from' | 'to' | 'verdicts'>,
  axis: Axis
) {
  const names = { canary: to === from ? 'new' : to ?? 'new', baseline: to === from ? 'old' : from }
  const decided = verdicts?.at(-1)?.decided
  return [ERRORS, decided?.figure === P50.name ? P50 : P99].flatMap((measure) => {
    const measured = comparisons.filter((each) => SIDES.some((side) => measure.valueOf(each[side]) != null))
    const limit = decided?.figure === measure.name ? decided.limit * (measure.scale ?? 1) : null
    return measured.length > 2 ? [graphOf(measure, { comparisons, names, limit, x: placeOn(axis) })] : []
  })
}

function placeOn ({ startMs, lengthMs }: Axis) {
  return (ms: number) => toOneDecimal(GRAPH_BOX.width * Math.min(Math.max((ms - startMs) / lengthMs, 0), 1))
}

function whyNoGraphs (comparisons: Comparison[], isProgram: boolean): string {
  if (comparisons.length === 0) return `New workers are compared with old ones every ${MEASURED_EVERY}.`
  if (comparisons.some(({ canary, baseline }) => canary.requests + baseline.requests > 0))
    return 'Too few answers to compare.'
  return isProgram
    ? 'Nobody counts the requests of a program in another language. A canary of it is judged by CPU and memory.'
    : 'No request was answered while new workers were compared with old ones.'
}

function graphOf ({ id, name, valueOf, format, least }: Measure,
  { comparisons, names, limit, x }: { comparisons: Comparison[], names: { canary: string, baseline: string },
    limit: number | null, x: (ms: number) => number })
{
  const sides = { canary: comparisons.map(({ canary }) => valueOf(canary) ?? null),
    baseline: comparisons.map(({ baseline }) => valueOf(baseline) ?? null) }
  const max = Math.max(least, ...[limit, ...sides.canary, ...sides.baseline].filter((value) => value !== null))
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
  const labels = labelsOf(SIDES.map((side) => {
    const value = sides[side].findLast((each) => each !== null) ?? null
    return { side, text: `${names[side]} ${format(value)}`, y: value === null ? GRAPH_BOX.height : yOf(value) }
  }))
  const limitText = limit === null ? null : format(limit)
  return { id, name, max: format(max), limit: limit === null ? null : { text: limitText, y: yOf(limit) }, last, labels,
    canary: lineOfSide('canary'), baseline: lineOfSide('baseline'),
    summary: `${name}: new workers ${last.canary}, old workers ${last.baseline} at the end${
      limitText ? `; limit ${limitText}` : ''
    }` }
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

function toOneDecimal (value: number) {
  return Math.round(value * 10) / 10
}
