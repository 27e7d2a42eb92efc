import { orNone } from './or-none.js'

/**
 * How the jobs have gone: which of them has failed since its last good run, how often each has ended how, and when it has succeeded last.
 * @typedef {ReturnType<typeof createOutcomes>} Outcomes
 * @typedef {import('../../db/job-runs.js').Run} Run
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {typeof RESULTS[number]} Result
 * @typedef {{ job: string, run: number, at: string, reason: string }} Failure  `at`: when that run ended; `reason`: may hold what the job has written
 * @typedef {{ job: string, runs: Record<Result, number>, lastSuccessAt: string | null }} JobMetrics
 */

const RESULTS = Object.freeze(/** @type {const} */ (['succeeded', 'failed', 'interrupted', 'skipped']))

/** A run with one of these causes was ended on purpose, so its end says nothing about the job. */
const MEANT = Object.freeze(['operator', 'replaced', 'stopping'])

/**
 * @param {object} parts
 * @param {Pick<import('../../db/history.js').History['jobRuns'], 'lastOutcome' | 'lastSuccessAt'>} parts.store
 * @param {() => readonly string[]} parts.names  of the jobs that there are
 * @param {(name: string) => boolean} parts.isScheduled  whoever starts another one looks at its end
 */
export function createOutcomes ({ store, names, isScheduled }) {
  /** The last run that says something about its job, by job; null: there was none. @type {Map<string, Failure | null>} */
  const failures = new Map()
  /** @type {Map<string, JobMetrics>} */
  const counted = new Map()

  return {
    /** @param {DeckEvent} event  of any kind; those that name a job count */
    note (event) {
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

    /** Those that run by the clock and have failed since their last good run, unless somebody has acknowledged it. @returns {Failure[]} */
    failing: () => names().filter(isScheduled).flatMap((name) => failureOf(name) ?? []),

    /** @param {string} name @returns {Failure | null} the same of one job, also of one that runs only when somebody starts it */
    failureOf,

    /** Counted since this master began. @returns {JobMetrics[]} */
    metrics: () => names().map(metricsOf)
  }

  /** @param {string} name */
  function failureOf (name) {
    if (!failures.has(name)) failures.set(name, readFailure(name))
    return failures.get(name) ?? null
  }

  /** @param {string} name @returns {Failure | null} */
  function readFailure (name) {
    const run = orNone(() => store.lastOutcome(name, MEANT))
    if (run === null || run.state === 'succeeded' || run.acknowledgedBy !== null) return null
    return { job: name, run: run.id, at: run.finishedAt ?? run.startedAt, reason: run.reason ?? `${name} was interrupted` }
  }

  /** @param {string} job @returns {JobMetrics} */
  function metricsOf (job) {
    const known = counted.get(job)
    if (known) return known
    const blank = { job, runs: { succeeded: 0, failed: 0, interrupted: 0, skipped: 0 }, lastSuccessAt: orNone(() => store.lastSuccessAt(job)) }
    counted.set(job, blank)
    return blank
  }
}
