import net from 'node:net'
import { getSystemErrorName } from 'node:util'
import { bindOptionsOf, setBindOptions } from '../programs/socket-options.ts'
import { fstatSocket } from '../../workers/socket-file.ts'
import type { BindOptions, SocketQuery } from '../../workers/protocol.ts'
import type { Instruction, Posix } from '../system/posix.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

export type Calls = Pick<Posix,
  'bindTcp' | 'sharePort' | 'listen' | 'isListening' | 'isV6Only' | 'pickBy' | 'takeBy' | 'queueLength' | 'connect'
    | 'dropped'>
export type SocketGroup = ReturnType<typeof createSocketGroup>
type Place = { address: string, port: number, isV6Only: boolean, before: BindOptions | null }

/** The longest that the kernel allows: net.core.somaxconn. The app sets its own, once it listens. */
const BACKLOG = 65_535
export const ANY_V4 = '0.0.0.0'
export const ANY_V6 = '::'
/** UV_TCP_IPV6ONLY and UV_UDP_IPV6ONLY, as Node asks for it. */
export const V6_ONLY = 1

/**
 * Several listening sockets on the same address, between which the kernel chooses by a program. The order in which they
 * begin to listen is their index for that program, so they do in the order of their numbers.
 * @param parts `handles`: by number, from 1 on
 */
function createSocketGroup (calls: Calls,
  { place, handles, isListening }: { place: Place, handles: SocketHandle[], isListening: boolean })
{
  let picked: string | undefined
  const taken: WeakMap<SocketHandle, string> = new WeakMap()

  return {
    /** @returns the first one, by which the group is known */
    get handle (): SocketHandle {
      return handles[0]
    },

    /** @returns by number, from 1 on */
    handles: (): SocketHandle[] => handles,

    member,

    /** All of them begin to accept connections. Returns 0, or an error number below 0. */
    listen (): number {
      if (isListening) return 0
      for (const [index, { fd }] of handles.entries()) {
        const errno = calls.listen(fd, BACKLOG)
        if (errno !== 0) return errno
        // Another program has the address without that flag, so the first socket meets the conflict.
        if (index === 0) calls.sharePort(fd)
      }
      isListening = true
      return 0
    },

    isListening: () => isListening,

    /** `program`: which picks the index of one of them for each new connection */
    pick (program: Instruction[]) {
      const whole = program.join(' ')
      if (!isListening || picked === whole) return
      // A socket that is still alone has no group that would take it.
      if (calls.pickBy(handles[0].fd, program)) picked = whole
    },

    /**
     * `some`: of them; `program`: which says what packets each of these takes: clients send the first one again that
     * none takes; null: all.
     */
    take (some: SocketHandle[], program: Instruction[] | null) {
      const whole = program?.join(' ') ?? ''
      for (const handle of some) {
        if (taken.get(handle) !== whole) calls.takeBy(handle.fd, program)
        taken.set(handle, whole)
      }
    },

    /** @returns how many connections wait until somebody accepts them */
    queueLength: ({ fd }: SocketHandle): number => isListening ? calls.queueLength(fd) : 0,

    hasEnded: () => handles.some(isEnded),

    /**
     * Lets go of those that no longer listen: shutdown(2) in a worker ends a socket for all who have it. Returns these,
     * to be closed.
     */
    mend (): SocketHandle[] {
      const ended = handles.filter(isEnded)
      if (ended.length === 0) return []
      // The address is never without one.
      if (ended.length === handles.length && member(handles.length + 1).errno !== undefined) return []
      for (const handle of ended) {
        // The kernel gives its index to the last one.
        handles[handles.indexOf(handle)] = handles[handles.length - 1]
        handles.pop()
      }
      picked = undefined
      return ended
    },

    /** `order`: in which the kernel has them */
    arrange (order: SocketHandle[]) {
      handles.splice(0, handles.length, ...order)
    },

    /** `count`: how many are left */
    shrink (count: number) {
      for (const handle of handles.splice(Math.max(1, count))) handle.close()
    },

    close () {
      for (const handle of handles) handle.close()
    }
  }

  function isEnded ({ fd }: SocketHandle) {
    return isListening && !calls.isListening(fd)
  }

  /** `number`: those up to it are made where there are none yet */
  function member (
    number: number
  ): { handle: SocketHandle, errno?: undefined } | { handle?: undefined, errno: number } {
    while (handles.length < number) {
      const { handle, errno } = joinGroup(calls, place)
      if (errno !== undefined) return { errno }
      if (isListening) calls.listen(handle.fd, BACKLOG)
      handles.push(handle)
    }
    return { handle: handles[number - 1] }
  }
}

/** `query`: of a TCP port; `size`: how many there are to be at first */
export function bindSocketGroup (calls: Calls, { address, port, flags = 0, before }: SocketQuery, size: number):
  | SocketGroup
  | { errno: number }
{
  const isV6Only = Boolean(flags & V6_ONLY)
  const first = bindFirst(calls, address ? [address] : [ANY_V6, ANY_V4], { port: Number(port), isV6Only,
    before: before ?? null })
  if (first.errno !== undefined) return { errno: first.errno }
  const group = createSocketGroup(calls, { place: { ...first.place, isV6Only, before: before ?? null },
    handles: [first.handle], isListening: false })
  const { errno } = group.member(size)
  if (errno === undefined) return group
  group.close()
  return { errno }
}

/** A group that a master before has bound. `kept`: by number, from 1 on. */
export function adoptSocketGroup (calls: Calls, kept: SocketHandle[]) {
  // It may have moved one, and died before the keeper had dropped its copy from the place before.
  const handles = [...new Map(kept.map((handle) => [fstatSocket(handle.fd).ino, handle])).values()]
  for (const handle of kept) if (!handles.includes(handle)) handle.close()
  const [{ fd }] = handles
  return createSocketGroup(calls, {
    place: { ...placeOf(handles[0]), isV6Only: calls.isV6Only(fd), before: bindOptionsOf(fd) },
    handles,
    isListening: true
  })
}

/** `addresses`: the first that this machine has */
function bindFirst (calls: Calls, addresses: string[], place: Omit<Place, 'address'>): { handle: SocketHandle,
  place: { address: string, port: number }, errno?: undefined } | { errno: number }
{
  let bound: { fd?: number, errno?: number } = {}
  for (const address of addresses) {
    bound = bind(calls, { ...place, address }, false)
    if (bound.fd === undefined) continue
    const handle = toHandle(bound.fd)
    return { handle, place: { address, port: placeOf(handle).port } }
  }
  return { errno: Number(bound.errno) }
}

function joinGroup (calls: Calls, place: Place) {
  const { fd, errno } = bind(calls, place, true)
  return fd === undefined ? { errno } : { handle: toHandle(fd) }
}

function bind (calls: Calls, { before, ...place }: Place, isShared: boolean) {
  return calls.bindTcp({ ...place, isShared, prepare: (fd) => {
    if (before) setBindOptions(fd, before)
  } })
}

/** `fd`: of a TCP socket that is bound */
function toHandle (fd: number) {
  const handle = net._createServerHandle(null, null, null, fd, 0)
  if (typeof handle === 'number') throw new Error(`the socket ${fd} cannot be used (${getSystemErrorName(handle)})`)
  return handle
}

/** `handle`: of TCP */
export function placeOf (handle: SocketHandle): { address: string, port: number } {
  const place = { address: '', port: 0 }
  handle.getsockname?.(place)
  return place
}
