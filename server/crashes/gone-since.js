/** @typedef {{ id: string, path: string, outcome: string | null, deployedAt: string | null }} KnownRelease */

const MIN_QUIET_MS = 10 * 60 * 1000

/**
 * The first release without a fault, once the running release has not had it for longer than the average time between two of
 * its crashes.
 * @param {{ highestRelease: number | null, count: number, firstSeenAt: string, lastSeenAt: string }} group `highestRelease`: the n of `r<n>`
 * @param {{ running: string | null, releases: KnownRelease[], now: number }} now
 * @returns {string | null} null: not gone, or unknown
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
