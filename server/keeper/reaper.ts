import { childrenOf } from '../system/children.ts'
import { loadPosix } from '../system/posix.ts'

/**
 * Takes in the processes that a dead master or a finished daemon of the app leaves behind, so that none stays a zombie
 * (as PID 1 has to, see wait(2)) and how a worker ended is known even after its master. Node itself waits for its own
 * children alone; where the native calls cannot be had, orphans go to the system's init as ever.
 * @returns whether it does
 */
export function createReaper ({ isOurs, onReaped, say }: {
  /** one that node waits for */
  isOurs: (pid: number) => boolean,
  onReaped: (exit: { pid: number, code: number | null, signal: string | null }) => void,
  say: (line: string) => void
}): boolean {
  const isInit = process.pid === 1
  const posix = loadPosix()
  if (!posix && isInit)
    say('this is process 1, and without the optional package koffi it cannot wait for orphans: they stay as zombies')
  if (!posix || !(isInit || posix.adoptOrphans())) return false
  process.on('SIGCHLD', () => {
    for (const pid of childrenOf(process.pid)) {
      if (isOurs(pid)) continue
      const exit = posix.wait(pid)
      if (exit) onReaped({ pid, ...exit })
    }
  })
  return true
}
