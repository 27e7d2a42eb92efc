/**
 * Keeps what is known of a worker's end, from its exit until the event is on record.
 * @param {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} crashes
 */
export function createExitEvidence (crashes) {
  /** @type {Map<number, any>} */
  const findings = new Map()

  return {
    /**
     * @param {{ id: number, slot: number | null, pid: number | null }} worker @param {{ code: number | null, signal: string | null, error: any, unfinished?: any, left?: any }} exit
     * @returns {{ code: number | null, signal: string | null, error: any, isOutOfMemory: boolean, unfinished?: any, left?: any }} the input of the lifecycle
     */
    examine ({ id, slot, pid }, exit) {
      const found = crashes.examine({ slot, worker: id, pid, code: exit.code, signal: exit.signal })
      findings.set(id, { note: exit.error, ...found })
      return { ...exit, isOutOfMemory: found.memoryKind !== null }
    },

    /** @param {any} event `worker.exited`, about to be published @param {string | null} root of its release @returns {any} the event, with its crash where there was one */
    record (event, root) {
      const found = findings.get(event.worker)
      findings.delete(event.worker)
      return found ? crashes.record(event, { ...found, root }) : event
    }
  }
}
