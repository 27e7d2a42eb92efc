import { attempt } from '../errors.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { History } from '../../db/history.ts'

// How the jobs have gone: which of them has failed since its last good run, how often each has ended how, and when it
// has succeeded last.

type Result = typeof RESULTS[number]
/** `at`: when that run ended; `reason`: may hold what the job has written */
type Failure = { job: string, run: number, at: string, reason: string }
export type JobMetrics = { job: string, runs: Record<Result, number>, lastSuccessAt: string | null }

const RESULTS = Object.freeze(['succeeded', 'failed', 'interrupted', 'skipped'] as const)

/** A run with one of these causes was ended on purpose, so its end says nothing about the job. */
const MEANT = Object.freeze(['operator', 'replaced', 'stopping'])

export function createOutcomes ({ store, names, isScheduled }: {
  store: Pick<History['jobRuns'], 'lastOutcome' | 'lastSuccessAt'>,
  /** of the jobs that there are */
  names: () => readonly string[],
  /** whoever starts another one looks at its end */
  isScheduled: (name: string) => boolean
}) {
  /** The last run that says something about its job, by job; null: there was none. */
  const failures: Map<string, Failure | null> = new Map()
  const counted: Map<string, JobMetrics> = new Map()

  return {
    /** `event`: of any kind; those that name a job count */
    note (event: DeckEvent) {
      const { type, cause, detail } = event
      const job = detail?.job
      if (typeof job !== 'string') return
      const result = RESULTS.find((each) => type === `job.${each}`)
      if (result !== undefined) metricsOf(job).runs[result]++
      if (result === 'succeeded') metricsOf(job).lastSuccessAt = event.at
      if (result === 'succeeded' || type === 'job.acknowledged') failures.set(job, null)
      if (result === 'failed' || (result === 'interrupted' && !MEANT.includes(String(cause)))) {
        failures.set(job, { job, run: Number(detail?.run), at: event.at, reason: String(event.message) })
      }
    },

    /** Those that run by the clock and have failed since their last good run, unless somebody has acknowledged it. */
    failing: (): Failure[] => names().filter(isScheduled).flatMap((name) => failureOf(name) ?? []),

    /** @returns the same of one job, also of one that runs only when somebody starts it */
    failureOf,

    /** Counted since this master began. */
    metrics: (): JobMetrics[] => names().map(metricsOf)
  }

  function failureOf (name: string) {
    if (!failures.has(name)) failures.set(name, readFailure(name))
    return failures.get(name) ?? null
  }

  function readFailure (name: string): Failure | null {
    const run = attempt(() => store.lastOutcome(name, MEANT))
    if (run === null || run.state === 'succeeded' || run.acknowledgedBy !== null) return null
    return { job: name, run: run.id, at: run.finishedAt ?? run.startedAt,
      reason: run.reason ?? `${name} was interrupted` }
  }

  function metricsOf (job: string): JobMetrics {
    const known = counted.get(job)
    if (known) return known
    const blank = { job, runs: { succeeded: 0, failed: 0, interrupted: 0, skipped: 0 },
      lastSuccessAt: attempt(() => store.lastSuccessAt(job)) }
    counted.set(job, blank)
    return blank
  }
}
