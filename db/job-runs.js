import { checkKept, decodeCursor, encodeCursor } from './cursor.js'

const CURSOR_KIND = 'j'
const MAX_LIMIT = 100
/** So many outputs of each job are kept, as each may have 64 Ki characters. */
const KEPT_OUTPUTS = 20
/** So many runs of each job are kept. */
const KEPT_RUNS = 1000

/** @typedef {import('../server/events/stream.js').DeckEvent} DeckEvent */
/** @typedef {'running' | 'succeeded' | 'failed' | 'interrupted'} RunState */
/**
 * One run of a job, or of a command.
 * @typedef {object} Run
 * @property {number} id
 * @property {string | null} job  null: a command that somebody has typed
 * @property {string | null} command  null: it is that of the job, which may hold a secret
 * @property {RunState} state
 * @property {string | null} cause  why it has failed or was interrupted, where that is known
 * @property {string} actor
 * @property {string | null} release  in which it runs, or which it has made
 * @property {number | null} rollout  that it has started
 * @property {number | null} pid
 * @property {string | null} dueAt  when the job was to run; null: somebody has asked for it
 * @property {string} startedAt
 * @property {string | null} finishedAt
 * @property {number | null} durationMs
 * @property {number | null} code
 * @property {string | null} signal
 * @property {string | null} reason  why it has not succeeded
 * @property {string | null} acknowledgedBy  who knows that it has not succeeded
 * @property {boolean} hasTerminal  it runs in a terminal of whoever has started it, so its output is not kept
 */

/** @type {Readonly<Record<string, RunState>>} */
const ENDS = Object.freeze({ 'job.succeeded': 'succeeded', 'job.failed': 'failed', 'job.command-failed': 'failed', 'job.interrupted': 'interrupted' })

/**
 * Keeps the runs of jobs, and which jobs are paused, from the `job.*` events.
 * @param {import('./open.js').Db} db
 */
export function createJobRuns (db) {
  const insert = db.prepare("INSERT OR IGNORE INTO job_runs (id, job, state, at_ms, body) VALUES (?, ?, 'running', ?, ?)")
  const update = db.prepare('UPDATE job_runs SET state = ?, body = ? WHERE id = ?')
  const setOutput = db.prepare('UPDATE job_runs SET output = ? WHERE id = ?')
  const forgetOutputs = db.prepare(`
    UPDATE job_runs SET output = NULL WHERE job = @job AND output IS NOT NULL AND id <= (
      SELECT id FROM job_runs WHERE job = @job ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_OUTPUTS})`)
  const forgetRuns = db.prepare(`
    DELETE FROM job_runs WHERE job = @job AND state != 'running' AND id <= (SELECT id FROM job_runs WHERE job = @job ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_RUNS})`)
  /** @type {import('./sqlite.js').Rows<{ id: number, body: string, output: string | null }>} */
  const byId = db.prepare('SELECT id, body, output FROM job_runs WHERE id = ?')
  /** @type {import('./sqlite.js').Rows<{ id: number, body: string }>} */
  const unfinished = db.prepare("SELECT id, body FROM job_runs WHERE state = 'running' ORDER BY id")
  /** @type {import('./sqlite.js').Rows<{ id: number, body: string }>} */
  const below = db.prepare('SELECT id, body FROM job_runs WHERE id < @before ORDER BY id DESC LIMIT @limit')
  /** @type {import('./sqlite.js').Rows<{ id: number, body: string }>} */
  const belowOfJob = db.prepare('SELECT id, body FROM job_runs WHERE job = @job AND id < @before ORDER BY id DESC LIMIT @limit')
  /** @type {import('./sqlite.js').Rows<{ id: number, body: string }>} */
  const endedOfJob = db.prepare("SELECT id, body FROM job_runs WHERE job = ? AND state != 'running' ORDER BY id DESC LIMIT 50")
  /** @type {import('./sqlite.js').Rows<{ id: number, body: string }>} */
  const lastSucceeded = db.prepare("SELECT id, body FROM job_runs WHERE job = ? AND state = 'succeeded' ORDER BY id DESC LIMIT 1")
  const pause = db.prepare('INSERT OR REPLACE INTO paused_jobs (job, at_ms, actor) VALUES (?, ?, ?)')
  const resume = db.prepare('DELETE FROM paused_jobs WHERE job = ?')
  /** @type {import('./sqlite.js').Rows<{ job: string, atMs: number, actor: string }>} */
  const paused = db.prepare('SELECT job, at_ms AS atMs, actor FROM paused_jobs')

  return {
    /** @param {DeckEvent} event `job.*` */
    store (event) {
      const { type, id, at, actor, detail } = event
      if (!detail) return
      const job = String(detail.job ?? '')
      if (type === 'job.started') {
        insert.run(id, job, Date.parse(at), JSON.stringify(begunRun(event)))
        forgetRuns.run({ job })
      }
      if (Object.hasOwn(ENDS, type)) endRun(event)
      if (type === 'job.acknowledged') acknowledge(event)
      if (type === 'job.paused') pause.run(job, Date.parse(at), String(actor))
      if (type === 'job.resumed') resume.run(job)
    },

    /** @param {number} id of a run @param {string | null} job @param {string} output  the last part of it */
    keepOutput (id, job, output) {
      setOutput.run(output, id)
      forgetOutputs.run({ job: job ?? '' })
    },

    /** @param {number} id @returns {(Run & { output: string | null }) | null} `output`: null: no longer kept */
    find (id) {
      const row = byId.get(id)
      return row === undefined ? null : { ...toRun(row), output: row.output }
    },

    /** @returns {Run[]} those whose master has ended before they did, oldest first */
    unfinished: () => unfinished.all().map(toRun),

    /** @param {string} job @param {readonly string[]} meant  causes of an end that says nothing about the job @returns {Run | null} its newest run that does */
    lastOutcome: (job, meant) => endedOfJob.all(job).map(toRun).find(({ cause }) => !meant.includes(String(cause))) ?? null,

    /** @param {string} job @returns {string | null} when it has succeeded last; null: never, as far as the runs are kept */
    lastSuccessAt (job) {
      const row = lastSucceeded.get(job)
      return row === undefined ? null : toRun(row).finishedAt
    },

    /** @returns {{ job: string, at: string, actor: string }[]} */
    paused: () => paused.all().map(({ job, atMs, actor }) => ({ job, at: new Date(atMs).toISOString(), actor })),

    /**
     * Newest first.
     * @param {{ job?: string | null, limit?: number, cursor?: string | null }} [query] `job`: undefined: all runs, null: those of no job
     * @returns {{ items: Run[], next: string | null }}
     */
    page ({ job, limit = 50, cursor } = {}) {
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const before = decodeCursor(CURSOR_KIND, cursor)
      const read = (/** @type {number} */ count) => {
        const range = { before: Math.min(before, Number.MAX_SAFE_INTEGER), limit: count }
        return job === undefined ? below.all(range) : belowOfJob.all({ ...range, job: job ?? '' })
      }
      checkKept(before, () => read(1).length > 0)
      const rows = read(wanted + 1)
      const items = rows.slice(0, wanted).map(toRun)
      return { items, next: rows.length > wanted ? encodeCursor(CURSOR_KIND, items[items.length - 1].id) : null }
    }
  }

  /** @param {DeckEvent} event */
  function endRun ({ type, at, cause, release, code, signal, message, detail }) {
    const row = byId.get(detail?.run)
    if (row === undefined) return
    const state = ENDS[type]
    const run = { ...JSON.parse(row.body), state, cause, ...(release !== null && { release }), rollout: detail?.rollout ?? null, code, signal, finishedAt: at, durationMs: detail?.durationMs ?? null, reason: state === 'succeeded' ? null : message }
    update.run(state, JSON.stringify(run), row.id)
  }
  /** @param {DeckEvent} event */
  function acknowledge ({ actor, detail }) {
    const row = byId.get(detail?.run)
    if (row === undefined) return
    const run = { ...JSON.parse(row.body), acknowledgedBy: actor }
    update.run(run.state, JSON.stringify(run), row.id)
  }
}

/** @param {DeckEvent} event @returns {Omit<Run, 'id'>} */
function begunRun ({ at, actor, release, pid, detail }) {
  return {
    job: detail?.job ?? null,
    command: detail?.command ?? null,
    state: 'running',
    cause: null,
    actor: String(actor),
    release,
    rollout: null,
    pid,
    dueAt: detail?.dueAt ?? null,
    startedAt: at,
    finishedAt: null,
    durationMs: null,
    code: null,
    signal: null,
    reason: null,
    acknowledgedBy: null,
    hasTerminal: detail?.hasTerminal ?? false
  }
}

/** @param {{ id: number, body: string }} row @returns {Run} */
function toRun ({ id, body }) {
  return { id, ...JSON.parse(body) }
}
