import { namesIn, textIn } from '../system/proc.ts'
import type { Boot } from '../lifecycle/boot-room.ts'
import type { Cluster } from './cluster.ts'

/** What the threads of a process have had of the CPUs, and how long they have waited for one, in ms. */
type CpuTime = { cpuMs: number, queuedMs: number }

/**
 * Measures how long starting workers have waited for a CPU: on a busy machine no worker is ended for time that others
 * used.
 */
export function createBoots (cluster: Pick<Cluster, 'handles' | 'on'>,
  { now = () => performance.now(), measure = cpuTimeOf } = {})
{
  /** by worker; `first`: how long it had waited at its first deadline */
  const begun: Map<number, { first: number, at: number, queuedMs: number }> = new Map()
  cluster.on('left', (worker) => begun.delete(worker))

  return {
    /** `worker`: whose ready deadline is set */
    begin (worker: number) {
      const { queuedMs } = timeOf(worker)
      begun.set(worker, { first: begun.get(worker)?.first ?? queuedMs, at: now(), queuedMs })
    },

    /** @returns ms since `begin` in which it wanted a CPU and had none; 0 where the system does not tell */
    starvedMs (worker: number): number {
      const since = begun.get(worker)
      if (!since) return 0
      // Each waiting thread counts, so the sum may exceed the time that has passed.
      return Math.round(Math.max(0, Math.min(now() - since.at, timeOf(worker).queuedMs - since.queuedMs)))
    },

    /** `worker`: that is ready now. Returns null where the system does not tell. */
    costOf (worker: number): Boot | null {
      const { cpuMs, queuedMs } = timeOf(worker)
      return cpuMs === 0
        ? null
        : { cpuMs: Math.round(cpuMs), starvedMs: Math.round(Math.max(0, queuedMs - (begun.get(worker)?.first ?? 0))) }
    }
  }

  function timeOf (worker: number) {
    return measure(cluster.handles.get(worker)?.identity?.pid)
  }
}

/**
 * The sum over all threads of a process: /proc/<pid>/task/<tid>/schedstat, first and second field, in ns. Returns 0
 * where the system does not tell.
 */
export function cpuTimeOf (pid: number | null | undefined): CpuTime {
  const folder = `/proc/${pid}/task`
  const sum = { cpuMs: 0, queuedMs: 0 }
  for (const thread of namesIn(folder)) {
    const [cpuNs, queuedNs] = textIn(`${folder}/${thread}/schedstat`).split(' ')
    sum.cpuMs += Number(cpuNs) / 1e6 || 0
    sum.queuedMs += Number(queuedNs) / 1e6 || 0
  }
  return sum
}
