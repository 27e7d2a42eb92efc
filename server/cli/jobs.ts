import { formatExactDuration } from '../../public/format.ts'
import { ID } from '../config/id.ts'
import { cronWords } from '../cron-words.ts'
import { oneLine } from '../system/one-line.ts'
import { formatTable, linesOf } from './output.ts'
import { followRun } from './run.ts'
import { checkedId, misuse } from './usage.ts'
import type { Context } from './commands.ts'
import type { Job, KeptRun, Run } from '../api/jobs.ts'

const DEFAULT_LIMIT = '20'

const ACTIONS: Readonly<Record<string, (context: Context, subject?: string) => Promise<number | void>>> = Object.freeze(
  { ls: listJobs, run: startJob, runs: listRuns, end: endRun, acknowledge: (context, name) =>
    change(context, 'acknowledge', name), pause: (context, name) =>
      change(context, 'pause', name), resume: (context, name) => change(context, 'resume', name) }
)

/** `words`: the action, and what it is for */
export async function jobsCommand (context: Context, [action, subject, surplus]: string[] = ['ls']) {
  if (surplus !== undefined) throw misuse(`jobs ${action}`, 'one job at the most', `${JSON.stringify(surplus)} as well`)
  return await ACTIONS[action](context, subject)
}

async function listJobs ({ api, answer }: Context, surplus?: string) {
  if (surplus !== undefined) throw misuse('jobs ls', 'no more', JSON.stringify(surplus))
  const body: { items: Job[] } = await api.get('/jobs')
  answer(body,
    () =>
      body.items.length === 0
        ? 'no jobs are configured (option jobs)'
        : formatTable(['JOB', 'NEXT', 'TIMES', 'LAST', 'STARTED', 'TOOK', 'WHY'], body.items.map(rowOf)))
}

function rowOf ({ name, cron, timeZone, nextAt, paused, last, isWaiting }: Job) {
  const state = last && (isWaiting ? `${last.state}, another waits` : last.state)
  return [name, paused ? `paused by ${paused.actor}` : nextAt, timesText(cron, timeZone), state, last?.startedAt,
    tookText(last), last?.reason]
}

function timesText (cron: string | null, timeZone: string | null) {
  if (cron === null) return 'by hand'
  const words = cronWords(cron)
  return [words ?? cron, timeZone, words && `(${cron})`].filter(Boolean).join(' ')
}

function tookText (run: Run | null) {
  return run?.durationMs == null ? null : formatExactDuration(run.durationMs)
}

async function startJob (context: Context, name?: string) {
  const { api, options, answer } = context
  const run: Run = await api.post(`/jobs/${checkedName('run', name)}/runs`)
  if (options.wait) return await followRun(context, run)
  answer(run, () => `run ${run.id} of ${run.job} has started in release ${run.release}`)
}

/** Prints the runs of all jobs, those of one, or one run with its output. */
async function listRuns ({ api, options, answer }: Context, subject?: string) {
  if (subject !== undefined && ID.test(subject)) {
    const run: KeptRun = await api.get(`/jobs/runs/${subject}`)
    return answer(run, () => runText(run))
  }
  const query = `limit=${encodeURIComponent(options.limit ?? DEFAULT_LIMIT)}`
  const body: { items: Run[] } = await api.get(
    subject === undefined ? `/jobs/runs?${query}` : `/jobs/${encodeURIComponent(subject)}/runs?${query}`
  )
  answer(body,
    () =>
      body.items.length === 0
        ? 'no runs yet'
        : formatTable(['RUN', 'JOB', 'STATE', 'STARTED', 'TOOK', 'BY', 'RELEASE', 'WHY'],
          body.items.map((
            run
          ) => [run.id, run.job ?? run.command, run.state, run.startedAt, tookText(run), run.actor, run.release,
            run.reason]
          ), { right: [0] }))
}

function runText (run: KeptRun) {
  const facts = [['run', `${run.id} of ${run.job ?? run.command}`], ['state',
    run.cause === null ? run.state : `${run.state} (${run.cause})`], ['started',
    `${run.startedAt} by ${run.actor}${run.dueAt === null ? '' : `, due at ${run.dueAt}`}`], ['took',
    tookText(run) ?? '-'], ['exit', run.signal ?? String(run.code ?? '-')], ['release', run.release ?? '-'], ['why',
    run.reason ?? '-']]
  const text = linesOf(facts)
  const output = run.output?.replace(/\n$/, '')
  return output ? `${text}\n\n${output.split('\n').map(oneLine).join('\n')}` : text
}

async function endRun ({ api, answer }: Context, id?: string) {
  const run: Run = await api.post(`/jobs/runs/${checkedId('jobs end', id, 'a run')}/end`)
  answer(run, () => `run ${run.id} is told to end`)
}

const CHANGED: Readonly<Record<'acknowledge' | 'pause' | 'resume', (job: Job) => string>> = Object.freeze({
  acknowledge: ({ name }) => `the failure of ${name} is acknowledged`,
  pause: ({ name }) => `${name} is paused`,
  resume: ({ name, nextAt }) => `${name} is resumed${nextAt === null ? '' : `; it runs next at ${nextAt}`}`
})

async function change ({ api, answer }: Context, action: keyof typeof CHANGED, name?: string) {
  const job: Job = await api.post(`/jobs/${checkedName(action, name)}/${action}`)
  answer(job, () => CHANGED[action](job))
}

function checkedName (action: string, name?: string) {
  if (name === undefined) throw misuse(`jobs ${action}`, 'a job')
  return encodeURIComponent(name)
}
