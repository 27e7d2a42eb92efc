/**
 * Limits what other members can cause: `burst` times at once, and then once every `everyMs`. `options`: `now`:
 * monotonic, ms.
 * @returns ms to wait; 0 counts as done, any other answer counts as nothing
 */
export function createRateLimiter (
  { burst, everyMs, now }: { burst: number, everyMs: number, now: () => number }
): () => number {
  let takenUntil = -Infinity
  return () => {
    const until = Math.max(takenUntil, now() - burst * everyMs) + everyMs
    if (until > now()) return until - now()
    takenUntil = until
    return 0
  }
}
