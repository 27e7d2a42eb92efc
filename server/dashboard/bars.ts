export const HOUR_MS = 60 * 60 * 1000
/** Width of a bar with the gap behind it, width without it, and full height, in units of the box. */
const STEP = 6
const WIDTH = 5
const HEIGHT = 24
/** A bar of few counts stays visible. */
const MIN_HEIGHT = 2

/**
 * Counts how often something happened, in bars of equal length. The last bar ends with the current hour.
 * `barMs`: whole hours. Returns `ageMs`: since the end of the bar.
 */
export function barsOf (hours: { at: string, count: number }[],
  { now, bars, barMs }: { now: number, bars: number, barMs: number }
): { box: { width: number, height: number },
  bars: { x: number, y: number, width: number, height: number, count: number, ageMs: number }[], total: number,
  max: number }
{
  const end = endOfHour(now)
  const counts = Array.from({ length: bars }, () => 0)
  for (const { at, count } of hours) {
    const index = bars - 1 - Math.floor((end - 1 - Date.parse(at)) / barMs)
    if (index in counts) counts[index] += count
  }
  const max = Math.max(...counts)
  return { box: { width: bars * STEP, height: HEIGHT }, max, total: counts.reduce((sum, count) => sum + count, 0),
    bars: counts.map((count, index) => {
      const height = count === 0 ? 0 : Math.max(MIN_HEIGHT, Math.round(HEIGHT * count / max))
      return { x: index * STEP, y: HEIGHT - height, width: WIDTH, height, count, ageMs: (bars - 1 - index) * barMs }
    }) }
}

export function endOfHour (now: number) {
  return (Math.floor(now / HOUR_MS) + 1) * HOUR_MS
}
