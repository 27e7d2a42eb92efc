export type KnownRelease = { id: string, path: string, outcome: string | null, deployedAt: string | null }

const MIN_QUIET_MS = 10 * 60 * 1000

/**
 * The first release without a fault, once the running release has not had it for longer than the average time between
 * two of its crashes. `highestRelease`: the n of `r<n>`. Returns null: not gone, or unknown.
 */
export function goneSince (
  { highestRelease, count, firstSeenAt, lastSeenAt }: { highestRelease: number | null, count: number,
    firstSeenAt: string, lastSeenAt: string },
  { running, releases, now }: { running: string | null, releases: KnownRelease[], now: number }
): string | null {
  const current = numberOf(running)
  if (highestRelease === null || current === null || current <= highestRelease) return null
  const clean = releases.filter(({ id, outcome }) =>
    Number(numberOf(id)) > highestRelease && Number(numberOf(id)) <= current &&
    (outcome === 'succeeded' || id === running)
  ).sort((a, b) => Number(numberOf(a.id)) - Number(numberOf(b.id)))
  const since = clean[0]?.deployedAt
  if (!since) return null
  const gapMs = count > 1 ? (Date.parse(lastSeenAt) - Date.parse(firstSeenAt)) / (count - 1) : 0
  return now - Date.parse(since) >= Math.max(MIN_QUIET_MS, gapMs) ? clean[0].id : null
}

function numberOf (id: string | null) {
  return id === null ? null : Number(id.slice(1))
}
