/** As many messages of one type as a worker may send in a while; an app that opens and closes servers all the time stays far below. */
const MAX_MESSAGES = 2000
const WINDOW_MS = 10_000

/**
 * What workers send that nobody can make sense of, or too much of: told at the first time, counted from then on, and
 * told once more when the worker has gone.
 * @param {object} parts
 * @param {(worker: number, message: string) => void} parts.tell
 * @param {() => number} parts.now
 */
export function createNonsense ({ tell, now }) {
  /** @type {Map<number, number>} by worker */
  const counts = new Map()
  /** @type {Map<number, { since: number, messages: Map<string, number> }>} by worker */
  const windows = new Map()

  return {
    hear,

    /** @param {number} worker @param {string} type of one more message @returns {boolean} whether it may be listened to */
    admit (worker, type) {
      let window = windows.get(worker)
      if (!window || now() - window.since >= WINDOW_MS) windows.set(worker, window = { since: now(), messages: new Map() })
      const count = (window.messages.get(type) ?? 0) + 1
      window.messages.set(type, count)
      if (count > MAX_MESSAGES) hear(worker, `more than ${MAX_MESSAGES} messages of type "${type}" in ${WINDOW_MS / 1000} s`)
      return count <= MAX_MESSAGES
    },

    /** @param {number} worker has ended */
    left (worker) {
      const count = counts.get(worker) ?? 0
      counts.delete(worker)
      windows.delete(worker)
      if (count > 1) tell(worker, `worker ${worker} has sent ${count} messages that were dropped`)
    }
  }

  /** @param {number} worker @param {string} reason */
  function hear (worker, reason) {
    const count = counts.get(worker) ?? 0
    counts.set(worker, count + 1)
    if (count === 0) tell(worker, `worker ${worker} has sent what was dropped: ${reason}`)
  }
}
