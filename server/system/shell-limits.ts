import { attempt } from '../errors.ts'
import { loadPosix } from './posix.ts'
import { statOf, textIn } from './proc.ts'

/** As proc_pid_limits(5) names those of ulimit, with their numbers in getrlimit(2). */
const RESOURCES = Object.freeze({ 'cpu time': 0, 'file size': 1, 'data size': 2, 'stack size': 3, 'core file size': 4,
  processes: 6, 'open files': 7, 'locked memory': 8, 'address space': 9 })
const OPEN_FILES = 'open files'
const UNLIMITED = 'unlimited'
const MAX_UMASK = 0o777
const PARENT = 4
const SESSION = 6

/**
 * Reads the umask and the soft limits of a process. `pid`: 'self': as the shell has set them that has called this
 * command.
 * @returns for SHELL_VARIABLE; undefined where nobody tells
 */
export function describeShell (pid: number | 'self' = 'self'): string | undefined {
  const umask = /^Umask:\s*(\d+)/m.exec(textIn(`/proc/${pid}/status`))?.[1]
  const soft = softLimits(pid)
  // Node raises this one of its own, and a service manager has another one than its services.
  const parent = pid === 'self' ? callerOf() : null
  if (pid === 'self') delete soft[OPEN_FILES]
  if (parent !== null && softLimits(parent)[OPEN_FILES] !== undefined) soft[OPEN_FILES] = softLimits(parent)[OPEN_FILES]
  return umask === undefined ? undefined : JSON.stringify({ umask, soft })
}

/** Starts a process of the app as its shell would. `shell`: of SHELL_VARIABLE; `start`: at once. */
export function startAsShell<T> (shell: string | undefined, start: () => T): T {
  const { umask } = readShell(shell)
  if (umask === null) return start()
  const own = process.umask(umask)
  try {
    return start()
  } finally {
    process.umask(own)
  }
}

/** Sets the soft limits; the hard ones stay, which no soft one is above. `pid`: of its process; default: this one. */
export function limitAsShell (shell: string | undefined, pid: number = 0) {
  const { soft } = readShell(shell)
  for (const [name, resource] of Object.entries(RESOURCES)) {
    const limit = soft[name]
    if (limit === UNLIMITED) loadPosix()?.limitSoftly(pid, resource, Infinity)
    else if (Number.isSafeInteger(limit) && Number(limit) >= 0) loadPosix()?.limitSoftly(pid, resource, Number(limit))
  }
}

function readShell (shell: string | undefined): { umask: number | null, soft: Record<string, unknown> } {
  // SyntaxError: somebody else has set it.
  return attempt(() => {
    const { umask, soft } = Object(JSON.parse(shell ?? 'null'))
    const mask = parseInt(umask, 8)
    return { umask: mask >= 0 && mask <= MAX_UMASK ? mask : null, soft: Object(soft) }
  }, { umask: null, soft: {} })
}

function softLimits (pid: number | 'self'): Record<string, number | string> {
  const text = textIn(`/proc/${pid}/limits`)
  return Object.fromEntries(Object.keys(RESOURCES).flatMap((name) => {
    const soft = new RegExp(`^Max ${name}\\s+(\\d+|${UNLIMITED})\\s`, 'm').exec(text)?.[1]
    return soft === undefined ? [] : [[name, soft === UNLIMITED ? soft : Number(soft)]]
  }))
}

/** @returns the process that has called this command from the same session */
function callerOf (): number | null {
  const own = statOf('self')
  const parent = statOf(own?.[PARENT] ?? '')
  return own && parent && own[SESSION] === parent[SESSION] ? Number(own[PARENT]) : null
}
