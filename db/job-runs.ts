import { checkKept, decodeCursor, encodeCursor } from './cursor.ts'
import type { DeckEvent } from '../server/events/stream.ts'
import type { Db, Rows } from './sqlite.ts'
import type { Run } from '../server/api/shapes.ts'

const CURSOR_KIND = 'j'
const MAX_LIMIT = 100
/** So many outputs of each job are kept, as each may have 64 Ki characters. */
const KEPT_OUTPUTS = 20
/** So many runs of each job are kept. */
const KEPT_RUNS = 1000

export type { Run }

const ENDS: Readonly<Record<string, Run['state']>> = Object.freeze({ 'job.succeeded': 'succeeded',
  'job.failed': 'failed', 'job.command-failed': 'failed', 'job.interrupted': 'interrupted' })

/** Keeps the runs of jobs, and which jobs are paused, from the `job.*` events. */
export function createJobRuns (db: Db) {
  const insert = db.prepare(
    'INSERT OR IGNORE INTO job_runs (id, job, state, at_ms, body) VALUES (?, ?, \'running\', ?, ?)'
  )
  const update = db.prepare('UPDATE job_runs SET state = ?, body = ? WHERE id = ?')
  const setOutput = db.prepare('UPDATE job_runs SET output = ? WHERE id = ?')
  const forgetOutputs = db.prepare(`
    UPDATE job_runs SET output = NULL WHERE job = @job AND output IS NOT NULL AND id <= (
      SELECT id FROM job_runs WHERE job = @job ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_OUTPUTS})`)
  const forgetRuns = db.prepare(`
    DELETE FROM job_runs WHERE job = @job AND state != 'running' AND id <= (SELECT id FROM job_runs WHERE job = @job ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_RUNS})`)
  const byId: Rows<{ id: number, body: string, output: string | null }> = db.prepare(
    'SELECT id, body, output FROM job_runs WHERE id = ?'
  )
  const unfinished: Rows<{ id: number, body: string }> = db.prepare(
    'SELECT id, body FROM job_runs WHERE state = \'running\' ORDER BY id'
  )
  const below: Rows<{ id: number, body: string }> = db.prepare(
    'SELECT id, body FROM job_runs WHERE id < @before ORDER BY id DESC LIMIT @limit'
  )
  const belowOfJob: Rows<{ id: number, body: string }> = db.prepare(
    'SELECT id, body FROM job_runs WHERE job = @job AND id < @before ORDER BY id DESC LIMIT @limit'
  )
  const endedOfJob: Rows<{ id: number, body: string }> = db.prepare(
    'SELECT id, body FROM job_runs WHERE job = ? AND state != \'running\' ORDER BY id DESC LIMIT 50'
  )
  const lastSucceeded: Rows<{ id: number, body: string }> = db.prepare(
    'SELECT id, body FROM job_runs WHERE job = ? AND state = \'succeeded\' ORDER BY id DESC LIMIT 1'
  )
  const pause = db.prepare('INSERT OR REPLACE INTO paused_jobs (job, at_ms, actor) VALUES (?, ?, ?)')
  const resume = db.prepare('DELETE FROM paused_jobs WHERE job = ?')
  const paused: Rows<{ job: string, atMs: number, actor: string }> = db.prepare(
    'SELECT job, at_ms AS atMs, actor FROM paused_jobs'
  )

  return {
    /** `event`: `job.*` */
    store (event: DeckEvent) {
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

    /** `id`: of a run; `output`: the last part of it */
    keepOutput (id: number, job: string | null, output: string) {
      setOutput.run(output, id)
      forgetOutputs.run({ job: job ?? '' })
    },

    /** @returns `output`: null: no longer kept */
    find (id: number): (Run & { output: string | null }) | null {
      const row = byId.get(id)
      return row === undefined ? null : { ...toRun(row), output: row.output }
    },

    /** @returns those whose master has ended before they did, oldest first */
    unfinished: (): Run[] => unfinished.all().map(toRun),

    /** `meant`: causes of an end that says nothing about the job. Returns its newest run that does. */
    lastOutcome: (job: string, meant: readonly string[]): Run | null =>
      endedOfJob.all(job).map(toRun).find(({ cause }) => !meant.includes(String(cause))) ?? null,

    /** @returns when it has succeeded last; null: never, as far as the runs are kept */
    lastSuccessAt (job: string): string | null {
      const row = lastSucceeded.get(job)
      return row === undefined ? null : toRun(row).finishedAt
    },

    paused: (): { job: string, at: string, actor: string }[] =>
      paused.all().map(({ job, atMs, actor }) => ({ job, at: new Date(atMs).toISOString(), actor })),

    /** Newest first. `job`: undefined: all runs, null: those of no job. */
    page (
      { job, limit = 50, cursor }: { job?: string | null, limit?: number, cursor?: string | null } = {}
    ): { items: Run[], next: string | null } {
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const before = decodeCursor(CURSOR_KIND, cursor)
      const read = (count: number) => {
        const range = { before: Math.min(before, Number.MAX_SAFE_INTEGER), limit: count }
        return job === undefined ? below.all(range) : belowOfJob.all({ ...range, job: job ?? '' })
      }
      checkKept(before, () => read(1).length > 0)
      const rows = read(wanted + 1)
      const items = rows.slice(0, wanted).map(toRun)
      return { items, next: rows.length > wanted ? encodeCursor(CURSOR_KIND, items[items.length - 1].id) : null }
    }
  }

  function endRun ({ type, at, cause, release, code, signal, message, detail }: DeckEvent) {
    const row = byId.get(detail?.run)
    if (row === undefined) return
    const state = ENDS[type]
    const run = { ...JSON.parse(row.body), state, cause, ...(release !== null && { release }),
      rollout: detail?.rollout ?? null, stage: detail?.stage ?? null, code, signal, finishedAt: at,
      durationMs: detail?.durationMs ?? null, reason: state === 'succeeded' ? null : message }
    update.run(state, JSON.stringify(run), row.id)
  }
  function acknowledge ({ actor, detail }: DeckEvent) {
    const row = byId.get(detail?.run)
    if (row === undefined) return
    const run = { ...JSON.parse(row.body), acknowledgedBy: actor }
    update.run(run.state, JSON.stringify(run), row.id)
  }
}

function begunRun ({ at, actor, release, pid, detail }: DeckEvent): Omit<Run, 'id'> {
  return { job: detail?.job ?? null, command: detail?.command ?? null, state: 'running', cause: null,
    actor: String(actor), release, rollout: null, pid, dueAt: detail?.dueAt ?? null, startedAt: at, finishedAt: null,
    durationMs: null, code: null, signal: null, reason: null, acknowledgedBy: null,
    hasTerminal: detail?.hasTerminal ?? false, git: detail?.git ?? null, stage: null }
}

/** What was kept before tells of no builds. */
function toRun ({ id, body }: { id: number, body: string }): Run {
  return { id, git: null, stage: null, ...JSON.parse(body) }
}
