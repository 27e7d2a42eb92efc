/** @typedef {{ id: string, path: string, outcome: string | null, deployedAt: string | null }} KnownRelease */

/** Before that, silence says little. */
const MIN_QUIET_MS = 10 * 60 * 1000

/**
 * The first release after those with a fault, once the one that runs has gone without it for longer than it ever used to
 * take from one crash to the next, on average.
 * @param {{ highestRelease: number | null, count: number, firstSeenAt: string, lastSeenAt: string }} group `highestRelease`: the n of `r<n>`
 * @param {{ running: string | null, releases: KnownRelease[], now: number }} now
 * @returns {string | null} null: not gone, or not known
 */
export function goneSince ({ highestRelease, count, firstSeenAt, lastSeenAt }, { running, releases, now }) {
  const current = numberOf(running)
  if (highestRelease === null || current === null || current <= highestRelease) return null
  const clean = releases
    .filter(({ id, outcome }) => Number(numberOf(id)) > highestRelease && Number(numberOf(id)) <= current && (outcome === 'succeeded' || id === running))
    .sort((a, b) => Number(numberOf(a.id)) - Number(numberOf(b.id)))
  const since = clean[0]?.deployedAt
  if (!since) return null
  const gapMs = count > 1 ? (Date.parse(lastSeenAt) - Date.parse(firstSeenAt)) / (count - 1) : 0
  return now - Date.parse(since) >= Math.max(MIN_QUIET_MS, gapMs) ? clean[0].id : null
}

/** @param {string | null} id */
function numberOf (id) {
  return id === null ? null : Number(id.slice(1))
}
