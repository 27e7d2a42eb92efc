import { textIn } from './proc.ts'

/** Of a master to its keeper. To be woken is most of what both cost that rest. */
export const BEAT_MS = 2000
const MIN_TICK_MS = 500
const MAX_TICK_MS = 1000

/** @returns how often it is looked whether somebody is silent for so long, ms */
export function tickFor (timeoutMs: number): number {
  return Math.min(Math.max(timeoutMs / 10, MIN_TICK_MS), MAX_TICK_MS)
}

/**
 * How long each worker has not been heard, in time in which it could have been. A clock that goes on while the machine
 * sleeps, while this process is stopped or busy, or while the worker waits for a CPU would condemn workers that are
 * well, and all of them in the same moment. So time counts only as far as the master itself was awake to see it pass,
 * and what the worker has spent waiting for a CPU is taken off. A keeper listens to its masters in the same way, by
 * their pids.
 */
export function createHeartbeat ({ timeoutMs: wantedMs, tickMs = tickFor(wantedMs), queuedMs = () => 0 }: {
  timeoutMs: number,
  /** how often `tick` is called */
  tickMs?: number,
  /** how long a worker has waited for a CPU since it began */
  queuedMs?: (worker: number) => number
}) {
  let timeoutMs = wantedMs
  let maxStepMs = 2 * tickMs
  /** by worker, those that are watched */
  const watched: Map<number, { heardAt: number, queuedBefore: number | null, isSilent: boolean }> = new Map()
  const excused: Set<number> = new Set()
  /** Ms in which the master was awake. */
  let awake = 0
  let lastTickAt: number | null = null

  return {
    /**
     * `at`: monotonic, ms; `workers`: those that should answer; others are forgotten, unless they are silent. Returns
     * those that have just become silent.
     */
    tick (at: number, workers: number[]): { worker: number, silentMs: number }[] {
      // Late: the master was not awake either, and what was said meanwhile is still unread.
      awake += Math.min(at - (lastTickAt ?? at), maxStepMs)
      lastTickAt = at
      for (const [worker, { isSilent }] of watched) {
        if (!isSilent && !workers.includes(worker)) watched.delete(worker)
      }
      return workers.flatMap((worker) => {
        const silentMs = silenceOf(worker)
        return silentMs === null ? [] : [{ worker, silentMs }]
      })
    },

    /** Tells whether it had been silent */
    heard (worker: number): boolean {
      const entry = watched.get(worker)
      if (!entry) return false
      watched.set(worker, newEntry())
      return entry.isSilent
    },

    /** Tells whether it still is, since `tick` has said so */
    isSilent: (worker: number): boolean => watched.get(worker)?.isSilent === true,

    forget (worker: number) {
      watched.delete(worker)
      excused.delete(worker)
    },

    /** `ms`: the time that counts from now on, also for those that are silent already */
    setTimeoutMs (ms: number) {
      timeoutMs = ms
      maxStepMs = 2 * tickFor(ms)
    },

    /** `isExcused`: it is known why it does not answer */
    excuse (worker: number, isExcused: boolean) {
      if (isExcused) excused.add(worker)
      else excused.delete(worker)
      if (watched.has(worker)) watched.set(worker, newEntry())
    }
  }

  function newEntry () {
    return { heardAt: awake, queuedBefore: null as number | null, isSilent: false }
  }

  /** @returns ms, if that is too long */
  function silenceOf (worker: number): number | null {
    const entry = watched.get(worker)
    if (!entry || excused.has(worker)) {
      watched.set(worker, newEntry())
      return null
    }
    const sinceMs = awake - entry.heardAt
    if (entry.isSilent || sinceMs < timeoutMs / 2) return null
    // The first half needs no looking up, which would cost something for every worker all the time.
    entry.queuedBefore ??= queuedMs(worker)
    if (sinceMs < timeoutMs) return null
    const silentMs = Math.round(sinceMs - Math.max(0, queuedMs(worker) - entry.queuedBefore))
    if (silentMs < timeoutMs) return null
    entry.isSilent = true
    return silentMs
  }
}

/**
 * How long the main thread of a process has waited for a CPU: proc_pid_schedstat, second field, in ns.
 * @returns ms, 0 where the system does not tell
 */
export function queuedMs (pid: number | undefined): number {
  return Number(textIn(`/proc/${pid}/schedstat`).split(' ')[1]) / 1e6 || 0
}
