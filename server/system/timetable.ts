/** A changed clock or a machine that slept is noticed within this time. */
const MAX_WAIT_MS = 60_000
/** A clock that is only slowed down, or set by less, is none that was set back. */
const MIN_JUMP_MS = 1000

/** when something is due; without `cron` never */
export type Times = { cron?: string, timeZone?: string }
/** `at`: ISO 8601 */
export type Due = { cron: string, at: string }
type Entry = { cron: string, timeZone: string | undefined, next: Date | null }

/**
 * Knows when each thing of a list is due next by its cron expression, and says when that time has come. However late
 * that is noticed, it is due once: nothing is made up for times in between. If the clock is set back, a time that comes
 * twice counts once; but nothing waits for longer than it does anyway.
 */
export function createTimetable (
  { nextRun, onDue, onSetBack = () => {}, now = Date.now, passed = () => performance.now(), timers = globalThis }: {
    nextRun: (cron: string, after: Date, timeZone: string | undefined) => Date | null,
    onDue: (name: string, at: Date) => void,
    /** they are planned anew, as the clock was set back */
    onSetBack?: (names: string[], backMs: number) => void,
    /** wall clock, ms */
    now?: () => number,
    /** monotonic clock, ms */
    passed?: () => number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
  }
) {
  let entries: Map<string, Entry> = new Map()
  let timer: NodeJS.Timeout | undefined
  /** How far the clock is ahead of the time that has passed. */
  let aheadMs = now() - passed()

  return {
    /** @returns ISO 8601; null: never */
    nextAt: (name: string): string | null => entries.get(name)?.next?.toISOString() ?? null,

    /**
     * Plans these and no others, by name. One whose times have not changed keeps its place.
     * @param missed when they were due next by the timetable of the master before
     */
    plan (list: Readonly<Record<string, Times>>, missed: Readonly<Record<string, Due>> = {}) {
      lookAtClock()
      const before = entries
      entries = new Map()
      for (const [name, { cron, timeZone }] of Object.entries(list)) {
        if (cron !== undefined)
          entries.set(name, { cron, timeZone, next: nextOf({ cron, timeZone }, before.get(name), missed[name]) })
      }
      waitForNext()
    },

    /** @returns for the next master */
    memory: (): Record<string, Due> =>
      Object.fromEntries(
        [...entries].flatMap(([name, { cron, next }]) => next ? [[name, { cron, at: next.toISOString() }]] : [])
      ),

    close () {
      timers.clearTimeout(timer)
    }
  }

  function nextOf ({ cron, timeZone }: { cron: string, timeZone: string | undefined }, before: Entry | undefined,
    missed: Due | undefined)
  {
    if (before?.cron === cron && before.timeZone === timeZone) return before.next
    if (missed?.cron === cron && Date.parse(missed.at) <= now()) return new Date(missed.at)
    return nextRun(cron, new Date(now()), timeZone)
  }

  function waitForNext () {
    timers.clearTimeout(timer)
    const times = [...entries.values()].flatMap(({ next }) => next ? [next.getTime()] : [])
    if (times.length === 0) return
    timer = timers.setTimeout(tellDue, Math.min(MAX_WAIT_MS, Math.max(0, Math.min(...times) - now())))
    timer?.unref?.()
  }

  function lookAtClock () {
    const beforeMs = aheadMs
    aheadMs = now() - passed()
    const backMs = beforeMs - aheadMs
    if (backMs < MIN_JUMP_MS) return
    const anew = [...entries].filter(([, entry]) => planAgain(entry, backMs)).map(([name]) => name)
    if (anew.length > 0) onSetBack(anew, backMs)
  }

  /** False: what would come again has been due already */
  function planAgain (entry: Entry, backMs: number): boolean {
    const next = nextRun(entry.cron, new Date(now()), entry.timeZone)
    if (next === null || entry.next === null || next >= entry.next) return false
    const after = nextRun(entry.cron, next, entry.timeZone)
    if (after !== null && after.getTime() - next.getTime() > backMs) return false
    entry.next = next
    return true
  }

  function tellDue () {
    lookAtClock()
    // A timer may fire a moment early; the same time would then be planned again.
    const due = [...entries].filter(([, { next }]) => next !== null && next.getTime() <= now())
    for (const [name, entry] of due) {
      const at = entry.next as Date
      entry.next = nextRun(entry.cron, new Date(now()), entry.timeZone)
      onDue(name, at)
    }
    waitForNext()
  }
}
