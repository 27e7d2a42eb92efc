import { constants } from 'node:os'
import path from 'node:path'
import { getSystemErrorName } from 'node:util'
import { DeckError } from '../errors.ts'
import { socketsOf } from '../system/open-sockets.ts'
import { placeText } from '../system/place-text.ts'
import { loadPosix, type Instruction } from '../system/posix.ts'
import { linkAt, namesIn, socketAt, textIn } from '../system/proc.ts'
import { ownerOfProcess } from '../system/process-owner.ts'
import { userId } from '../system/user.ts'
import { absolutePath, countConnections, listenersOf, type Listener } from './listening-sockets.ts'
import { copyListener, type LineToRoot } from './root-line.ts'
import { loadSystemCalls } from './system-calls.ts'

export type Takeover = ReturnType<typeof takePlaces>
type Place = {
  host?: string,
  port?: number,
  /** absolute */
  path?: string,
  /** of a socket that serves there: one beside those of the program, or a copy of its own */
  fd: number,
  /** of that one among all that share the port; null: it is a copy */
  index: number | null
}

// linux/bpf_common.h; what is loaded from SKF_AD_OFF + SKF_AD_RANDOM is a random number.
const LOAD = 0x20
const MODULO = 0x94
const RETURN = 0x06
const RETURN_LOADED = 0x16
const RANDOM = 0xfffff000 + 56
/** For this long at most, new workers get some of the connections before they are meant to; they serve these. */
const LOOK_EVERY_MS = 5
const { EACCES, ENOSYS, EPERM } = constants.errno
const YAMA = '/proc/sys/kernel/yama/ptrace_scope'

/**
 * Gets sockets on all addresses where a program serves. On a TCP port it is another socket, which shares the port with
 * those of the program, so that the kernel can be told which of them gets new connections. Where that cannot be, it is
 * a copy of theirs. `all`: processes of the program; those of other users do not count; `except`: not Unix
 * sockets in this folder; `root`: copies what Yama keeps this user from copying.
 * @throws {DeckError} not-possible
 */
export function takePlaces (all: readonly number[],
  { except, root = null }: { except?: string, root?: LineToRoot | null } = {})
{
  const user = userId()
  const pids = all.filter((pid) => ownerOfProcess(pid)?.user === user)
  const [calls, posix] = [loadSystemCalls(), loadPosix()]
  if (!calls || !posix)
    throw new DeckError('not-possible',
      'the sockets of a running program can be taken over on Linux alone, on x86-64 and arm64, with the package koffi, which npm installs where it can')
  const found = listenersIn(pids).filter(({ pid, listener }) =>
    except === undefined || listener.path === undefined || path.dirname(absolutePath(pid, listener.path)) !== except
  )
  const descriptors: number[] = []
  let timer: NodeJS.Timeout | undefined
  const close = () => {
    clearInterval(timer)
    for (const fd of descriptors.splice(0)) calls.close(fd)
  }
  try {
    const copies = found.map(({ pid, fd, listener }) => ({ pid, listener, copy: kept(copyOf(pid, fd)) }))
    /** By address. */
    const places: Map<string, Place> = new Map()
    return {
      open (): Place[] {
        for (const { pid, listener, copy } of copies) {
          const address = addressOf(pid, listener)
          if (!places.has(address)) places.set(address, placeOf(pid, listener, copy))
        }
        return [...places.values()]
      },

      /** Connections to them that nobody has accepted yet. */
      queued: () =>
        copies.filter(({ listener }) => listener.port !== undefined).reduce(
          (sum, { copy }) => sum + posix.queueLength(copy),
          0
        ),

      /** Established connections of the program to its ports. */
      connections () {
        const ports = new Set(copies.flatMap(({ listener }) => listener.port ?? []))
        return countConnections(pids.find((pid) => namesIn(`/proc/${pid}/fd`).length > 0) ?? 0,
          new Set(pids.flatMap((pid) => [...socketsOf(pid)])), ports)
      },

      /**
       * Lets the program have all new connections until `steer` is called, also once somebody listens on a socket
       * beside its own.
       */
      holdBack () {
        const waiting = new Set([...places.values()].filter(({ index }) => index !== null))
        timer = setInterval(() => {
          for (const place of waiting) {
            if (posix.isListening(place.fd) && posix.pickBy(place.fd, oneOf(Number(place.index)))) waiting.delete(place)
          }
          if (waiting.size === 0) clearInterval(timer)
        }, LOOK_EVERY_MS)
      },

      /** From now on the program gets no new connections where there is a socket beside its own. */
      steer () {
        clearInterval(timer)
        for (const { fd, index } of places.values()) if (index !== null) posix.pickBy(fd, [[RETURN, 0, 0, index]])
      },

      close
    }

    function placeOf (pid: number, { host, port, path: file }: Listener, copy: number): Place {
      if (host === undefined) return { path: absolutePath(pid, file), fd: copy, index: null }
      const theirs = copies.filter(({ listener }) => listener.host === host && listener.port === port)
      for (const each of theirs) posix?.sharePort(each.copy)
      const { fd } = posix?.bindTcp({ address: host, port, isV6Only: posix?.isV6Only(copy), isShared: true }) ?? {}
      return fd === undefined
        ? { host, port, fd: copy, index: null }
        : { host, port, fd: kept(fd), index: theirs.length }
    }
  } catch (error) {
    close()
    throw error
  }

  function copyOf (pid: number, fd: number): number {
    const own = copyListener({ pid, fd, user })
    const copy = root !== null && [EACCES, EPERM].includes(-own) ? root.copyOf(pid, fd) : own
    if (copy < 0) throw new DeckError('not-possible', whyRefused(pid, -copy))
    return copy
  }

  function kept (fd: number) {
    descriptors.push(fd)
    return fd
  }
}

/** @returns any of so many sockets, which were there first */
function oneOf (count: number): Instruction[] {
  return count === 1 ? [[RETURN, 0, 0, 0]] : [[LOAD, 0, 0, RANDOM], [MODULO, 0, 0, count], [RETURN_LOADED, 0, 0, 0]]
}

/** @returns why a program of this process cannot be run here in its place; null: nothing is known against it */
export function whyElsewhere (pid: number): string | null {
  const differs = (link: string) => ![linkAt(`/proc/self/${link}`), ''].includes(linkAt(`/proc/${pid}/${link}`))
  if (differs('root') || differs('ns/mnt'))
    return 'it sees other files than this command, as in a container: run the command where it runs'
  return differs('ns/net')
    ? 'it is in another network than this command, as in a container: run the command where it runs'
    : null
}

function addressOf (pid: number, listener: Listener) {
  return placeText(listener.path === undefined ? listener : { ...listener, path: absolutePath(pid, listener.path) })
}

/** @returns each socket once */
function listenersIn (pids: readonly number[]): { pid: number, fd: number, listener: Listener }[] {
  const found: Map<number, { pid: number, fd: number, listener: Listener }> = new Map()
  for (const pid of pids) {
    const listeners = new Map(listenersOf(pid).map((listener) => [listener.inode, listener]))
    for (const name of namesIn(`/proc/${pid}/fd`)) {
      const listener = listeners.get(socketAt(`/proc/${pid}/fd/${name}`))
      if (listener && !found.has(listener.inode) && !listener.path?.startsWith('@'))
        found.set(listener.inode, { pid, fd: Number(name), listener })
    }
  }
  return [...found.values()]
}

function whyRefused (pid: number, errno: number): string {
  const name = getSystemErrorName(-errno)
  if (errno === ENOSYS)
    return `the sockets of process ${pid} cannot be copied (${name}): it takes Linux 5.6, or the sandbox of this container forbids it`
  if (errno !== EPERM && errno !== EACCES) return `the sockets of process ${pid} cannot be copied (${name})`
  const scope = textIn(YAMA).trim()
  if (scope === '1' || scope === '2')
    return `the sockets of process ${pid} cannot be copied (${name}): the kernel lets root alone look into other processes (kernel.yama.ptrace_scope is ${scope}). Call the same command by sudo: the app then runs as the user that the process has`
  return `the sockets of process ${pid} cannot be copied (${name}): it takes the rights of its user, and in a container CAP_SYS_PTRACE`
}
