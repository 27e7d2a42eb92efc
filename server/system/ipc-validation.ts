/**
 * As many messages of one type as a worker may send in a while; an app that opens and closes servers all the time stays
 * far below.
 */
const MAX_MESSAGES = 2000
const WINDOW_MS = 10_000

/**
 * What processes send that nobody can make sense of, or too much of: told at the first time, counted from then on, and
 * told once more when the process has gone.
 */
export function createIpcValidation (
  { tell, now = () => performance.now(), nameOf = (worker) => `worker ${worker}` }: {
    tell: (sender: number, message: string) => void,
    now?: () => number,
    nameOf?: (sender: number) => string
  }
) {
  /** by sender */
  const counts: Map<number, number> = new Map()
  /** by sender */
  const windows: Map<number, { since: number, messages: Map<string, number> }> = new Map()

  return {
    hear: noteInvalid,

    /** `type`: of one more message. Returns whether it may be listened to. */
    admit (sender: number, type: string): boolean {
      let window = windows.get(sender)
      if (!window || now() - window.since >= WINDOW_MS)
        windows.set(sender, window = { since: now(), messages: new Map() })
      const count = (window.messages.get(type) ?? 0) + 1
      window.messages.set(type, count)
      if (count > MAX_MESSAGES)
        noteInvalid(sender, `more than ${MAX_MESSAGES} messages of type "${type}" in ${WINDOW_MS / 1000} s`)
      return count <= MAX_MESSAGES
    },

    /** `sender`: has ended */
    left (sender: number) {
      const count = counts.get(sender) ?? 0
      counts.delete(sender)
      windows.delete(sender)
      if (count > 1) tell(sender, `${nameOf(sender)} has sent ${count} messages that were dropped`)
    }
  }

  function noteInvalid (sender: number, reason: string) {
    const count = counts.get(sender) ?? 0
    counts.set(sender, count + 1)
    if (count === 0) tell(sender, `${nameOf(sender)} has sent what was dropped: ${reason}`)
  }
}
