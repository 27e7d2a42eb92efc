/** @typedef {import('../lifecycle/state.js').Fact} Fact */

/**
 * Keeps what is known of a worker's end, from its exit until the event is on record.
 * @param {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} crashes
 * @param {object} parts
 * @param {(release: string) => boolean} parts.isProgram  whether one runs another program than Node
 * @param {(worker: { id: number, release: string }, why: string) => string | null} parts.hintFor  what may help one that has ended before it was ready
 */
export function createExitEvidence (crashes, { isProgram, hintFor }) {
  /** @type {Map<number, Omit<Parameters<typeof crashes.record>[1], 'root'>>} */
  const findings = new Map()

  return {
    /**
     * @param {{ id: number, slot: number | null, pid: number | null, release: string, readyAt: string | null }} worker @param {import('../lifecycle/loss.js').Exit} exit
     * @returns {import('../lifecycle/loss.js').Exit} with what has been found
     */
    examine ({ id, slot, pid, release, readyAt }, exit) {
      const { code, signal, isAsTold, isOutOfMemory } = exit
      const about = { hasStarted: readyAt !== null, isProgram: isProgram(release), isAsTold, isOutOfMemory }
      const found = crashes.examine({ slot, worker: id, pid, code, signal, ...about })
      const note = exit.error ?? found.note
      findings.set(id, { ...found, note, isProgram: about.isProgram })
      const hint = exit.hint ?? (about.hasStarted ? null : hintFor({ id, release }, note?.errorMessage ?? found.said ?? ''))
      return { ...exit, error: note, said: found.said, hint, isOutOfMemory: found.memoryKind !== null }
    },

    /** @param {Fact} event  `worker.exited` @param {string | null} root  of its release @returns {Fact} with its crash if there was one */
    record (event, root) {
      const found = findings.get(event.worker)
      findings.delete(event.worker)
      return found ? crashes.record(event, { ...found, root }) : event
    }
  }
}
