// setTimeout fires at once for a longer time.
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/**
 * Named timers: setting one again starts it anew, a cleared one never fires.
 * @param {{ onPassed: (deadline: import('../lifecycle/state.js').DeadlineKind, id: number) => void }} options
 */
export function createDeadlines ({ onPassed }) {
  /** @type {Map<string, NodeJS.Timeout>} */
  const timers = new Map()

  return {
    /** @param {import('../lifecycle/state.js').DeadlineKind} deadline @param {number} id @param {number} ms */
    set (deadline, id, ms) {
      const key = `${deadline}:${id}`
      clearTimeout(timers.get(key))
      timers.set(key, setTimeout(() => {
        timers.delete(key)
        onPassed(deadline, id)
      }, Math.min(ms, MAX_TIMEOUT_MS)))
    },

    /** @param {import('../lifecycle/state.js').DeadlineKind} deadline @param {number} id */
    clear (deadline, id) {
      const key = `${deadline}:${id}`
      clearTimeout(timers.get(key))
      timers.delete(key)
    },

    clearAll () {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    }
  }
}
