import type { Fact } from '../lifecycle/state.ts'
import type { CrashRecorder } from '../crashes/recorder.ts'
import type { Exit } from '../lifecycle/loss.ts'

/** Keeps what is known of a worker's end, from its exit until the event is on record. */
export function createExitEvidence (crashes: Pick<CrashRecorder, 'examine' | 'record'>, { isProgram, hintFor }: {
  /** whether one runs another program than Node */
  isProgram: (release: string) => boolean,
  /** what may help one that has ended before it was ready */
  hintFor: (worker: { id: number, release: string }, why: string) => string | null
}) {
  const findings: Map<number, Omit<Parameters<typeof crashes.record>[1], 'root'>> = new Map()

  return {
    /** @returns with what has been found */
    examine (
      { id, slot, pid, release, readyAt }: { id: number, slot: number | null, pid: number | null, release: string,
        readyAt: string | null },
      exit: Exit
    ): Exit {
      const { code, signal, isAsTold, isOutOfMemory } = exit
      const about = { hasStarted: readyAt !== null, isProgram: isProgram(release), isAsTold, isOutOfMemory }
      const found = crashes.examine({ slot, worker: id, pid, code, signal, ...about })
      const note = exit.error ?? found.note
      findings.set(id, { ...found, note, isProgram: about.isProgram })
      const hint = exit.hint ??
        (about.hasStarted ? null : hintFor({ id, release }, note?.errorMessage ?? found.said ?? ''))
      return { ...exit, error: note, said: found.said, hint, isOutOfMemory: found.memoryKind !== null }
    },

    /** `event`: `worker.exited`; `root`: of its release @returns with its crash if there was one */
    record (event: Fact, root: string | null): Fact {
      const worker = Number(event.worker)
      const found = findings.get(worker)
      findings.delete(worker)
      return found ? crashes.record(event, { ...found, root }) : event
    }
  }
}
