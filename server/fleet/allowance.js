/**
 * How often something may be done because of what others say: some times at once, and from then on each time after a while.
 * @param {{ burst: number, everyMs: number, now: () => number }} options `now`: monotonic, ms
 * @returns {() => number} takes one; ms until it is due, 0: now
 */
export function createAllowance ({ burst, everyMs, now }) {
  let dueAt = -Infinity
  return () => {
    dueAt = Math.max(dueAt, now() - burst * everyMs) + everyMs
    return Math.max(0, dueAt - now())
  }
}
