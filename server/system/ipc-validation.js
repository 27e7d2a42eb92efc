/** As many messages of one type as a worker may send in a while; an app that opens and closes servers all the time stays far below. */
const MAX_MESSAGES = 2000
const WINDOW_MS = 10_000

/**
 * What processes send that nobody can make sense of, or too much of: told at the first time, counted from then on, and
 * told once more when the process has gone.
 * @param {object} parts
 * @param {(sender: number, message: string) => void} parts.tell
 * @param {() => number} [parts.now]
 * @param {(sender: number) => string} [parts.nameOf]
 */
export function createIpcValidation ({ tell, now = () => performance.now(), nameOf = (worker) => `worker ${worker}` }) {
  /** @type {Map<number, number>} by sender */
  const counts = new Map()
  /** @type {Map<number, { since: number, messages: Map<string, number> }>} by sender */
  const windows = new Map()

  return {
    hear: noteInvalid,

    /** @param {number} sender @param {string} type of one more message @returns {boolean} whether it may be listened to */
    admit (sender, type) {
      let window = windows.get(sender)
      if (!window || now() - window.since >= WINDOW_MS) windows.set(sender, window = { since: now(), messages: new Map() })
      const count = (window.messages.get(type) ?? 0) + 1
      window.messages.set(type, count)
      if (count > MAX_MESSAGES) noteInvalid(sender, `more than ${MAX_MESSAGES} messages of type "${type}" in ${WINDOW_MS / 1000} s`)
      return count <= MAX_MESSAGES
    },

    /** @param {number} sender has ended */
    left (sender) {
      const count = counts.get(sender) ?? 0
      counts.delete(sender)
      windows.delete(sender)
      if (count > 1) tell(sender, `${nameOf(sender)} has sent ${count} messages that were dropped`)
    }
  }

  /** @param {number} sender @param {string} reason */
  function noteInvalid (sender, reason) {
    const count = counts.get(sender) ?? 0
    counts.set(sender, count + 1)
    if (count === 0) tell(sender, `${nameOf(sender)} has sent what was dropped: ${reason}`)
  }
}
