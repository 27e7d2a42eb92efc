/** @typedef {import('../lifecycle/state.js').Fact} Fact */

/**
 * Keeps what is known of a worker's end, from its exit until the event is on record.
 * @param {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} crashes
 */
export function createExitEvidence (crashes) {
  /** @type {Map<number, Omit<Parameters<typeof crashes.record>[1], 'root'>>} */
  const findings = new Map()

  return {
    /**
     * @param {{ id: number, slot: number | null, pid: number | null }} worker @param {import('../lifecycle/loss.js').Exit} exit
     * @returns {import('../lifecycle/loss.js').Exit} with what has been found
     */
    examine ({ id, slot, pid }, exit) {
      const found = crashes.examine({ slot, worker: id, pid, code: exit.code, signal: exit.signal })
      findings.set(id, { note: exit.error ?? null, ...found })
      return { ...exit, isOutOfMemory: found.memoryKind !== null }
    },

    /** @param {Fact} event  `worker.exited` @param {string | null} root  of its release @returns {Fact} with its crash if there was one */
    record (event, root) {
      const found = findings.get(event.worker)
      findings.delete(event.worker)
      return found ? crashes.record(event, { ...found, root }) : event
    }
  }
}
