import { writeSync } from 'node:fs'
import { constants } from 'node:os'
import { createInterface } from 'node:readline'
import { oneLine } from '../system/one-line.ts'
import { loadPosix } from '../system/posix.ts'
import { ownerOfProcess } from '../system/process-owner.ts'
import { loadSystemCalls } from './system-calls.ts'
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'

/**
 * Between a command of root and the same command as another user, whose code may speak for the latter: root does no
 * more than that user could do without Yama, and what whoever has called it wants.
 */
export type LineToRoot = NonNullable<ReturnType<typeof lineToRoot>>

const [ANSWERS, REQUESTS] = [3, 4]
/** Says that there is such a line; commands of others do not get it. */
export const ROOT_LINE = 'CLUSTERDECK_ROOT_LINE'
const { EIO, EPERM } = constants.errno

/**
 * A copy of a socket on which a process of one user listens. Root would get each descriptor of each process.
 * @returns below 0: an error number
 */
export function copyListener ({ pid, fd, user }: { pid: number, fd: number, user: number }): number {
  const [calls, posix] = [loadSystemCalls(), loadPosix()]
  const isTheirs = () => {
    const owner = ownerOfProcess(pid)
    return owner?.user === user && owner.isOpen
  }
  const copy = calls?.descriptorOf(pid, fd, isTheirs) ?? -EIO
  // What has executed a program with more rights meanwhile has no such socket at that place.
  if (copy < 0 || posix?.isListening(copy)) return copy
  calls?.close(copy)
  return -EPERM
}

/** The end of root. `stop`: ends what is taken over; why it could not. */
export function openRootLine ({ user, stop }: { user: number, stop: () => Promise<string | null> }) {
  const calls = loadSystemCalls()
  const [own, theirs] = calls?.socketPair() ?? []
  if (!calls || own === undefined || theirs === undefined) return null
  return {
    theirs,

    /** `child`: with `theirs` and a pipe behind its standard streams */
    serve (child: ChildProcess) {
      calls.close(theirs)
      createInterface(child.stdio[REQUESTS] as Readable).on('line', async (line) => {
        if (line === 'stop') return calls.send(own, JSON.stringify({ failed: await stop() }))
        const [pid, fd] = line.split(' ').map((word) => Number(word) | 0)
        const copy = copyListener({ pid, fd, user })
        calls.send(own, JSON.stringify({ errno: copy }), copy < 0 ? undefined : copy)
        if (copy >= 0) calls.close(copy)
      })
    },

    close () {
      calls.close(own)
    }
  }
}

/** The other end. Returns null: it was not root who called this command. */
export function lineToRoot (env: Record<string, string | undefined>) {
  if (env[ROOT_LINE] === undefined) return null
  /** Waits for the answer. */
  const ask = (request: string): { errno?: number, failed?: string | null, descriptor?: number | null } => {
    writeSync(REQUESTS, `${request}\n`)
    loadPosix()?.lookAtUnix(ANSWERS, -1)
    const { text, descriptor } = loadSystemCalls()?.take(ANSWERS) ??
      { text: '{"failed":"root has gone"}', descriptor: null }
    return { ...JSON.parse(text), descriptor }
  }
  return {
    /** @returns below 0: an error number */
    copyOf (pid: number, fd: number): number {
      const { errno = -EIO, descriptor } = ask(`${pid} ${fd}`)
      return descriptor ?? errno
    },

    /** @returns why it could not be stopped */
    stop: (): string | null => oneLine(ask('stop').failed ?? '') || null
  }
}
