/**
 * How often something may be done because of what others say: some times at once, and from then on each time after a while.
 * @param {{ burst: number, everyMs: number, now: () => number }} options `now`: monotonic, ms
 * @returns {() => number} ms until it may be done, 0: now, which takes it; whoever comes too early takes nothing
 */
export function createRateLimiter ({ burst, everyMs, now }) {
  let takenUntil = -Infinity
  return () => {
    const until = Math.max(takenUntil, now() - burst * everyMs) + everyMs
    if (until > now()) return until - now()
    takenUntil = until
    return 0
  }
}
