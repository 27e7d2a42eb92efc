import path from 'node:path'
import { attempt } from '../errors.ts'
import { readableText } from '../system/one-line.ts'
import { namesIn } from '../system/proc.ts'
import { createRunOutput, removeOutput, type RunOutput } from './run-output.ts'
import type { JobServices } from './jobs.ts'

/** So much of the output of a run is kept in the history, and goes to those who follow it. */
export const MAX_OUTPUT_CHARS = 64 * 1024
/** Whoever has started a run may still be about to ask for its output. */
const KEPT_AFTER_MS = 10_000

export function createRunOutputs ({ store, dataFolder, timers }: JobServices) {
  const folder = path.join(dataFolder, 'run-output')
  /** Of runs that have just ended. */
  const last: Map<number, RunOutput> = new Map()

  return {
    /** `id`: of a run that has begun, here or with the master before */
    open: (id: number) => createRunOutput({ maxChars: MAX_OUTPUT_CHARS, file: path.join(folder, String(id)) }),

    /** Null: that run has ended a while ago, or has not ended yet. */
    ofEnded: (id: number): RunOutput | null => last.get(id) ?? null,

    keepForAWhile (id: number, output: RunOutput) {
      last.set(id, output)
      const timer = timers.setTimeout(() => {
        last.delete(id)
        output.end()
      }, KEPT_AFTER_MS)
      timer?.unref?.()
    },

    record (id: number, job: string | null, output: string) {
      // The history says itself that it cannot be written; the log of the job has the output.
      attempt(() => store.keepOutput(id, job, readableText(output)))
    },

    /** Forgets that of all others. */
    sweep (runs: { has: (id: number) => boolean }) {
      for (const name of namesIn(folder)) if (!runs.has(Number(name))) removeOutput(path.join(folder, name))
    }
  }
}
