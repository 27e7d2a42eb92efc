import { namesIn, textIn } from '../system/proc.js'

/** @typedef {ReturnType<typeof createBoots>} Boots */
/** What the threads of a process have had of the CPUs, and how long they have waited for one, in ms. @typedef {{ cpuMs: number, queuedMs: number }} CpuTime */

/**
 * Measures how long starting workers have waited for a CPU: on a busy machine no worker is ended for time that others used.
 * @param {object} parts
 * @param {(worker: number) => number | null | undefined} parts.pidOf
 * @param {() => number} parts.now monotonic, ms
 * @param {typeof cpuTimeOf} [parts.measure]
 */
export function createBoots ({ pidOf, now, measure = cpuTimeOf }) {
  /** @type {Map<number, { first: number, at: number, queuedMs: number }>} by worker; `first`: how long it had waited at its first deadline */
  const begun = new Map()

  return {
    /** @param {number} worker whose ready deadline is set */
    begin (worker) {
      const { queuedMs } = measure(pidOf(worker))
      begun.set(worker, { first: begun.get(worker)?.first ?? queuedMs, at: now(), queuedMs })
    },

    /** @param {number} worker @returns {number} ms since `begin` in which it wanted a CPU and had none; 0 where the system does not tell */
    starvedMs (worker) {
      const since = begun.get(worker)
      if (!since) return 0
      // Each waiting thread counts, so the sum may exceed the time that has passed.
      return Math.round(Math.max(0, Math.min(now() - since.at, measure(pidOf(worker)).queuedMs - since.queuedMs)))
    },

    /** @param {number} worker that is ready now @returns {import('../lifecycle/boot-room.js').Boot | null} null where the system does not tell */
    costOf (worker) {
      const { cpuMs, queuedMs } = measure(pidOf(worker))
      return cpuMs === 0 ? null : { cpuMs: Math.round(cpuMs), starvedMs: Math.round(Math.max(0, queuedMs - (begun.get(worker)?.first ?? 0))) }
    },

    /** @param {number} worker */
    left (worker) { begun.delete(worker) }
  }
}

/**
 * The sum over all threads of a process: /proc/<pid>/task/<tid>/schedstat, first and second field, in ns.
 * @param {number | null | undefined} pid @returns {CpuTime} 0 where the system does not tell
 */
export function cpuTimeOf (pid) {
  const folder = `/proc/${pid}/task`
  const sum = { cpuMs: 0, queuedMs: 0 }
  for (const thread of namesIn(folder)) {
    const [cpuNs, queuedNs] = textIn(`${folder}/${thread}/schedstat`).split(' ')
    sum.cpuMs += Number(cpuNs) / 1e6 || 0
    sum.queuedMs += Number(queuedNs) / 1e6 || 0
  }
  return sum
}
