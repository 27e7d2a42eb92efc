import { formatExactDuration } from '../../public/format.ts'
import { ID } from '../config/id.ts'
import { cronWords } from '../cron-words.ts'
import { oneLine } from '../system/one-line.ts'
import { checkedAction, orderFor, type Action } from './actions.ts'
import { formatTable, linesOf } from './output.ts'
import { followRun } from './run.ts'
import { checkedId, misuse } from './usage.ts'
import type { Context } from './commands.ts'
import type { Job, KeptRun, Run } from '../api/jobs.ts'

const DEFAULT_LIMIT = '20'

const ACTIONS: Readonly<Record<string, Action>> = Object.freeze({ ls: { run: listJobs, words: 0 },
  run: { run: startJob }, runs: { run: listRuns },
  end: {
    run: orderFor((id) => checkedId('jobs end', id, 'a run'), (api, id) => api.post<Run>(`/jobs/runs/${id}/end`),
      ({ id }) => `run ${id} is told to end`)
  }, acknowledge: { run: changeJob('acknowledge', ({ name }) => `the failure of ${name} is acknowledged`) },
  pause: { run: changeJob('pause', ({ name }) => `${name} is paused`) },
  resume: {
    run: changeJob('resume', ({ name, nextAt }) =>
      `${name} is resumed${nextAt === null ? '' : `; it runs next at ${nextAt}`}`)
  } })

/** `words`: the action, and what it is for */
export async function jobsCommand (context: Context, words: string[] = ['ls']) {
  return await checkedAction('jobs', ACTIONS, words).run(context, ...words.slice(1))
}

function changeJob (action: string, sentence: (job: Job) => string) {
  return orderFor((name) => checkedName(action, name), (api, name) => api.post<Job>(`/jobs/${name}/${action}`),
    sentence)
}

async function listJobs ({ api, answer }: Context) {
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

function checkedName (action: string, name?: string) {
  if (name === undefined) throw misuse(`jobs ${action}`, 'a job')
  return encodeURIComponent(name)
}
