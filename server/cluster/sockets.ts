import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import { createInherited } from './inherited-sockets.ts'
import { bindSocket, isTcpPort, type BindError } from './bind-socket.ts'
import { createGiven } from './given.ts'
import { createKeptSockets } from './kept-sockets.ts'
import { createSocketRequests } from './socket-requests.ts'
import { createUnixGenerations, type Generations } from './unix-generations.ts'
import type { SocketGroup } from './socket-group.ts'
import type { Memory, UnixPath } from './unix-path.ts'
import type { SocketQuery } from '../../workers/protocol.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { AppLink } from '../keeper/app-links.ts'
import type { Sticky } from './sticky.ts'
import type { Steering } from './steering.ts'
import type { stageUnixPath } from './unix-staging.ts'
import type { Handle } from './worker-handle.ts'

/**
 * How long a socket that no worker uses any more stays open: a worker that an operator ends by hand closes its servers
 * before its replacement asks for them.
 */
const UNUSED_GRACE_MS = 30_000
/** The same once every slot is served: a ready worker may still open a second port a little later. */
const UNASKED_GRACE_MS = 5_000
/** Nothing tells that a worker has shut its socket down and lives on. */
const LOOK_EVERY_MS = 1_000

type Options = {
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

/**
 * The socket broker. The master binds each address once, without listening on it, and hands the same handle to every
 * worker that asks; the kernel's queue lives as long as one of them has it. Binding here, as node:cluster's own
 * primary does, leaves no first worker whose end would unlink a Unix socket's path.
 */
export function createSockets (
  { onBindError, onUnused = () => {}, keeper = NO_KEEPER, bind = bindSocket, own = null, stage = null,
    generations = ONE_GENERATION, onPaths = () => {}, unusedGraceMs = UNUSED_GRACE_MS,
    unaskedGraceMs = UNASKED_GRACE_MS }: Options
) {
  const held: Map<string, Socket> = new Map()
  /** Ready workers; the addresses on which they listen are meant to last. */
  const ready: Set<number> = new Set()
  const copies = createKeptSockets(keeper, { held, own })
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
  const requests = createSocketRequests({ held, ready, own, unix, inherited, given, copies, isClosed: () => isClosed,
    isUnused, isOfOther, drop: dropSocket, lookAtGroups, tellPaths }, onBindError, bind)

  tellPaths()

  return {
    request: requests.request,
    isContended: requests.isContended,
    explain: requests.explain,
    refused: requests.refused,

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
        copies.keep(key, socket)
        return socket.keeping ?? []
      })
      return keeping.length > 0 ? Promise.all(keeping) : undefined
    },

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

    /** `worker`: is gone; its sockets stay for its successor */
    forget (worker: number) {
      ready.delete(worker)
      requests.forget(worker)
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

  function tellPaths () {
    onPaths([...[...held.values()].flatMap(({ path }) => path ? [path.memory] : []), ...given.files()])
  }

  /** `only`: default: all of them */
  function lookAtGroups (only?: string) {
    if (!own || isClosed) return
    own.look({ usersOf: (key) => held.get(key)?.users ?? new Set(), only })
    for (const [key, socket] of held)
      if ((only ?? key) === key && socket.group && socket.isEstablished) copies.keepMembers(key, socket)
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

  function dropSocket (key: string) {
    const socket = held.get(key)
    held.delete(key)
    if (!socket) return
    copies.drop(key, socket)
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

export type Keeper = Pick<AppLink, 'held' | 'hold' | 'drop' | 'send' | 'claim' | 'leavesSockets'>

function closeHandles ({ handle, group, isLent }: Pick<Socket, 'handle' | 'group' | 'isLent'>) {
  if (group) group.close()
  else if (!isLent) handle.close()
}

const NO_KEEPER: Keeper = Object.freeze({ held: new Map(), hold () {}, drop () {}, send () {} })

const ONE_GENERATION: Generations = Object.freeze({ of: () => null, rollout: () => null, stays: () => true })

export type Place = Pick<SocketQuery, 'address' | 'port' | 'addressType' | 'flags' | 'before'>
