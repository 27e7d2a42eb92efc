import { oneLine } from './one-line.js'
import { namesIn, textIn } from './proc.js'
import { identifyProcess } from './process-identity.js'

/** @typedef {import('./process-identity.js').ProcessIdentity & { name: string }} ChildProcess  `name`: as the kernel has it, up to 15 bytes, on one line */

const MAX_CHILDREN = 20
const MAX_THREADS = 200

/**
 * What a process has started itself, see proc_pid_task_children(5).
 * @param {number} pid of one that has not been waited for yet
 * @returns {ChildProcess[]} the first 20; none where the system does not tell
 */
export function listChildren (pid) {
  const pids = childrenOf(pid, { maxThreads: MAX_THREADS }).slice(0, MAX_CHILDREN)
  return pids.map((each) => ({ ...identifyProcess(each), name: oneLine(textIn(`/proc/${each}/comm`)).trim() || '?' }))
}

/**
 * @param {number} pid @param {{ maxThreads?: number }} [options]
 * @returns {number[]} those that have ended but were not waited for included; none where the kernel was built without CONFIG_PROC_CHILDREN
 */
export function childrenOf (pid, { maxThreads = Infinity } = {}) {
  const threads = namesIn(`/proc/${pid}/task`).slice(0, maxThreads)
  return threads.flatMap((thread) => textIn(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number))
}
