/** @typedef {import('../lifecycle/state.js').Fact} Fact */

/**
 * Keeps what is known of a worker's end, from its exit until the event is on record.
 * @param {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} crashes
 * @param {{ isProgram: (release: string) => boolean }} releases  whether one runs another program than Node
 */
export function createExitEvidence (crashes, { isProgram }) {
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
      return { ...exit, error: note, said: found.said, isOutOfMemory: found.memoryKind !== null }
    },

    /** @param {Fact} event  `worker.exited` @param {string | null} root  of its release @returns {Fact} with its crash if there was one */
    record (event, root) {
      const found = findings.get(event.worker)
      findings.delete(event.worker)
      return found ? crashes.record(event, { ...found, root }) : event
    }
  }
}
