import { constants } from 'node:os'
import { EADDRINUSE, isDescriptor } from '../../workers/descriptor.ts'
import { isUdp, socketKey } from '../../workers/protocol.ts'
import { holderText } from '../programs/holder.ts'
import { rightsHint } from './bind-hint.ts'
import { bindSocket, describeBindError, isTcpPort, type BindError } from './bind-socket.ts'
import { ANY_V4, ANY_V6, V6_ONLY, type SocketGroup } from './socket-group.ts'
import type { SocketQuery, SocketReply } from '../../workers/protocol.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { createGiven } from './given.ts'
import type { createInherited } from './inherited-sockets.ts'
import type { createKeptSockets } from './kept-sockets.ts'
import type { Place, Socket } from './sockets.ts'
import type { Steering } from './steering.ts'
import type { Sticky } from './sticky.ts'
import type { createUnixGenerations } from './unix-generations.ts'
import type { Handle } from './worker-handle.ts'

const ECANCELED = -constants.errno.ECANCELED
const EACCES = -constants.errno.EACCES

/** What the parts of the broker share. */
type SocketTable = {
  held: Map<string, Socket>,
  /** workers */
  ready: ReadonlySet<number>,
  own: Sticky | Steering | null,
  unix: ReturnType<typeof createUnixGenerations>,
  inherited: ReturnType<typeof createInherited>,
  given: ReturnType<typeof createGiven>,
  copies: ReturnType<typeof createKeptSockets>,
  isClosed: () => boolean,
  isUnused: (key: string) => boolean,
  isOfOther: (socket: Socket) => boolean,
  drop: (key: string) => void,
  lookAtGroups: (key: string) => void,
  tellPaths: () => void
}

/**
 * Answers what workers ask for. `onBindError`: returns whether the worker is to wait, because the master is about to end
 * everything
 */
export function createSocketRequests (table: SocketTable, onBindError: (error: BindError) => boolean,
  bind: typeof bindSocket)
{
  const { held, ready, own, unix, inherited, given, copies } = table
  /** What could not be bound for a worker, unless something could after that. */
  const refused: Map<number, { query: SocketQuery, errno: number }> = new Map()

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
        const ofOther = table.isClosed() ? null : given.match(query)
        const found = table.isClosed() ? { errno: ECANCELED } : ofOther ?? inherited.match(query)
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
        if (socket.path) table.tellPaths()
        // Nobody could bind it again, so a worker that only tests whether the address is free does not free it.
        if (ofOther) copies.keep(key, socket)
      }
      // The service manager keeps a socket without it.
      socket.data ??= data
      clearTimeout(socket.unusedTimer)
      const keepsFlags = hasFlags(socket)
      socket.users.add(worker)
      refused.delete(worker)
      if (ready.has(worker) || socket.inherited !== undefined) copies.keep(key, socket)
      if (!socket.group) return { key, handle: socket.handle, data: socket.data, ...(keepsFlags && { keepsFlags }) }
      const { errno, handle } = socket.group.member(own?.numberFor(key, { worker, slot }) ?? 1)
      table.lookAtGroups(key)
      return errno === undefined
        ? { key, handle, data: socket.data, isOwn: true, ...(socket.keeping && { keeping: socket.keeping }) }
        : { key, errno }
    },

    explain,

    /** `entry`: the file of its program. Returns what could not be bound for it last. */
    refused (worker: number, entry?: string): { errno: number, inWords: () => string } | null {
      const { query, errno } = refused.get(worker) ?? {}
      return query && errno ? { errno, inWords: () => explain(query, errno, entry).message } : null
    },

    /** `worker`: is gone */
    forget (worker: number) {
      refused.delete(worker)
    }
  }

  /**
   * Finds a conflict that the kernel would only report once both sockets listen. `worker`: is starting. Returns another
   * worker's socket that covers this address.
   */
  function findRival (worker: number, query: SocketQuery): Socket | undefined {
    if (ready.has(worker)) return undefined
    for (const [key, socket] of [...held])
      if (!socket.isEstablished && table.isUnused(key) && placesOverlap(socket.query, query)) table.drop(key)
    return [...held.values()].find((socket) => !socket.users.has(worker) && placesOverlap(socket.query, query))
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

  /** Tells whether others have said whether calls on it wait, which holds for all that have it */
  function hasFlags (socket: Socket): boolean {
    return table.isOfOther(socket) || (socket.users.size > 0 && isTcpPort(socket.query))
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
