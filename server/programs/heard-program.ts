import { readlinkSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import path from 'node:path'
import { isUdp, socketKey, type SocketQuery } from '../../workers/protocol.ts'
import { fstatSocket, lstatSocket } from '../../workers/socket-file.ts'
import { socketsOf } from '../system/open-sockets.ts'
import { loadPosix } from '../system/posix.ts'
import { linkAt, namesIn, statOf, textIn } from '../system/proc.ts'
import { treeOf, type TreeIdentity } from '../system/process-tree.ts'
import { pidsOf } from '../system/tree-usage.ts'
import { descriptorsOf, setsWith } from './epoll-sets.ts'
import { addressOf, descriptorOf, ownAddressOf, processOf, readAddress, readText,
  socketQuery } from './socket-request.ts'
import { bindOptionsOf, freshLike, keepOptions, networkOf } from './socket-options.ts'
import type { Notice, SystemCalls } from './system-calls.ts'
import type { HelperCalls } from './helper-calls.ts'

/** a call of bind(2) that waits for the master's answer */
export type Asked = { id: string, pid: number, fd: number, query: SocketQuery }
/**
 * `errno`: below 0, for the program; `pretends`: it is to believe that the socket is bound;
 * `keepsFlags`: whether calls on the socket wait is not this program's matter
 */
export type Answer = { asked: Asked, key: string, errno?: number, pretends?: boolean, keepsFlags?: boolean }
export type SocketFile = { file: string, dev: number, ino: number }
/** `key`: of the master; `pid`: of the process that has bound it; UDP listens as soon as it is bound */
type Bound = { query: SocketQuery, key: string, pid: number, isListening: boolean }
/**
 * What the master hears of a program.
 * `note`: why it does not share a socket, or not all of it
 */
export type Told = { type: 'asked', asked: Asked } | { type: 'listening', address: string, isFixed: boolean } | {
  type: 'closed',
  address: string
} | { type: 'released', key: string } | { type: 'answered', id: string } | { type: 'note', text: string } | {
  type: 'over'
}

const { EADDRINUSE, ENOSYS } = constants.errno
/** Each is one more socket of the master. */
const MAX_ADDRESSES = 1000
const AT_FDCWD = -100
const START_FIELD = 22
const MS_PER_TICK = 10
const ADD_RIGHT = 'in a container, add the capability SYS_PTRACE'

/**
 * Answers what a program asks the kernel for: each address that it binds leads to a socket of the master, in the place
 * of its own.
 */
export function createHeardProgram ({ calls, helper, listener, identity, files, tell, onReceived }: {
  calls: SystemCalls,
  helper: HelperCalls,
  /** what it asks can be received from it */
  listener: number,
  identity: () => TreeIdentity | null,
  /** of the app: nobody removes them */
  files: () => readonly SocketFile[],
  tell: (message: Told) => void,
  /** a call that has to be answered, whatever becomes of this process; 0: none */
  onReceived: (id: bigint) => void
}) {
  /** What it has bound, by the inode of the socket. */
  const bound: Map<number, Bound> = new Map()
  /** Sockets that are bound to nothing, while the program believes that they are. */
  const pretended: Set<number> = new Set()
  const noted: Set<string> = new Set()
  /** Of all Unix sockets that it has bound. */
  const paths: Set<string> = new Set()
  const handlers = { bind: hearBind, listen: hearListen, unlink: hearUnlink, unlinkat: hearUnlink }
  calls.hurry(listener)

  return {
    /** Takes one call, and waits where somebody else has taken it meanwhile. Returns whether there can be more. */
    serve (): boolean {
      onReceived(0n)
      const notice = calls.receive(listener)
      if (notice === 'over') return false
      if (notice === 'none') return true
      try {
        handlers[notice.call](notice)
      } catch {
        // It has ended, or may not be looked into.
        calls.goOn(listener, notice.id)
      }
      return true
    },

    /** `own`: a socket of the master; null: the program's stays */
    answer ({ asked, key, errno, pretends, keepsFlags = false }: Answer, own: number | null) {
      const id = BigInt(asked.id)
      try {
        if (errno) calls.answer(listener, id, errno)
        else if (pretends) pretend(id, asked)
        else if (own === null) calls.goOn(listener, id)
        else put({ id, key, own, keepsFlags }, asked)
      } finally {
        tell({ type: 'answered', id: asked.id })
      }
    },

    /** What a helper before has received, and not answered. */
    goOn: (id: bigint) => calls.goOn(listener, id),

    releaseClosed,
    close: () => calls.close(listener)
  }

  function hearBind ({ id, thread, args: [number, address, length] }: Notice) {
    onReceived(id)
    const place = { pid: processOf(thread), fd: fdIn(number) }
    const name = readAddress(thread, address, length)
    const { flags, protocol } = descriptorOf(place, calls)
    if (name.length === 0 || flags === null) {
      note(
        'it may not be looked into: it protects itself (PR_SET_DUMPABLE), or its file may not be read by this user. So it has sockets of its own, and only one worker can have them: run it with 1 worker and rollout.order "stop-first", or clusterdeck as root'
      )
      return calls.goOn(listener, id)
    }
    const copy = calls.descriptorOf(place.pid, place.fd)
    try {
      const query = socketQuery(name, { protocol, isV6Only: () =>
        copy < 0 ? hasBoundV4(name) : loadPosix()?.isV6Only(copy) === true }, () =>
        readlinkSync(`/proc/${place.pid}/cwd`))
      const why = query && whyOwn(query, { thread, copy })
      if (why) note(why)
      if (query === null || why || isInOwnFolder(query)) return calls.goOn(listener, id)
      if (copy < 0)
        note(
          `what it has set on its sockets before bind(2) is lost (pidfd_getfd: ${
            helper.errorText(-copy)
          }): ${ADD_RIGHT}`
        )
      const before = copy < 0 ? null : bindOptionsOf(copy)
      const asked = { ...query, ...(before && { before }) }
      // Whoever looks for a free port closes it again, and expects it to be free then.
      releaseClosed()
      if (isBoundAlready(asked) && !(copy < 0 || calls.sharesPort(copy))) return calls.answer(listener, id, -EADDRINUSE)
      tell({ type: 'asked', asked: { id: String(id), ...place, query: asked } })
    } finally {
      if (copy >= 0) helper.closeCopy(copy)
    }
  }

  /** @returns why the master cannot bind it for the program; null: it can */
  function whyOwn ({ port, address }: SocketQuery, { thread, copy }: { thread: number, copy: number }): string | null {
    if (bound.size >= MAX_ADDRESSES)
      return `it binds more than ${MAX_ADDRESSES} addresses: its workers share the first ones alone`
    if (port === -1)
      return isInOurFiles(thread)
        ? null
        : `it sees other files than clusterdeck (chroot, mount namespace), so its socket ${address} is its own, and restarts fail clients there`
    return isInOurNetwork(thread, copy)
      ? null
      : `it is in another network than clusterdeck (network namespace), so port ${port} is its own there, and restarts fail clients`
  }

  /**
   * A folder that is younger than the program, and that nobody else may enter, is one of this copy alone, which removes
   * it in the end: mkdtemp(3). Python's multiprocessing has its sockets there.
   */
  function isInOwnFolder ({ address, port }: SocketQuery) {
    const folder = port === -1 ? statSync(path.dirname(String(address)), { throwIfNoEntry: false }) : undefined
    return folder !== undefined && (folder.mode & 0o77) === 0 && folder.birthtimeMs > startOf(identity()?.pid ?? 0)
  }

  /** `copy`: of its socket, which stays in the namespace that it was made in */
  function isInOurNetwork (thread: number, copy: number) {
    const fresh = copy < 0 ? -1 : freshLike(copy)
    if (fresh < 0) return linkAt(`/proc/${thread}/ns/net`) === linkAt('/proc/self/ns/net')
    const [own, theirs] = [networkOf(fresh), networkOf(copy)]
    helper.closeCopy(fresh)
    return own === '' ? linkAt(`/proc/${thread}/ns/net`) === linkAt('/proc/self/ns/net') : own === theirs
  }

  /** A program that binds any address of both families means each for itself. `name`: a sockaddr of IPv6. */
  function hasBoundV4 (name: Buffer) {
    return [...bound.values()].some(({ query: { address, port } }) =>
      address === '0.0.0.0' && port === name.readUInt16BE(2)
    )
  }

  function isBoundAlready (query: SocketQuery): boolean {
    return [...bound.values()].some((each) => socketKey(each.query) === socketKey(query))
  }

  function put ({ id, key, own, keepsFlags }: { id: bigint, key: string, own: number, keepsFlags: boolean },
    { pid, fd, query }: Asked)
  {
    const { inode, waits } = descriptorOf({ pid, fd }, calls)
    const copy = calls.descriptorOf(pid, fd)
    if (copy >= 0) keepOptions(copy, own, { isShared: isUdp(query) || query.port === -1 })
    if (!keepsFlags) calls.letCallsWait(own, waits)
    const numbers = [...new Set([fd, ...descriptorsOf(pid, inode)])].map((theirs) => ({ theirs,
      isClosedOnExec: descriptorOf({ pid, fd: theirs }, calls).isClosedOnExec })
    )
    const sets = setsWith(pid, inode)
    for (const each of numbers) calls.put(listener, id, { own, ...each })
    if (copy >= 0) helper.closeCopy(copy)
    const reason = sets.map(({ set, number, ...entry }) => addToSet({ pid, set }, { own, number }, entry)).find(Boolean)
    if (reason)
      note(
        `it waits for connections by epoll since before bind(2), and hears of none, as its epoll set cannot be changed (${reason}): ${ADD_RIGHT}`
      )
    if (query.port === -1 && paths.size < MAX_ADDRESSES) paths.add(String(query.address))
    bound.set(fstatSocket(own).ino, { query, key, pid, isListening: isUdp(query) })
    calls.answer(listener, id, 0)
  }

  /** @returns why not */
  function addToSet ({ pid, set }: { pid: number, set: number }, { own, number }: { own: number, number: number },
    entry: { events: number, data: bigint }): string | null
  {
    const copy = calls.descriptorOf(pid, set)
    if (copy < 0) return `pidfd_getfd: ${helper.errorText(-copy)}`
    try {
      return helper.addToSet(copy, own, number, entry)
    } finally {
      helper.closeCopy(copy)
    }
  }

  /**
   * Another worker has this address, or one that covers it. Whoever only looks for a free port would have found it free
   * without that worker, and closes the socket again.
   */
  function pretend (id: bigint, { pid, fd }: Asked) {
    pretended.add(descriptorOf({ pid, fd }, calls).inode)
    calls.answer(listener, id, 0)
  }

  function hearListen ({ id, thread, args: [number] }: Notice) {
    onReceived(id)
    const place = { pid: processOf(thread), fd: fdIn(number) }
    const { inode } = descriptorOf(place, calls)
    if (pretended.has(inode)) return calls.answer(listener, id, 0)
    const known = bound.get(inode)
    const address = known ? addressOf(known.query) : ownAddress(place)
    calls.goOn(listener, id)
    if (known) known.isListening = true
    tell({ type: 'listening', address, isFixed: known !== undefined })
  }

  function ownAddress ({ pid, fd }: { pid: number, fd: number }) {
    const copy = calls.descriptorOf(pid, fd)
    if (copy < 0) return 'unknown'
    const name = calls.nameOf(copy)
    helper.closeCopy(copy)
    return ownAddressOf(name)
  }

  /**
   * A program removes the path of its socket before it binds it, and when it ends: others serve there. Nearly all
   * removals are of other files, and some programs remove very many, so at first only the end of the path is looked at.
   */
  function hearUnlink ({ id, call, thread, args }: Notice) {
    const kept = files()
    const isKept = kept.length + paths.size > 0 &&
      isOneOf(kept, { id, thread }, call === 'unlink' ? [AT_FDCWD, args[0]] : [fdIn(args[0]), args[1]])
    if (isKept) calls.answer(listener, id, 0)
    else calls.goOn(listener, id)
  }

  function isOneOf (kept: readonly SocketFile[], { id, thread }: Pick<Notice, 'id' | 'thread'>,
    [folder, address]: [folder: number, address: bigint])
  {
    const name = readText(thread, address)
    const last = path.basename(name)
    if (![...paths, ...kept.map(({ file }) => file)].some((file) => path.basename(file) === last)) return false
    onReceived(id)
    const place = `/proc/${thread}/${folder === AT_FDCWD ? 'cwd' : `fd/${folder}`}`
    const there = lstatSocket(name.startsWith('/') ? `/proc/${thread}/root${name}` : `${place}/${name}`)
    // Where the app has ended, its path has gone already.
    if (!there) return paths.has(path.resolve(linkAt(place), name))
    return kept.some(({ dev, ino }) => there.dev === dev && there.ino === ino)
  }

  /** Nobody hears when a program closes a socket, so it is looked for in its descriptors. */
  function releaseClosed () {
    const missing = without([...bound], [...bound.values()].map(({ pid }) => pid))
    const known = identity()
    if (missing.length === 0 || known === null) return
    // Whoever has bound it may have passed it on.
    for (const [inode, { key, query, isListening }] of without(missing, pidsOf(known.pid))) {
      bound.delete(inode)
      tell({ type: 'released', key })
      if (isListening) tell({ type: 'closed', address: addressOf(query) })
    }
  }

  function note (text: string) {
    if (noted.has(text)) return
    noted.add(text)
    tell({ type: 'note', text })
  }
}

/**
 * A program keeps what its calls are answered by, for whoever looks after it next: seccomp_unotify(2).
 * @returns a descriptor of this process; below 0: an error number, as none of its processes has it, or they may not be
 * looked into
 */
export function findListener (calls: SystemCalls, identity: TreeIdentity): number {
  let errno = -ENOSYS
  for (const { pid } of treeOf(identity)) {
    const fd = namesIn(`/proc/${pid}/fd`).find((name) => isListener(`/proc/${pid}/fd/${name}`))
    if (fd === undefined) continue
    const copy = calls.descriptorOf(pid, Number(fd))
    if (copy >= 0 && isListener(`/proc/self/fd/${copy}`)) return copy
    errno = copy
  }
  return errno
}

/**
 * @returns when the process has begun, as Date.now() has it; NaN: it has ended. See proc_pid_stat(5), proc_uptime(5)
 */
function startOf (pid: number): number {
  const [uptime] = textIn('/proc/uptime').split(' ')
  return Date.now() - Number(uptime) * 1000 + Number(statOf(pid)?.[START_FIELD]) * MS_PER_TICK
}

function isListener (link: string) {
  return linkAt(link) === 'anon_inode:seccomp notify'
}

/** @returns those that none of the processes has */
function without (sockets: [number, Bound][], processes: number[]): [number, Bound][] {
  const open = new Set([...new Set(processes)].flatMap((pid) => [...socketsOf(pid)]))
  return sockets.filter(([inode]) => !open.has(inode))
}

function isInOurFiles (thread: number) {
  const [own, theirs] = ['self', thread].map((each) => statSync(`/proc/${each}/root`))
  return own.ino === theirs.ino && own.dev === theirs.dev &&
    linkAt('/proc/self/ns/mnt') === linkAt(`/proc/${thread}/ns/mnt`)
}

/** `argument`: of a system call: the kernel looks at its lower half alone */
function fdIn (argument: bigint): number {
  return Number(BigInt.asIntN(32, argument))
}
