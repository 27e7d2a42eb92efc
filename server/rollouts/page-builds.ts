import type { Run } from '../api/shapes.ts'
import type { KeptRun } from '../jobs/api.ts'
import type { Deck } from '../deck.ts'

/** The builds of commits, as the list of deploys and the page of a rollout show them. */

/** Among so many runs of commands they are looked for. */
const READ_RUNS = 100
/** The page of its run has more of its output. */
const SHOWN_CHARS = 4000

/** Newest first, without their output. */
export function buildsIn (jobs: Pick<Deck['jobs'], 'runs'>): Run[] {
  return jobs.runs(null, { limit: READ_RUNS }).items.filter(({ git }) => git !== null)
}

/** Of one that no rollout has followed. `isOvertaken`: a later rollout has succeeded. */
export function toBuildRow ({ output, ...run }: KeptRun, isOvertaken: boolean) {
  const { id, state, stage, startedAt, finishedAt } = run
  const isRunning = state === 'running'
  const last = output?.slice(-SHOWN_CHARS) ?? ''
  return { key: `build-${id}`, at: finishedAt ?? startedAt, tone: isRunning ? 'info' : isOvertaken ? 'idle' : 'bad',
    run: { ...run, isRunning, label: isRunning ? 'Building' : state === 'failed' ? 'Build failed' : 'Build ended',
      output: last.length < SHOWN_CHARS ? last : last.slice(last.indexOf('\n') + 1),
      stageMs: stage && finishedAt && Date.parse(finishedAt) - Date.parse(stage.startedAt) } }
}
