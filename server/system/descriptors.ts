import { readFileSync } from 'node:fs'
import { attempt } from '../errors.ts'

/**
 * How many descriptors a process may have open (getrlimit(2), RLIMIT_NOFILE). `file`: see proc_pid_limits(5); without
 * it, of this process. Returns Infinity where nobody tells.
 */
export function descriptorLimit (file: string = '/proc/self/limits'): number {
  // ENOENT: not Linux.
  return attempt(() => Number(/^Max open files\s+(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1] ?? Infinity), Infinity)
}
