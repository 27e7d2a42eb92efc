import { readdirSync, readFileSync } from 'node:fs'
import { oneLine } from './one-line.js'
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
  const threads = readOr(() => readdirSync(`/proc/${pid}/task`), []).slice(0, MAX_THREADS)
  const pids = threads.flatMap((thread) => readOr(() => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'), '').split(' ').filter(Boolean))
  return pids.slice(0, MAX_CHILDREN).map((each) => ({ ...identifyProcess(Number(each)), name: oneLine(readOr(() => readFileSync(`/proc/${each}/comm`, 'utf8'), '')).trim() || '?' }))
}

/** @template T @param {() => T} read @param {T} otherwise @returns {T} */
function readOr (read, otherwise) {
  try {
    return read()
  } catch {
    // ENOENT, ESRCH: it has ended, or this is not Linux. EACCES: it is not ours to look at.
    return otherwise
  }
}
