/** answers, and how many of them were 5xx */
type Count = { requests: number, failed: number }

/** The new workers have to fail more by this many standard deviations, as a rollout is judged many times. */
const SURE = 5
const RECENT = 2

/**
 * Whether new workers answer more often with 5xx than old ones do. Each second is compared by itself, because what both
 * depend on may fail for a while, and then new workers may have had more of their requests just then.
 */
export function createFailures () {
  const baseline = { requests: 0, failed: 0 }
  const canary = { requests: 0, failed: 0 }
  /** How many failures of the new workers are expected anyway. */
  let expected = 0
  /** The variance of that by chance, in units of p (1 - p). */
  let spread = 0
  /** The last seconds, with about RECENT times rollout.limits.minRequests answers. */
  let recent: { requests: number, excess: number }[] = []

  return {
    /** `now`: of the new workers in one second; `beside`: of the old ones */
    add (now: Count, beside: Count, { minRequests }: { minRequests: number }) {
      baseline.requests += beside.requests
      baseline.failed += beside.failed
      if (now.requests === 0) return
      const measure = beside.requests > 0 ? beside : baseline
      const share = measure.requests === 0 ? 0 : measure.failed / measure.requests
      canary.requests += now.requests
      canary.failed += now.failed
      expected += now.requests * share
      spread += now.requests + (measure.requests === 0 ? 0 : now.requests ** 2 / measure.requests)
      recent.push({ requests: now.requests, excess: now.failed - now.requests * share })
      while (sumOf(recent.slice(1)).requests >= RECENT * minRequests) recent = recent.slice(1)
    },

    /**
     * @returns unsure: by so few answers it can be chance; over: they failed more often, but the last answers are fine
     */
    look ({ errorRate, minRequests }: { errorRate: number, minRequests: number }): 'none' | 'unsure' | 'some' | 'over' {
      if (canary.requests < minRequests) return 'none'
      const share = Math.min(1, (canary.failed + expected) / 2 / canary.requests)
      const more = canary.failed - expected
      if (more <= errorRate * canary.requests) return 'none'
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
