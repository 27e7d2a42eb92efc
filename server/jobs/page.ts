import { formatAgo } from '../../public/format.ts'
import { cronWords } from '../words/cron.ts'
import type { Tone } from '../events/kinds.ts'
import type { Run } from '../../db/job-runs.ts'
import type { Deck } from '../deck.ts'

type Jobs = Deck['jobs']

const SHOWN_RUNS = 30
/** A time that has come is noticed within this time. */
const NOTICED_MS = 60_000
/** of each job, as a strip */
const STRIP = 20

const STATES: Readonly<Record<Run['state'], { label: string, tone: Tone }>> = Object.freeze({
  running: { label: 'Running', tone: 'info' },
  succeeded: { label: 'Succeeded', tone: 'ok' },
  failed: { label: 'Failed', tone: 'bad' },
  interrupted: { label: 'Interrupted', tone: 'warn' }
})

export function jobsModel (
  { deck: { jobs }, now }: { deck: { jobs: Pick<Jobs, 'list' | 'runs'> }, now: () => number }
) {
  const all = jobs.list().map((job) => ({ ...job, words: job.cron && cronWords(job.cron), next: nextText(job, now()),
    last: job.last && withBadge(job.last), strip: stripOf(jobs, job.name) })
  )
  return {
    now: now(),
    // What has failed first, then what runs next.
    jobs: all.sort((one, other) =>
      rankOf(one) - rankOf(other) || (one.nextAt ?? '9').localeCompare(other.nextAt ?? '9')
    ),
    runs: jobs.runs(undefined, { limit: SHOWN_RUNS }).items.map(withBadge)
  }
}

/** @throws {import('../errors.ts').DeckError} not-found */
export function jobRunModel (
  { deck: { jobs }, id, now }: { deck: { jobs: Pick<Jobs, 'run' | 'runs' | 'list'> }, id: string, now: () => number }
) {
  const run = withBadge(jobs.run(Number(id)))
  const job = run.job === null ? undefined : jobs.list().find(({ name }) => name === run.job)
  return { now: now(), run, job: job && { ...job, next: nextText(job, now()) },
    lastRuns: job ? stripOf(jobs, job.name) : [] }
}

/** Why it does not just run at a time that is to come; null: it does. */
function nextText ({ cron, nextAt, isWaiting, running }: ReturnType<Jobs['list']>[number], now: number): string | null {
  if (isWaiting) return running === null ? 'once the new master has taken over' : `once run ${running} has ended`
  if (cron === null) return 'when somebody starts it'
  if (nextAt === null) return 'once its secrets are known'
  const lateMs = now - Date.parse(nextAt)
  if (lateMs < 0) return null
  return lateMs < NOTICED_MS ? 'due now' : `late: it was due ${formatAgo(lateMs)}`
}

/** How its last runs ended, oldest first. */
function stripOf (jobs: Pick<Jobs, 'runs'>, name: string) {
  return jobs.runs(name, { limit: STRIP }).items.map(withBadge).toReversed()
}

function rankOf ({ isFailing, last }: { isFailing: boolean, last: Pick<Run, 'state'> | null }) {
  if (isFailing) return 0
  return last?.state === 'failed' ? 1 : 2
}

function withBadge<R extends Run> (run: R) {
  return { ...run, name: run.job ?? run.command ?? '', badge: STATES[run.state] }
}
