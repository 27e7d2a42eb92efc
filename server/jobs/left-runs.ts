import { setTimeout as wait } from 'node:timers/promises'
import { endLeftGroup } from '../cluster/command-run.ts'
import { isGroupAlive } from '../system/process-group.ts'
import { orNone } from './or-none.ts'
import { GRACE_MS, type LeftRun, type Runs } from './runs.ts'
import type { JobServices } from './jobs.ts'

/**
 * What a dead master has left running is killed after the grace. It is waited for this long: a process that the kernel
 * does not let go would never end.
 */
const PATIENCE_MS = GRACE_MS + 1000
const LOOK_EVERY_MS = 50

/** Runs of the master before: those that can go on here, and those that are to end. `onOver`: the run of a job has. */
export function createLeftRuns ({ store }: JobServices, runs: Runs, onOver: (job: string) => void) {
  /** They were told to end. */
  const ending: Set<LeftRun> = new Set()

  return {
    /** @returns the run of a job that has not ended */
    runOf: (name: string): number | null => [...ending].find(({ job }) => job === name)?.run ?? null,

    take (left: LeftRun[], cause: 'upgrade' | 'master-lost') {
      for (const run of left) {
        if (runs.goOn(run, cause)) continue
        const isAlive = endLeftGroup(run, GRACE_MS)
        if (isAlive) waitForEnd(run)
        runs.tellLost({ ...run, isAlive })
      }
      const known = new Set(left.map(({ run }) => run))
      for (const { id, job, command } of orNone(store.unfinished) ?? []) {
        if (!known.has(id)) runs.tellLost({ run: id, job, name: job ?? String(command), isAlive: false })
      }
      runs.sweep()
    }
  }

  async function waitForEnd (run: LeftRun) {
    ending.add(run)
    const until = performance.now() + PATIENCE_MS
    while (isGroupAlive(run.pid) && performance.now() < until) await wait(LOOK_EVERY_MS, undefined, { ref: false })
    ending.delete(run)
    if (run.job !== null) onOver(run.job)
  }
}
