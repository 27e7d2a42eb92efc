import type { DeadlineKind } from '../lifecycle/state.ts'

// setTimeout fires at once for a longer time.
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** Named timers: setting one again starts it anew, a cleared one never fires. */
export function createDeadlines ({ onPassed }: { onPassed: (deadline: DeadlineKind, id: number) => void }) {
  const timers: Map<string, NodeJS.Timeout> = new Map()

  return { set (deadline: DeadlineKind, id: number, ms: number) {
    const key = `${deadline}:${id}`
    clearTimeout(timers.get(key))
    timers.set(key, setTimeout(() => {
      timers.delete(key)
      onPassed(deadline, id)
    }, Math.min(ms, MAX_TIMEOUT_MS)))
  }, clear (deadline: DeadlineKind, id: number) {
    const key = `${deadline}:${id}`
    clearTimeout(timers.get(key))
    timers.delete(key)
  }, clearAll () {
    for (const timer of timers.values()) clearTimeout(timer)
    timers.clear()
  } }
}
