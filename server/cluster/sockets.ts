import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { bindDatagrams, bindHandle, EADDRINUSE, isDescriptor } from '../../workers/descriptor.ts'
import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import { isUdp, placeOfKey, socketKey } from '../../workers/protocol.ts'
import { holderText } from '../programs/holder.ts'
import { setBindOptions } from '../programs/socket-options.ts'
import { loadPosix } from '../system/posix.ts'
import { createInherited } from './activated.ts'
import { createGiven } from './given.ts'
import { ANY_V4, ANY_V6, V6_ONLY, type SocketGroup } from './socket-group.ts'
import { rightsHint } from './bind-hint.ts'
import { baseOf, createUnixGenerations, type Generations } from './unix-generations.ts'
import { bindUnixPath, findUnixPath, type Memory, type UnixPath } from './unix-path.ts'
import type { BindOptions, SocketQuery, SocketReply } from '../../workers/protocol.ts'
import type { DatagramHandle, SocketHandle } from '../../workers/node-internals.d.ts'
import type { AppLink } from '../keeper/app-links.ts'
import type { Sticky } from './sticky.ts'
import type { Steering } from './steering.ts'
import type { stageUnixPath } from './unix-staging.ts'
import type { KeptData } from '../keeper/link.ts'

/**
 * How long a socket that no worker uses any more stays open: a worker that an operator ends by hand closes its servers
 * before its replacement asks for them.
 */
const UNUSED_GRACE_MS = 30_000
/** The same once every slot is served: a ready worker may still open a second port a little later. */
const UNASKED_GRACE_MS = 5_000
/** Nothing tells that a worker has shut its socket down and lives on. */
const LOOK_EVERY_MS = 1_000

/**
 * The socket broker. The master binds each address once, without listening on it, and hands the same handle to every
 * worker that asks; the kernel's queue lives as long as one of them has it. Binding here, as node:cluster's own
 * primary does, leaves no first worker whose end would unlink a Unix socket's path.
 */
export function createSockets (
  { onBindError, onUnused = () => {}, keeper = NO_KEEPER, bind = bindSocket, own = null, stage = null,
    generations = ONE_GENERATION, onPaths = () => {}, unusedGraceMs = UNUSED_GRACE_MS,
    unaskedGraceMs = UNASKED_GRACE_MS }: {
      /** returns whether the worker is to wait, because the master is about to end everything */
      onBindError: (error: BindError) => boolean,
      /** the service manager's that no worker has asked for */
      onUnused?: (sockets: string[]) => void,
      /** has a copy of every socket, those of the master before, and the service manager's */
      keeper?: Keeper,
      bind?: typeof bindSocket,
      /** where each slot or each worker has a socket of its own */
      own?: Sticky | Steering | null,
      /** how Unix sockets are bound whose workers do not drain by themselves */
      stage?: typeof stageUnixPath | null,
      generations?: Generations,
      /** Unix sockets whose paths none of the workers may remove */
      onPaths?: (files: Memory[]) => void,
      unusedGraceMs?: number,
      unaskedGraceMs?: number
    }
) {
  const held: Map<string, Socket> = new Map()
  /** What could not be bound for a worker, unless something could after that. */
  const refused: Map<number, { query: SocketQuery, errno: number }> = new Map()
  /** Ready workers; the addresses on which they listen are meant to last. */
  const ready: Set<number> = new Set()
  for (const [name, { handle, data: kept }] of keeper.held) {
    if (!name.startsWith(KEEPER_PREFIX) || !kept || 'fd' in kept) continue
    const key = name.slice(KEEPER_PREFIX.length)
    const path = kept.path && findUnixPath(kept.path)
    if (path === null) {
      // Nobody can reach this socket any more; the next request for the path gets a new one.
      handle.close()
      keeper.drop(name)
      continue
    }
    held.set(key, { ...kept, path, handle, query: placeOfKept(baseOf(key), handle), isEstablished: true,
      users: new Set() })
  }
  for (const [key, members] of groupsOf(keeper.held)) {
    const kept = members.map(({ handle }) => handle)
    const [{ handle, data }] = members.flat()
    const socket = { data: data?.data, query: placeOfKept(key, handle), users: new Set<number>() }
    if (own) held.set(key, { ...socket, handle, kept, group: own.adopt(key, kept.flat()), isEstablished: true })
    else held.set(key, { ...socket, handle: ungroupSockets(key, kept), isEstablished: false })
  }
  const inherited = createInherited(keeper)
  const given = createGiven(keeper)
  let isClosed = false
  const stopLooking = own && 'hasEnded' in own
    ? lookInMiddleOfSecond(() => {
      if (own.hasEnded()) lookAtGroups()
    }, LOOK_EVERY_MS)
    : () => {}
  const unix = createUnixGenerations({ held, ready, stage, generations, drop: dropSocket,
    expire: (key) => expireSocket(key, unaskedGraceMs), isClosed: () => isClosed, onMade: tellPaths })

  tellPaths()

  return {
    /** Tells whether another starting worker holds the address, perhaps only to test whether it is free */
    isContended: (worker: number, query: SocketQuery): boolean =>
      !held.has(socketKey(query)) && findRival(worker, query)?.isEstablished === false,

    /**
     * @param request `isOnlyIfHeld`: nothing is bound for it
     * @returns `keeping`: until the keeper cannot lose the socket any more; the worker is to be told only then, as the
     * next master would count the sockets of the address otherwise than the kernel if it did not know one that a worker
     * has; `until`: it has to be asked again then
     */
    request (worker: number,
      { query, data, slot = 1, isOnlyIfHeld = false }: { query: SocketQuery, data?: unknown, slot?: number,
        isOnlyIfHeld?: boolean }
    ): Omit<SocketReply, 'type' | 'seq'> & { handle?: Handle, keeping?: Promise<unknown>, until?: Promise<void> } {
      if (isOnlyIfHeld && !held.get(socketKey(query))?.isEstablished) return { key: socketKey(query), isNotHeld: true }
      const { key, until, errno: pathErrno } = unix.place(socketKey(query), { worker, query })
      if (until) return { key, until }
      if (pathErrno) return { key, errno: pathErrno, awaitMaster: onBindError(describeBindError(query, pathErrno)) }
      let socket = held.get(key)
      if (!socket) {
        if (findRival(worker, query)?.isEstablished) return { key, isPlaceholder: true }
        const ofOther = isClosed ? null : given.match(query)
        const found = isClosed ? { errno: ECANCELED } : ofOther ?? inherited.match(query)
        if (!found && isDescriptor(query)) return { key, isWorkersOwn: true }
        const begun = found ? null : unix.begin(key, query)
        if (begun) return { key, until: begun }
        const bound = found ?? bindGroup(key, query) ?? bind(query)
        if (bound.errno !== undefined) {
          refused.set(worker, { query, errno: bound.errno })
          return { key, errno: bound.errno, awaitMaster: onBindError(describeBindError(query, bound.errno)) }
        }
        const { errno, ...whose } = bound
        socket = { ...whose, query, data, isEstablished: false, users: new Set() }
        held.set(key, socket)
        if (socket.path) tellPaths()
        // Nobody could bind it again, so a worker that only tests whether the address is free does not free it.
        if (ofOther) keepSocket(key, socket)
      }
      clearTimeout(socket.unusedTimer)
      const keepsFlags = hasFlags(socket)
      socket.users.add(worker)
      refused.delete(worker)
      if (ready.has(worker) || socket.inherited !== undefined) keepSocket(key, socket)
      if (!socket.group) return { key, handle: socket.handle, data: socket.data, ...(keepsFlags && { keepsFlags }) }
      const { errno, handle } = socket.group.member(own?.numberFor(key, { worker, slot }) ?? 1)
      lookAtGroups(key)
      return errno === undefined
        ? { key, handle, data: socket.data, isOwn: true, ...(socket.keeping && { keeping: socket.keeping }) }
        : { key, errno }
    },

    /** A worker has come or gone. */
    look () {
      lookAtGroups()
      if (!isClosed) unix.look()
    },

    /** @returns how many connections wait until it accepts them, at sockets that no other worker will serve */
    queueOf: (worker: number): number => (own?.queueOf(worker) ?? 0) + unix.queueOf(worker),

    /** `inode`: of a Unix socket. Returns a connection to it, whatever its path leads to. */
    connect: unix.connect,

    /** @returns the TCP port that it asked for first */
    listensOn (worker: number): { key: string, address: string | null, addressType: number | string } | null {
      for (const [key, { users, query: { address, port, addressType } }] of held) {
        if (users.has(worker) && isTcpPort({ port, addressType })) return { key, address, addressType }
      }
      return null
    },

    /**
     * @param worker is ready; the addresses on which it listens stay for its successors
     * @returns resolves when they do, whatever becomes of this process; nothing: they do already
     */
    establish (worker: number): Promise<unknown> | void {
      ready.add(worker)
      const keeping = [...held].flatMap(([key, socket]) => {
        if (!socket.users.has(worker)) return []
        delete socket.isAdopted
        socket.group?.listen()
        keepSocket(key, socket)
        return socket.keeping ?? []
      })
      return keeping.length > 0 ? Promise.all(keeping) : undefined
    },

    /** @returns names of all bound sockets */
    names: (): string[] => [...held.keys()],

    /** `worker`: its app has closed the server on purpose */
    release (worker: number, key: string) {
      const socket = held.get(key)
      if (!socket?.users.delete(worker)) return
      own?.release(key, worker)
      lookAtGroups(key)
      // It has only tested whether the address is free, and needs it free again.
      if (isUnused(key) && (!socket.isEstablished || unix.isHidden(key, socket))) dropSocket(key)
      else expireSocket(key)
    },

    /** @returns where a program serves whose place the app takes, and no worker has asked to */
    unclaimed: given.left,

    /** Connections to these would wait for ever. */
    closeUnclaimed: given.settle,

    /** All workers have their sockets now: unused ones are closed, as connections to them would wait forever. */
    expireUnused () {
      for (const key of held.keys()) expireSocket(key, unaskedGraceMs)
      const unused = inherited.unused(new Set([...held.values()].map((socket) => socket.inherited)))
      if (unused.length > 0) onUnused(unused)
    },

    /** Frees sockets without a worker at once. */
    closeUnused () {
      for (const key of [...held.keys()]) if (isUnused(key)) dropSocket(key)
    },

    explain,

    /** `entry`: the file of its program. Returns what could not be bound for it last. */
    refused (worker: number, entry?: string): { errno: number, inWords: () => string } | null {
      const { query, errno } = refused.get(worker) ?? {}
      return query && errno ? { errno, inWords: () => explain(query, errno, entry).message } : null
    },

    /** `worker`: is gone; its sockets stay for its successor */
    forget (worker: number) {
      ready.delete(worker)
      refused.delete(worker)
      for (const { users } of held.values()) users.delete(worker)
      unix.dropUnused(isUnused)
    },

    /** The cluster ends: later connections are refused instead of left waiting. */
    close () {
      isClosed = true
      stopLooking()
      for (const key of [...held.keys()]) dropSocket(key)
      inherited.close()
      given.close()
    },

    /** No worker is left that could remove the path of another program. */
    finish: given.giveBack,

    /**
     * Those that are meant to last stay open, for whoever makes this cluster anew in this process, and has them from
     * its keeper.
     */
    letGo () {
      isClosed = true
      stopLooking()
      for (const [key, socket] of [...held]) {
        clearTimeout(socket.unusedTimer)
        own?.forget(key)
        if (socket.isEstablished) socket.path?.leave()
        else dropSocket(key)
      }
      held.clear()
      given.letGo()
    },

    /** Another master has these sockets now. */
    leave () {
      isClosed = true
      stopLooking()
      for (const [key, socket] of [...held]) {
        if (socket.isShown === false) dropSocket(key)
        clearTimeout(socket.unusedTimer)
        own?.forget(key)
        if (held.has(key)) closeHandles(socket)
        if (held.has(key)) socket.path?.leave()
      }
      held.clear()
      inherited.close()
      given.letGo()
    }
  }

  /** Whether the program that a socket was taken from has it as well, and may go on with it. */
  function isOfOther ({ isCopy }: Socket) {
    return isCopy === true && given.isPending()
  }

  /** Tells whether others have said whether calls on it wait, which holds for all that have it */
  function hasFlags (socket: Socket): boolean {
    return isOfOther(socket) || (socket.users.size > 0 && isTcpPort(socket.query))
  }

  /** `entry`: the file of the program that has asked @returns in words, with what is known of the cause */
  function explain (query: SocketQuery, errno: number, entry?: string): BindError {
    const error = describeBindError(query, errno)
    const hint = errno === EADDRINUSE
      ? inherited.hint(query) || holderHint(query)
      : errno === EACCES
      ? rightsHint(query, entry)
      : ''
    return { ...error, message: error.message + hint }
  }

  function tellPaths () {
    onPaths([...[...held.values()].flatMap(({ path }) => path ? [path.memory] : []), ...given.files()])
  }

  /** Only now the keeper gets a copy, as a worker that tests for a free port has to find it free again. */
  function keepSocket (key: string, socket: Socket) {
    if (socket.isEstablished) return
    socket.isEstablished = true
    if (socket.group) return keepMembers(key, socket)
    const { handle, data, path, inherited: fd } = socket
    const sent = keeper.hold(KEEPER_PREFIX + key, handle, { data, ...(path && { path: path.memory }),
      ...(fd !== undefined && { inherited: fd }) })
    if (sent) awaitKeeper(socket, [sent])
  }

  /** `socket`: of a group, which has as many members as there are slots */
  function keepMembers (key: string, socket: Socket) {
    const { group, data, kept = [] } = socket
    const handles = [...group?.handles() ?? []]
    const sent = handles.map((handle, index) =>
      handle === kept[index] ? null : keeper.hold(memberName(key, index + 1), handle, { data })
    ).filter(Boolean)
    if (sent.length > 0) awaitKeeper(socket, sent)
    for (let slot = handles.length + 1; slot <= kept.length; slot++) keeper.drop(memberName(key, slot))
    socket.kept = handles
  }

  /** Remembers what is on its way to the keeper. */
  function awaitKeeper (socket: Socket, sent: unknown[]) {
    const keeping = Promise.all([socket.keeping, ...sent]).then(() => {
      if (socket.keeping === keeping) delete socket.keeping
    })
    socket.keeping = keeping
  }

  function bindGroup (key: string, query: SocketQuery):
    | { handle: SocketHandle, group: SocketGroup, errno?: undefined }
    | { errno: number }
    | null
  {
    if (!own || !isTcpPort(query)) return null
    const group = own.bind(key, query)
    return 'errno' in group ? group : { handle: group.handle, group }
  }

  /** Where nobody has a socket of its own, all workers share the first one of a group. */
  function ungroupSockets (key: string, kept: SocketHandle[]) {
    const [first, ...others] = kept.flat()
    for (const handle of others) handle.close()
    for (let slot = 1; slot <= kept.length; slot++) keeper.drop(memberName(key, slot))
    return first
  }

  /** `only`: default: all of them */
  function lookAtGroups (only?: string) {
    if (!own || isClosed) return
    own.look({ usersOf: (key) => held.get(key)?.users ?? new Set(), only })
    for (const [key, socket] of held)
      if ((only ?? key) === key && socket.group && socket.isEstablished) keepMembers(key, socket)
  }

  function expireSocket (key: string, graceMs: number = unusedGraceMs) {
    const socket = held.get(key)
    if (!socket || !isUnused(key)) return
    clearTimeout(socket.unusedTimer)
    socket.unusedTimer = setTimeout(() => dropSocket(key), graceMs).unref()
  }

  /** @returns false for the service manager's sockets, which nobody could bind again */
  function isUnused (key: string): boolean {
    const socket = held.get(key)
    return socket !== undefined && socket.users.size === 0 && socket.inherited === undefined
  }

  /**
   * Finds a conflict that the kernel would only report once both sockets listen. `worker`: is starting. Returns another
   * worker's socket that covers this address.
   */
  function findRival (worker: number, query: SocketQuery): Socket | undefined {
    if (ready.has(worker)) return undefined
    for (const [key, socket] of [...held])
      if (!socket.isEstablished && isUnused(key) && placesOverlap(socket.query, query)) dropSocket(key)
    return [...held.values()].find((socket) => !socket.users.has(worker) && placesOverlap(socket.query, query))
  }

  function dropSocket (key: string) {
    const socket = held.get(key)
    held.delete(key)
    if (!socket) return
    if (socket.isEstablished && !socket.group) keeper.drop(KEEPER_PREFIX + key)
    for (let slot = 1; slot <= (socket.kept?.length ?? 0); slot++) keeper.drop(memberName(key, slot))
    clearTimeout(socket.unusedTimer)
    own?.forget(key)
    unix.forget(key)
    closeHandles(socket)
    if (!isOfOther(socket)) socket.path?.remove()
    else if (socket.path) given.keep(socket.path)
    if (socket.path) tellPaths()
  }
}

export type Socket = {
  handle: Handle,
  /** each slot, or each worker, has a socket of its own */
  group?: SocketGroup,
  /** those of these that the keeper has, by slot */
  kept?: SocketHandle[],
  /** until what it has, or all of these, cannot be lost on the way to the keeper */
  keeping?: Promise<unknown>,
  query: Place,
  /** the ticket keys of a TLS server */
  data?: unknown,
  path?: UnixPath,
  /** a program has it too whose place the app takes, or has taken */
  isCopy?: boolean,
  /** whether its path leads to it, or has done so; false: it is to do so later */
  isShown?: boolean,
  /** the workers that it was made for */
  generation?: string | null,
  /** workers of another master may have it */
  isAdopted?: boolean,
  /** its number among the service manager's */
  inherited?: number,
  /** it is not to be closed */
  isLent?: boolean,
  /** a worker that was ready has listened there */
  isEstablished: boolean,
  /** the workers that have it now */
  users: Set<number>,
  unusedTimer?: NodeJS.Timeout
}

export type Handle = SocketHandle | DatagramHandle

export type Keeper = Pick<AppLink, 'held' | 'hold' | 'drop' | 'send' | 'claim'>

/** The keeper holds other sockets as well. */
const KEEPER_PREFIX = 'app '
const MEMBER = /^slot (\d+) (.*)$/s

function memberName (key: string, slot: number) {
  return `slot ${slot} ${key}`
}

/** @returns by key, those of the slots from 1 on; a slot may have none */
function groupsOf (kept: Keeper['held']): Map<string, { handle: SocketHandle, data?: KeptData }[]> {
  const groups: ReturnType<typeof groupsOf> = new Map()
  for (const [name, { handle, data }] of kept) {
    const [, slot, key] = MEMBER.exec(name) ?? []
    if (slot === undefined || (data && 'fd' in data)) continue
    const members = groups.get(key) ?? []
    members[Number(slot) - 1] = { handle, data }
    groups.set(key, members)
  }
  return groups
}

function closeHandles ({ handle, group, isLent }: Pick<Socket, 'handle' | 'group' | 'isLent'>) {
  if (group) group.close()
  else if (!isLent) handle.close()
}

const NO_KEEPER: Keeper = Object.freeze({ held: new Map(), hold () {}, drop () {}, send () {} })

const ONE_GENERATION: Generations = Object.freeze({ of: () => null, rollout: () => null, stays: () => true })

type BindError = { address: string, code: string, message: string }

const ECANCELED = -constants.errno.ECANCELED
const EACCES = -constants.errno.EACCES

/** Binds without listening, by the call that node:cluster's primary uses for its shared handles. */
export function bindSocket (
  query: SocketQuery
): { handle: Handle, path?: UnixPath, errno?: undefined } | { handle?: undefined, errno: number } {
  const { address, port } = query
  if (isUdp(query)) return bindUdpSocket(query)
  return port === -1 && address?.startsWith('/') ? bindPath(query, address) : bindTcp(query)
}

export function bindTcp (
  query: SocketQuery
): { handle: SocketHandle, errno?: undefined } | { handle?: undefined, errno: number } {
  const handle = bindHandle(query)
  return typeof handle === 'number' ? { errno: handle } : { handle }
}

function bindPath (query: SocketQuery, file: string): ReturnType<typeof bindUnixPath> {
  // A worker has it already, perhaps without listening yet: then nobody answers there.
  if (query.index > 0) return { errno: EADDRINUSE }
  return bindUnixPath(file, query.mode, (address) => bindHandle({ ...query, address }))
}

function isTcpPort (query: Pick<SocketQuery, 'port' | 'addressType'>) {
  return !isUdp(query) && query.port !== null && query.port >= 0
}

function bindUdpSocket (query: SocketQuery & { addressType: 'udp4' | 'udp6' }) {
  const { address, port, flags, before } = query
  const place = { address: String(address), port: Number(port), isV6Only: Boolean((flags ?? 0) & V6_ONLY) }
  const handle = bindDatagrams(query, before && ((each) => bindPrepared(each, place, before)))
  return typeof handle === 'number' ? { errno: handle } : { handle }
}

/** @returns 0, or an error number below 0 */
function bindPrepared (handle: DatagramHandle, place: { address: string, port: number, isV6Only: boolean },
  before: BindOptions): number
{
  const { fd, errno = -constants.errno.ENOSYS } =
    loadPosix()?.bindUdp({ ...place, prepare: (each) => setBindOptions(each, before) }) ?? {}
  return fd === undefined ? errno : handle.open(fd)
}

type Place = Pick<SocketQuery, 'address' | 'port' | 'addressType' | 'flags' | 'before'>

/** `handle`: that a master before has bound */
function placeOfKept (key: string, { fd }: Pick<SocketHandle, 'fd'>): Place {
  return { ...placeOfKey(key), flags: fd > 0 && loadPosix()?.isV6Only(fd) ? V6_ONLY : 0 }
}

/** Tells whether only one of them can be listened on */
function placesOverlap (one: Place, other: Place): boolean {
  if (isUdp(one) !== isUdp(other) || isOnOtherDevice(one, other)) return false
  if (!one.port || one.port < 0 || one.port !== other.port) return false
  return one.address === other.address || covers(one, other) || covers(other, one)
}

function isOnOtherDevice ({ before: one }: Place, { before: other }: Place) {
  return one?.device !== undefined && other?.device !== undefined && one.device !== other.device
}

/** Tells whether what is sent to the other address comes to this one, too */
function covers ({ address, flags = 0 }: Place, other: Place): boolean {
  const isV6 = (other.address ?? ANY_V6).includes(':')
  return address === ANY_V4 ? !isV6 : (address ?? ANY_V6) === ANY_V6 && (isV6 || !(flags & V6_ONLY))
}

/** `query`: that could not be bound. Returns who has the port, or nothing. */
function holderHint ({ port, addressType }: SocketQuery): string {
  const holder = isTcpPort({ port, addressType }) && port ? holderText(port) : null
  return holder === null ? '' : `: ${holder}`
}

export function describeBindError ({ address, port }: SocketQuery, errno: number): BindError {
  const code = getSystemErrorName(errno)
  const where = port !== null && port >= 0 ? (address ? `${address}:${port}` : `port ${port}`) : String(address)
  const what = code === 'EADDRINUSE' ? 'is in use' : code === 'EACCES' ? 'is not permitted' : 'cannot be bound'
  return { address: where, code, message: `${where} ${what} (${code})` }
}
