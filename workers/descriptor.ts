import dgram from 'node:dgram'
import net from 'node:net'
import { constants } from 'node:os'
import { privateField } from './private-field.ts'
import type { ClusterQuery, DatagramHandle, SocketHandle, TakeHandle } from './node-internals.d.ts'

/** Tells whether it names a descriptor, which is a number of this process alone */
export function isDescriptor<Query extends { fd?: unknown }> (query: Query): query is Query & { fd: number } {
  return typeof query.fd === 'number' && query.fd >= 0
}

export const EADDRINUSE = -constants.errno.EADDRINUSE

/**
 * Binds without listening, by the call that node:cluster's primary uses for its shared handles. Never by a descriptor:
 * it would be one of this process. Returns an error number below 0.
 */
export function bindHandle (
  { address, port, addressType, flags }: Pick<ClusterQuery, 'address' | 'addressType' | 'flags'> & {
    port: number | null
  }
): SocketHandle | number {
  const handle = net._createServerHandle(address, port, addressType, undefined, flags)
  if (typeof handle === 'number' || isBoundTo(handle, port)) return handle
  handle.close()
  return EADDRINUSE
}

/**
 * A bind to a port in use may report nothing until listen(), which would then take a random port (libuv's delayed
 * error).
 */
function isBoundTo (handle: SocketHandle, port: number | null) {
  if (!port || port < 0 || !handle.getsockname) return true
  const bound: { port?: number } = {}
  handle.getsockname(bound)
  return bound.port === port
}

/**
 * Node has no call that binds at once and does not receive either, so the handle is taken out of a socket of its own.
 * Returns an error number below 0.
 */
export function bindDatagrams (
  { address, port, addressType, flags }: Pick<ClusterQuery, 'address' | 'flags'> & { port: number | null,
    addressType: dgram.SocketType },
  bind: (handle: DatagramHandle) => number = (handle) => handle.bind(address, port ?? 0, flags ?? 0)
): DatagramHandle | number {
  const socket = dgram.createSocket(addressType)
  const handle = handleOf(socket)
  const errno = bind(handle)
  if (!errno) return handle
  socket.close()
  return errno
}

/**
 * Listens on a descriptor that this process has itself, as Node does where there is no cluster: with the same errors,
 * at the same time. `take`: is shown the handle before it listens.
 */
export function openServer (server: net.Server, { fd, flags, backlog }: ClusterQuery & { fd: number },
  callback: TakeHandle, take: (handle: SocketHandle) => void = () => {})
{
  const handle = net._createServerHandle(null, null, null, fd, flags)
  // Node tries once more, and finds the words.
  if (typeof handle === 'number') return server._listen2(null, null, null, backlog, fd, flags)
  take(handle)
  callback(0, handle)
}

/**
 * Does the same for UDP. Only Node knows which descriptors are of UDP, so the handle is taken out of a socket of its
 * own. `take`: is shown the handle before it receives.
 * @throws what `bind` throws
 */
export function openDatagrams (socket: dgram.Socket, { fd }: ClusterQuery & { fd: number }, callback: TakeHandle,
  take: (handle: DatagramHandle) => void = () => {})
{
  const own = dgram.createSocket(socket.type)
  own.bind({ fd, exclusive: true })
  const handle = handleOf(own)
  take(handle)
  callback(0, handle)
}

export function handleOf (socket: dgram.Socket): DatagramHandle {
  return privateField(socket, 'state symbol').handle
}
