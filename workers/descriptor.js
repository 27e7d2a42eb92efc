import dgram from 'node:dgram'
import net from 'node:net'
import { constants } from 'node:os'
import { privateField } from './private-field.js'

/**
 * @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle
 * @typedef {import('./node-internals.d.ts').DatagramHandle} DatagramHandle
 * @typedef {import('./node-internals.d.ts').ClusterQuery} ClusterQuery
 */

/**
 * @template {{ fd?: unknown }} Query
 * @param {Query} query
 * @returns {query is Query & { fd: number }} whether it names a descriptor, which is a number of this process alone
 */
export function isDescriptor (query) {
  return typeof query.fd === 'number' && query.fd >= 0
}

export const EADDRINUSE = -constants.errno.EADDRINUSE

/**
 * Binds without listening, by the call that node:cluster's primary uses for its shared handles. Never by a descriptor: it would be one of this process.
 * @param {Pick<ClusterQuery, 'address' | 'addressType' | 'flags'> & { port: number | null }} query @returns {SocketHandle | number} an error number below 0
 */
export function bindHandle ({ address, port, addressType, flags }) {
  const handle = net._createServerHandle(address, port, addressType, undefined, flags)
  if (typeof handle === 'number' || isBoundTo(handle, port)) return handle
  handle.close()
  return EADDRINUSE
}

/** A bind to a port in use may report nothing until listen(), which would then take a random port (libuv's delayed error). */
function isBoundTo (/** @type {SocketHandle} */ handle, /** @type {number | null} */ port) {
  if (!port || port < 0 || !handle.getsockname) return true
  /** @type {{ port?: number }} */
  const bound = {}
  handle.getsockname(bound)
  return bound.port === port
}

/**
 * Node has no call that binds at once and does not receive either, so the handle is taken out of a socket of its own.
 * @param {Pick<ClusterQuery, 'address' | 'flags'> & { port: number | null, addressType: dgram.SocketType }} query
 * @param {(handle: DatagramHandle) => number} [bind] @returns {DatagramHandle | number} an error number below 0
 */
export function bindDatagrams ({ address, port, addressType, flags }, bind = (handle) => handle.bind(address, port ?? 0, flags ?? 0)) {
  const socket = dgram.createSocket(addressType)
  const handle = handleOf(socket)
  const errno = bind(handle)
  if (!errno) return handle
  socket.close()
  return errno
}

/**
 * Listens on a descriptor that this process has itself, as Node does where there is no cluster: with the same errors, at
 * the same time.
 * @param {net.Server} server @param {ClusterQuery & { fd: number }} query
 * @param {import('./node-internals.d.ts').TakeHandle} callback
 * @param {(handle: SocketHandle) => void} [take]  is shown the handle before it listens
 */
export function openServer (server, { fd, flags, backlog }, callback, take = () => {}) {
  const handle = net._createServerHandle(null, null, null, fd, flags)
  // Node tries once more, and finds the words.
  if (typeof handle === 'number') return server._listen2(null, null, null, backlog, fd, flags)
  take(handle)
  callback(0, handle)
}

/**
 * Does the same for UDP. Only Node knows which descriptors are of UDP, so the handle is taken out of a socket of its own.
 * @param {dgram.Socket} socket @param {ClusterQuery & { fd: number }} query
 * @param {import('./node-internals.d.ts').TakeHandle} callback
 * @param {(handle: DatagramHandle) => void} [take]  is shown the handle before it receives
 * @throws what `bind` throws
 */
export function openDatagrams (socket, { fd }, callback, take = () => {}) {
  const own = dgram.createSocket(socket.type)
  own.bind({ fd, exclusive: true })
  const handle = handleOf(own)
  take(handle)
  callback(0, handle)
}

/** @param {dgram.Socket} socket @returns {DatagramHandle} */
export function handleOf (socket) {
  return privateField(socket, 'state symbol').handle
}
