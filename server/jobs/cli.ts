import { formatExactDuration } from '../../public/format.ts'
import { ID } from '../config/id.ts'
import { cronWords } from '../words/cron.ts'
import { oneLine } from '../system/one-line.ts'
import { actionsCommand, idOf, listCommand, orderFor, tableText } from '../cli/actions.ts'
import { inText, linesOf, type Columns } from '../cli/output.ts'
import { followRun } from '../cli/run.ts'
import { misuse, queryOf } from '../cli/usage.ts'
import type { Context } from '../cli/commands.ts'
import type { Job, KeptRun, Run } from './api.ts'

const DEFAULT_LIMIT = 20

const JOBS: Columns<Job> = { JOB: 'name',
  NEXT: ({ nextAt, paused }, now) => paused ? `paused by ${paused.actor}` : nextAt && inText(nextAt, now),
  TIMES: timesText, LAST: ({ last, isWaiting }) => last && (isWaiting ? `${last.state}, another waits` : last.state),
  STARTED: ({ last }) => last?.startedAt, TOOK: ({ last }) => tookText(last), WHY: ({ last }) => last?.reason }
const RUNS: Columns<Run> = { RUN: [true, 'id'], JOB: nameOf, STATE: 'state', STARTED: 'startedAt', TOOK: tookText,
  BY: 'actor', RELEASE: 'release', WHY: 'reason' }

const listJobs = listCommand<Job>({ path: '/jobs', textOf: tableText(JOBS, 'no jobs are configured (option jobs)') })
const runsText = tableText(RUNS, 'no runs yet')

export const jobsCommand = actionsCommand('jobs', { ls: { run: listJobs, words: 0 }, run: startJob, runs: listRuns,
  end: orderFor(idOf('jobs end', 'a run'), 'POST /jobs/runs/:id/end', ({ id }: Run) => `run ${id} is told to end`),
  acknowledge: changeJob('acknowledge', ({ name }) => `the failure of ${name} is acknowledged`),
  pause: changeJob('pause', ({ name }) => `${name} is paused`),
  resume: changeJob('resume',
    ({ name, nextAt }) => `${name} is resumed${nextAt === null ? '' : `; it runs next ${inText(nextAt)}`}`) }, listJobs)

function changeJob (action: string, sentence: (job: Job) => string) {
  return orderFor((name) => checkedName(action, name), `POST /jobs/:id/${action}`, sentence)
}

async function startJob (context: Context, name?: string) {
  const { api, options, answer } = context
  const run: Run = await api.post(`/jobs/${encodeURIComponent(checkedName('run', name))}/runs`)
  if (options.wait) return await followRun(context, run)
  answer(run, () => `run ${run.id} of ${run.job} has started in release ${run.release}`)
}

/** Prints the runs of all jobs, those of one, or one run with its output. */
async function listRuns ({ api, options, answer }: Context, subject?: string) {
  if (subject !== undefined && ID.test(subject)) {
    const run: KeptRun = await api.get(`/jobs/runs/${subject}`)
    return answer(run, () => runText(run))
  }
  const place = subject === undefined ? '/jobs/runs' : `/jobs/${encodeURIComponent(subject)}/runs`
  const { limit = DEFAULT_LIMIT } = options
  const runs: { items: Run[] } = await api.get(`${place}?${queryOf(options, [], { limit })}`)
  answer(runs, () => runsText(runs))
}

function runText (run: KeptRun) {
  const facts = [['run', `${run.id} of ${nameOf(run)}`], ['state',
    run.cause === null ? run.state : `${run.state} (${run.cause})`], ['started',
    `${run.startedAt} by ${run.actor}${run.dueAt === null ? '' : `, due at ${run.dueAt}`}`], ['took',
    tookText(run) ?? '-'], ['exit', run.signal ?? String(run.code ?? '-')], ['release', run.release ?? '-'], ['why',
    run.reason ?? '-']]
  const text = linesOf(facts)
  const output = run.output?.replace(/\n$/, '')
  return output ? `${text}\n\n${output.split('\n').map(oneLine).join('\n')}` : text
}

function nameOf ({ job, command }: Run) {
  return job ?? command
}

function timesText ({ cron, timeZone }: Job) {
  if (cron === null) return 'by hand'
  const words = cronWords(cron)
  return [words ?? cron, timeZone, words && `(${cron})`].filter(Boolean).join(' ')
}

function tookText (run: Run | null) {
  return run?.durationMs == null ? null : formatExactDuration(run.durationMs)
}

function checkedName (action: string, name?: string): string {
  if (name === undefined) throw misuse(`jobs ${action}`, 'a job')
  return name
}
