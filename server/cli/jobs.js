import { formatExactDuration } from '../../public/format.js'
import { ID } from '../config/id.js'
import { cronWords } from '../cron-words.js'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { checkedId } from './id.js'
import { formatTable } from './output.js'
import { followRun } from './run.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/jobs.js').Job} Job */
/** @typedef {import('../api/jobs.js').Run} Run */
/** @typedef {import('../api/jobs.js').KeptRun} KeptRun */

const DEFAULT_LIMIT = '20'

/** @type {Readonly<Record<string, (context: Context, subject?: string) => Promise<number | void>>>} */
const ACTIONS = Object.freeze({
  ls: listJobs,
  run: startJob,
  runs: listRuns,
  end: endRun,
  acknowledge: (context, name) => change(context, 'acknowledge', name),
  pause: (context, name) => change(context, 'pause', name),
  resume: (context, name) => change(context, 'resume', name)
})

/** @param {Context} context @param {string[]} [words] the action, and what it is for */
export async function jobsCommand (context, [action, subject, surplus] = ['ls']) {
  if (surplus !== undefined) throw new DeckError('usage', `jobs ${action}: expected one job at the most, received ${JSON.stringify(surplus)} as well`)
  return await ACTIONS[action](context, subject)
}

/** @param {Context} context @param {string} [surplus] */
async function listJobs ({ api, answer }, surplus) {
  if (surplus !== undefined) throw new DeckError('usage', `jobs ls: expected no more, received ${JSON.stringify(surplus)}`)
  /** @type {{ items: Job[] }} */
  const body = await api.get('/jobs')
  answer(body, () => body.items.length === 0 ? 'no jobs are configured (option jobs)' : formatTable(['JOB', 'NEXT', 'TIMES', 'LAST', 'STARTED', 'TOOK', 'WHY'], body.items.map(rowOf)))
}

/** @param {Job} job */
function rowOf ({ name, cron, timeZone, nextAt, paused, last, isWaiting }) {
  const state = last && (isWaiting ? `${last.state}, another waits` : last.state)
  return [name, paused ? `paused by ${paused.actor}` : nextAt, timesText(cron, timeZone), state, last?.startedAt, tookText(last), last?.reason]
}

/** @param {string | null} cron @param {string | null} timeZone */
function timesText (cron, timeZone) {
  if (cron === null) return 'by hand'
  const words = cronWords(cron)
  return [words ?? cron, timeZone, words && `(${cron})`].filter(Boolean).join(' ')
}

/** @param {Run | null} run */
function tookText (run) {
  return run?.durationMs == null ? null : formatExactDuration(run.durationMs)
}

/** @param {Context} context @param {string} [name] */
async function startJob (context, name) {
  const { api, options, answer } = context
  /** @type {Run} */
  const run = await api.post(`/jobs/${checkedName('run', name)}/runs`)
  if (options.wait) return await followRun(context, run)
  answer(run, () => `run ${run.id} of ${run.job} has started in release ${run.release}`)
}

/** Prints the runs of all jobs, those of one, or one run with its output. @param {Context} context @param {string} [subject] */
async function listRuns ({ api, options, answer }, subject) {
  if (subject !== undefined && ID.test(subject)) {
    /** @type {KeptRun} */
    const run = await api.get(`/jobs/runs/${subject}`)
    return answer(run, () => runText(run))
  }
  const query = `limit=${encodeURIComponent(options.limit ?? DEFAULT_LIMIT)}`
  /** @type {{ items: Run[] }} */
  const body = await api.get(subject === undefined ? `/jobs/runs?${query}` : `/jobs/${encodeURIComponent(subject)}/runs?${query}`)
  answer(body, () => body.items.length === 0
    ? 'no runs yet'
    : formatTable(['RUN', 'JOB', 'STATE', 'STARTED', 'TOOK', 'BY', 'RELEASE', 'WHY'], body.items.map((run) => [
      run.id, run.job ?? run.command, run.state, run.startedAt, tookText(run), run.actor, run.release, run.reason
    ]), { right: [0] }))
}

/** @param {KeptRun} run */
function runText (run) {
  /** @type {[name: string, value: string][]} */
  const facts = [
    ['run', `${run.id} of ${run.job ?? run.command}`],
    ['state', run.cause === null ? run.state : `${run.state} (${run.cause})`],
    ['started', `${run.startedAt} by ${run.actor}${run.dueAt === null ? '' : `, due at ${run.dueAt}`}`],
    ['took', tookText(run) ?? '-'],
    ['exit', run.signal ?? String(run.code ?? '-')],
    ['release', run.release ?? '-'],
    ['why', run.reason ?? '-']
  ]
  const text = facts.map(([name, value]) => `${name.padEnd(9)}${oneLine(value)}`).join('\n')
  const output = run.output?.replace(/\n$/, '')
  return output ? `${text}\n\n${output.split('\n').map(oneLine).join('\n')}` : text
}

/** @param {Context} context @param {string} [id] */
async function endRun ({ api, answer }, id) {
  /** @type {Run} */
  const run = await api.post(`/jobs/runs/${checkedId('jobs end', id, 'a run')}/end`)
  answer(run, () => `run ${run.id} is told to end`)
}

/** @type {Readonly<Record<'acknowledge' | 'pause' | 'resume', (job: Job) => string>>} */
const CHANGED = Object.freeze({
  acknowledge: ({ name }) => `the failure of ${name} is acknowledged`,
  pause: ({ name }) => `${name} is paused`,
  resume: ({ name, nextAt }) => `${name} is resumed${nextAt === null ? '' : `; it runs next at ${nextAt}`}`
})

/** @param {Context} context @param {keyof typeof CHANGED} action @param {string} [name] */
async function change ({ api, answer }, action, name) {
  /** @type {Job} */
  const job = await api.post(`/jobs/${checkedName(action, name)}/${action}`)
  answer(job, () => CHANGED[action](job))
}

/** @param {string} action @param {string} [name] */
function checkedName (action, name) {
  if (name === undefined) throw new DeckError('usage', `jobs ${action}: expected a job, received none`)
  return encodeURIComponent(name)
}
