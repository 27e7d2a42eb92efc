/** The box of a sparkline in its own units; the browser stretches it to the room that there is. */
export const SPARK_BOX = Object.freeze({ width: 120, height: 32 })

const PADDING = 2

/**
 * Draws values over time as a line that ends at the right edge. `points`: oldest first; null is a gap; `spanMs`: of the
 * whole width. Returns `path`: for the `d` of an SVG path.
 */
export function sparklineOf (points: { ageMs: number, value: number | null }[],
  spanMs: number): { path: string, end: { x: number, y: number } | null, max: number | null, last: number | null }
{
  const known = points.filter(({ value }) => value !== null)
  const max = known.length === 0 ? null : Math.max(...known.map(({ value }) => Number(value)))
  const xOf = (ageMs: number) => toOneDecimal(SPARK_BOX.width * (1 - Math.min(Math.max(ageMs / spanMs, 0), 1)))
  const yOf = (value: number) =>
    toOneDecimal(SPARK_BOX.height - PADDING - (SPARK_BOX.height - 2 * PADDING) * (max ? value / max : 0))
  let isPenDown = false
  const path = points.map(({ ageMs, value }) => {
    const isFirst = !isPenDown
    isPenDown = value !== null
    // A point between two gaps is drawn as well.
    return value === null ? '' : `${isFirst ? 'M' : 'L'}${xOf(ageMs)} ${yOf(value)}${isFirst ? 'h0' : ''}`
  }).join('')
  const last = known.at(-1)
  return { path, end: last ? { x: xOf(last.ageMs), y: yOf(Number(last.value)) } : null, max, last: last?.value ?? null }
}

/** `values`: each with its place, from 0 at the left edge to 1. Returns points of an SVG polyline. */
export function polylineOf (values: readonly (readonly [place: number, value: number])[]): string {
  const most = Math.max(...values.map(([, value]) => value)) || 1
  return values.map(([place, value]) =>
    `${Math.round(SPARK_BOX.width * place)},${
      Math.round(SPARK_BOX.height - PADDING - (SPARK_BOX.height - 2 * PADDING) * value / most)
    }`
  ).join(' ')
}

function toOneDecimal (value: number) {
  return Math.round(value * 10) / 10
}
