import dgram from 'node:dgram'
import net from 'node:net'
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
