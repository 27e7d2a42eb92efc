import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { attempt } from '../errors.ts'

const HEAP_LIMIT =
  /FATAL ERROR: .*(heap out of memory|invalid size error|Committing semi space failed|Reached heap limit)/i
/** How other languages say it. */
const OF_LANGUAGES =
  /^fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)|java\.lang\.OutOfMemoryError|^(?:numpy\S*)?MemoryError\b|^NoMemoryError\b|^std::bad_alloc\b|^System\.OutOfMemoryException\b|memory allocation of \d+ bytes failed|Allowed memory size of \d+ bytes exhausted|^RangeError: Out of memory|Fatal (?:JavaScript|process) out of memory|^Out of memory\.?$/
const MAX_KERNEL_LINES = 20_000

export function createOutOfMemory (
  { read = (file) => readFileSync(file, 'utf8'), killedByKernel = inKernelLog }: { read?: (file: string) => string,
    killedByKernel?: (pid: number) => boolean | null } = {}
) {
  const counters = counterFiles(read)
  let before = readCounts()

  /** `stderr`: its last lines; `isOutOfMemory`: so says its own control group */
  return function lackedMemory (
    { pid, code, signal, stderr, isOutOfMemory = false }: { pid: number | null, code: number | null,
      signal: string | null, stderr: string[], isOutOfMemory?: boolean }
  ): 'heap-out-of-memory' | 'kernel-out-of-memory' | null {
    // V8 aborts; from a shell or a container that arrives as an exit code.
    if ((signal === 'SIGABRT' || code === 134) && stderr.some((line) => HEAP_LIMIT.test(line.slice(0, 500))))
      return 'heap-out-of-memory'
    if (signal !== 'SIGKILL' && code !== 137) return null
    const after = readCounts()
    const { group, system } = { group: after.group > before.group, system: after.system > before.system }
    before = after
    if (group || isOutOfMemory) return 'kernel-out-of-memory'
    // The kernel has killed some process of this machine, and only its log says which.
    return system && pid !== null && killedByKernel(pid) ? 'kernel-out-of-memory' : null
  }

  function readCounts () {
    return { group: counters.reduce((sum, file) => sum + countIn(file), 0), system: countIn('/proc/vmstat') }
  }

  /** @returns how many were killed so far; 0 if that is unknown */
  function countIn (file: string): number {
    return attempt(() => Number(/^oom_kill (\d+)$/m.exec(read(file))?.[1] ?? 0), 0)
  }
}

/** `words`: the last ones of a program */
export function lacksMemory (words: string): boolean {
  return OF_LANGUAGES.test(words.slice(0, 500))
}

/** The counters of this process's control group, version 2 or 1. */
function counterFiles (read: (file: string) => string): string[] {
  return attempt(() =>
    read('/proc/self/cgroup').split('\n').flatMap((line) => {
      const [, controllers, folder] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
      if (controllers === '') return [`/sys/fs/cgroup${folder === '/' ? '' : folder}/memory.events`]
      return controllers?.split(',').includes('memory')
        ? [`/sys/fs/cgroup/memory${folder === '/' ? '' : folder}/memory.oom_control`]
        : []
    }), [])
}

/** Null: the log may not be read */
function inKernelLog (pid: number): boolean | null {
  let log
  try {
    log = openSync('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    // EACCES, ENOENT: often only root may read it.
    return null
  }
  const pattern = new RegExp(`Killed process ${pid} `)
  const record = Buffer.alloc(8192)
  try {
    for (let lines = 0; lines < MAX_KERNEL_LINES; lines++) {
      if (pattern.test(record.toString('latin1', 0, readSync(log, record)))) return true
    }
    return false
  } catch {
    // EAGAIN: that was all.
    return false
  } finally {
    closeSync(log)
  }
}
