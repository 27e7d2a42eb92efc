import { oneLine } from './one-line.ts'
import { namesIn, textIn } from './proc.ts'
import { identifyProcess, type ProcessIdentity } from './process-identity.ts'

/** `name`: as the kernel has it, up to 15 bytes, on one line */
export type ChildProcess = ProcessIdentity & { name: string }

const MAX_CHILDREN = 20
const MAX_THREADS = 200

/**
 * What a process has started itself, see proc_pid_task_children(5). `pid`: of one that has not been waited for yet.
 * Returns the first 20; none where the system does not tell.
 */
export function listChildren (pid: number): ChildProcess[] {
  const pids = childrenOf(pid, { maxThreads: MAX_THREADS }).slice(0, MAX_CHILDREN)
  return pids.map((each) => ({ ...identifyProcess(each), name: oneLine(textIn(`/proc/${each}/comm`)).trim() || '?' }))
}

/**
 * @returns those that have ended but were not waited for included; none where the kernel was built without
 * CONFIG_PROC_CHILDREN
 */
export function childrenOf (pid: number, { maxThreads = Infinity }: { maxThreads?: number } = {}): number[] {
  const threads = namesIn(`/proc/${pid}/task`).slice(0, maxThreads)
  return threads.flatMap((thread) =>
    textIn(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number)
  )
}
