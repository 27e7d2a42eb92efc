import type { Count } from '../lifecycle/rollout/guard.ts'

/** The new workers have to fail more by this many standard deviations, as a rollout is judged many times. */
const SURE = 5
const RECENT = 2

/**
 * Whether new workers answer more often with 5xx than old ones do. Each second is compared by itself, because what both
 * depend on may fail for a while, and then new workers may have had more of their requests just then.
 */
export function createFailures () {
  const canary = { requests: 0, failed: 0 }
  /** Of new workers since the last second in which old ones have answered too. */
  let alone = { requests: 0, failed: 0 }
  let isAlwaysAlone = true
  /** How many failures of the new workers are expected anyway. */
  let expected = 0
  /** The variance of that by chance, in units of p (1 - p). */
  let spread = 0
  /** The last seconds, with about RECENT times rollout.limits.minRequests answers. */
  let recent: { requests: number, excess: number }[] = []

  return {
    /** `now`: of the new workers in one second; `beside`: of the old ones */
    add (now: Count, beside: Count, { minRequests }: { minRequests: number }) {
      if (beside.requests > 0) isAlwaysAlone = false
      alone = { requests: alone.requests + now.requests, failed: alone.failed + now.failed }
      if (now.requests === 0 || (beside.requests === 0 && !isAlwaysAlone)) return
      const share = beside.requests === 0 ? 0 : beside.failed / beside.requests
      canary.requests += alone.requests
      canary.failed += alone.failed
      expected += alone.requests * share
      spread += alone.requests + (beside.requests === 0 ? 0 : alone.requests ** 2 / beside.requests)
      recent.push({ requests: alone.requests, excess: alone.failed - alone.requests * share })
      alone = { requests: 0, failed: 0 }
      while (sumOf(recent.slice(1)).requests >= RECENT * minRequests) recent = recent.slice(1)
    },

    /**
     * @returns unsure: by so few answers it can be chance; over: they failed more often, but the last answers are fine
     */
    look ({ errorRate, minRequests }: { errorRate: number, minRequests: number }): 'none' | 'unsure' | 'some' | 'over' {
      const more = canary.failed - expected
      // The old workers may have failed as well, had they been asked.
      const isMaybeMore = more + alone.failed > errorRate * (canary.requests + alone.requests)
      if (canary.requests < minRequests || more <= errorRate * canary.requests) return isMaybeMore ? 'unsure' : 'none'
      const share = Math.min(1, (canary.failed + expected) / 2 / canary.requests)
      if (more <= SURE * Math.sqrt(share * (1 - share) * spread)) return 'unsure'
      const { requests, excess } = sumOf(recent)
      return requests >= RECENT * minRequests && excess <= errorRate / 2 * requests ? 'over' : 'some'
    }
  }
}

function sumOf (seconds: { requests: number, excess: number }[]) {
  return seconds.reduce((sum, each) => ({ requests: sum.requests + each.requests, excess: sum.excess + each.excess }), {
    requests: 0,
    excess: 0
  })
}
