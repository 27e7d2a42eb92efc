/** durations in ms */
export type RestartPolicy = {
  /** after which ends a worker is replaced, see slot.ts */
  policy?: 'always' | 'on-failure' | 'never',
  /**
   * after the second death in a row, counted from the start of the one that has died; the first replacement comes at
   * once
   */
  minDelayMs: number,
  maxDelayMs: number,
  /** a worker that has run for this long counts as healthy again */
  resetAfterMs: number,
  /** more deaths than this within the window are a crash loop */
  intensity: { restarts: number, windowMs: number }
}

/** What a slot remembers of its deaths. `exitTimes`: monotonic ms, those within the intensity window. */
export type RestartRecord = { attempt: number, exitTimes: number[], crashLooping: boolean }

const JITTER = 0.2

export function blankRecord (): RestartRecord {
  return { attempt: 0, exitTimes: [], crashLooping: false }
}

/** Tells whether a program may come to its end */
export function endsByItself ({ policy = 'always' }: { policy?: RestartPolicy['policy'] }): boolean {
  return policy !== 'always'
}

/**
 * Counts one death. A slot in a crash loop is never given up: its delays go on doubling to the longest. `exit`:
 * `random` in [0, 1).
 */
export function recordExit (record: RestartRecord,
  { at, uptimeMs, random }: { at: number, uptimeMs: number, random: number },
  policy: RestartPolicy): { record: RestartRecord, delayMs: number }
{
  const before = uptimeMs >= policy.resetAfterMs ? blankRecord() : record
  const { restarts, windowMs } = policy.intensity
  const exitTimes = [...before.exitTimes.filter((time) => at - time < windowMs), at].slice(-(restarts + 1))
  const crashLooping = before.crashLooping || exitTimes.length > restarts
  return {
    record: { attempt: before.attempt + 1, exitTimes, crashLooping },
    // Who has run for longer than its delay has kept the starts apart already: one slow death after another is no loop
    // that costs much.
    delayMs: Math.max(0, delayOf(before.attempt, random, policy) - Math.round(uptimeMs))
  }
}

/** `attempt`: deaths in a row before this one */
function delayOf (attempt: number, random: number, { minDelayMs, maxDelayMs }: RestartPolicy) {
  if (attempt === 0) return 0
  const delay = Math.min(maxDelayMs, minDelayMs * 2 ** (attempt - 1))
  const jitter = 1 + JITTER * (2 * random - 1)
  return Math.round(Math.min(maxDelayMs, delay * jitter))
}
