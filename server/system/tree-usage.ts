import { readdirSync, statSync } from 'node:fs'
import { attempt } from '../errors.ts'
import { childrenOf } from './children.ts'
import { statOf, textIn } from './proc.ts'

/** `cpuMs`: since the tree began, with that of those that have ended */
type Usage = { rssBytes: number, cpuMs: number, processes: number, threads: number, descriptors: number }
/** in bytes */
type ProcessUsage = { resident: number, shared: number, cpuMs: number, threads: number, descriptors: number }

/** Fields of proc_pid_stat(5). */
const CPU_FIELDS = [14, 15, 16, 17]
const THREADS_FIELD = 20
/** USER_HZ, whatever the kernel's own clock is. */
const MS_PER_TICK = 10
/**
 * What processes share with each other is looked up this often: the kernel walks through all of their memory for it.
 */
const SHARE_EVERY_MS = 60_000
/** Less than a thousandth of the time. */
const SHARE_REST = 1000

/** What a program and all that it has started take, by /proc. `parts`: monotonic, ms. */
export function createTreeUsage ({ now = () => performance.now() }: { now?: () => number } = {}) {
  /** How much of the memory that processes have of their own is left if each page counts once. */
  let ownShare = 1
  let last = { at: -Infinity, costMs: 0, pids: '' }

  return {
    /** Null: all have ended, or the system does not tell */
    measure (pids: readonly number[]): Usage | null {
      const all = pids.flatMap((pid) => usageOf(pid) ?? [])
      if (all.length === 0) return null
      const sum = (valueOf: (each: ProcessUsage) => number) => all.reduce((total, each) => total + valueOf(each), 0)
      const own = sum(({ resident, shared }) => resident - shared)
      if (all.length > 1) lookAtShares(pids)
      return {
        rssBytes: Math.round(all.length === 1 ? all[0].resident : Math.max(...all.map(({ shared }) =>
          shared
        )) + own * ownShare),
        cpuMs: sum(({ cpuMs }) => cpuMs),
        processes: all.length,
        threads: sum(({ threads }) => threads),
        descriptors: sum(({ descriptors }) => descriptors)
      }
    }
  }

  /** Forked processes have pages in common until one of them writes there. */
  function lookAtShares (pids: readonly number[]) {
    const at = now()
    const names = pids.join()
    if (at < last.at + Math.max(SHARE_REST * last.costMs, names === last.pids ? SHARE_EVERY_MS : 0)) return
    const texts = pids.map((pid) => textIn(`/proc/${pid}/smaps_rollup`))
    const [once, each] = [/^Pss_Anon:\s+(\d+)/m, /^Anonymous:\s+(\d+)/m].map((field) =>
      texts.reduce((sum, text) => sum + Number(field.exec(text)?.[1] ?? 0), 0)
    )
    ownShare = once > 0 && each > 0 ? Math.min(1, once / each) : 1
    last = { at, costMs: now() - at, pids: names }
  }
}

/** @returns it and all that it has started */
export function pidsOf (pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(pidsOf)]
}

function usageOf (pid: number): ProcessUsage | null {
  const fields = statOf(pid)
  if (fields === null) return null
  const [, resident, shared] = textIn(`/proc/${pid}/statm`).split(' ').map((pages) => Number(pages) * pageBytes())
  return { resident: resident || 0, shared: shared || 0,
    cpuMs: CPU_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0) * MS_PER_TICK,
    threads: Number(fields[THREADS_FIELD]), descriptors: countDescriptors(pid) }
}

let knownPageBytes: number | undefined

/** Some kernels for arm64 have larger ones. */
function pageBytes () {
  knownPageBytes ??= Number(/^KernelPageSize:\s+(\d+)/m.exec(textIn('/proc/self/smaps'))?.[1] ?? 4) * 1024
  return knownPageBytes
}

function countDescriptors (pid: number): number {
  const folder = `/proc/${pid}/fd`
  // Since Linux 6.2 the size of the folder is their count. ENOENT: it has ended; EACCES: it is another user's.
  return attempt(() => statSync(folder).size || readdirSync(folder).length, 0)
}
