const MAX_ZONES = 50
/** kept, as a formatter is expensive to make */
const formats: Map<string, Intl.DateTimeFormat> = new Map()

/** Tells whether this is the name of a time zone such as Europe/Berlin */
export function isZone (zone: string): boolean {
  try {
    return formatIn(zone) !== null
  } catch {
    return false
  }
}

/** The wall clock of a zone, as the ms since the epoch at which the clock of UTC shows the same. */
export function wallClock (ms: number, zone: string) {
  const part = Object.fromEntries(formatIn(zone).formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second)
}

/** When the wall clock of a zone shows this time. `wallMs`: as wallClock has it. */
export function instantOf (wallMs: number, zone: string) {
  // The second step corrects for a change of the clocks between the two times.
  const about = wallMs - offsetAt(wallMs, zone)
  return wallMs - offsetAt(about, zone)
}

function offsetAt (ms: number, zone: string) {
  return wallClock(ms, zone) - Math.floor(ms / 1000) * 1000
}

/** @throws {RangeError} unknown zone */
function formatIn (zone: string) {
  const known = formats.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-US', { timeZone: zone, year: 'numeric', month: 'numeric', day: 'numeric',
    hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' })
  if (formats.size >= MAX_ZONES) formats.clear()
  formats.set(zone, made)
  return made
}
