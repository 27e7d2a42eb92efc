const MAX_ZONES = 50
/** @type {Map<string, Intl.DateTimeFormat>} kept, as a formatter is expensive to make */
const formats = new Map()

/** @param {string} zone @returns {boolean} whether this is the name of a time zone such as Europe/Berlin */
export function isZone (zone) {
  try {
    return formatIn(zone) !== null
  } catch {
    return false
  }
}

/**
 * The wall clock of a zone, as the ms since the epoch at which the clock of UTC shows the same.
 * @param {number} ms @param {string} zone
 */
export function wallClock (ms, zone) {
  const part = Object.fromEntries(formatIn(zone).formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second)
}

/** When the wall clock of a zone shows this time. @param {number} wallMs as wallClock has it @param {string} zone */
export function instantOf (wallMs, zone) {
  // The second step corrects for a change of the clocks between the two times.
  const about = wallMs - offsetAt(wallMs, zone)
  return wallMs - offsetAt(about, zone)
}

/** @param {number} ms @param {string} zone */
function offsetAt (ms, zone) {
  return wallClock(ms, zone) - Math.floor(ms / 1000) * 1000
}

/** @param {string} zone @throws {RangeError} unknown zone */
function formatIn (zone) {
  const known = formats.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
    hourCycle: 'h23'
  })
  if (formats.size >= MAX_ZONES) formats.clear()
  formats.set(zone, made)
  return made
}
