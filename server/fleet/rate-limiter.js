/**
 * Limits what other members can cause: `burst` times at once, and then once every `everyMs`.
 * @param {{ burst: number, everyMs: number, now: () => number }} options `now`: monotonic, ms
 * @returns {() => number} ms to wait; 0 counts as done, any other answer counts as nothing
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
