import dgram from 'node:dgram'
import net from 'node:net'

/** @param {any} options node:cluster's query @returns {boolean} whether it names a descriptor, which is a number of this process alone */
export function isDescriptor ({ fd }) {
  return typeof fd === 'number' && fd >= 0
}

/**
 * Listens on a descriptor that this process has itself, as Node does where there is no cluster: with the same errors, at
 * the same time.
 * @param {any} server @param {{ fd: number, flags?: number, backlog?: number }} options node:cluster's query
 * @param {(errno: number, handle: any) => void} callback
 * @param {(handle: any) => void} [take] is shown the handle before it listens
 * @throws what `bind` of a datagram socket throws
 */
export function openDescriptor (server, options, callback, take = () => {}) {
  const handle = server instanceof net.Server ? openServer(server, options) : openDatagrams(server, options)
  if (!handle) return
  take(handle)
  callback(0, handle)
}

/** @param {any} server @param {{ fd: number, flags?: number, backlog?: number }} options @returns {any} null: the server tells why not */
function openServer (server, { fd, flags, backlog }) {
  const handle = /** @type {any} */ (net)._createServerHandle(null, null, null, fd, flags)
  if (typeof handle !== 'number') return handle
  // Node tries once more, and finds the words.
  server._listen2(null, null, null, backlog, fd, flags)
  return null
}

/** Only Node knows which descriptors are of UDP, so the handle is taken out of a socket of its own. @param {dgram.Socket} socket @param {{ fd: number }} options */
function openDatagrams (socket, { fd }) {
  const own = dgram.createSocket(/** @type {any} */ (socket).type)
  own.bind({ fd, exclusive: true })
  return handleOf(own)
}

/** @param {dgram.Socket} socket @returns {any} */
export function handleOf (socket) {
  const state = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol')
  return /** @type {any} */ (socket)[/** @type {any} */ (state)].handle
}
