import net from 'node:net'
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { socketKey } from '../../workers/protocol.js'

/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */

/**
 * How long a socket that no worker uses any more stays open: a worker that an operator ends by hand closes its servers
 * before its replacement asks for them.
 */
const UNUSED_GRACE_MS = 30_000

/**
 * The socket broker. The master binds each address once, without listening on it, and hands the same handle to every
 * worker that asks; the kernel's queue lives as long as one of them has it. Binding here, as node:cluster's own
 * primary does, leaves no first worker whose end would unlink a Unix socket's path.
 * @param {{ bind?: typeof bindSocket, unusedGraceMs?: number, onBindError: (error: BindError) => boolean }} options
 *   `onBindError`: returns whether the worker is to wait, because the master is about to end everything
 */
export function createSockets ({ bind = bindSocket, unusedGraceMs = UNUSED_GRACE_MS, onBindError }) {
  /** @type {Map<string, { handle: any, data: unknown, users: Set<number>, unusedTimer?: NodeJS.Timeout }>} */
  const held = new Map()
  let isClosed = false

  return {
    /**
     * @param {number} worker @param {{ query: SocketQuery, data?: unknown }} request
     * @returns {{ key: string, handle?: any, data?: unknown, errno?: number, awaitMaster?: boolean }}
     */
    request (worker, { query, data }) {
      const key = socketKey(query)
      let socket = held.get(key)
      if (!socket) {
        const bound = isClosed ? { errno: ECANCELED } : bind(query)
        if (bound.errno !== undefined) return { key, errno: bound.errno, awaitMaster: onBindError(describe(query, bound.errno)) }
        socket = { handle: bound.handle, data, users: new Set() }
        held.set(key, socket)
      }
      clearTimeout(socket.unusedTimer)
      socket.users.add(worker)
      return { key, handle: socket.handle, data: socket.data }
    },

    /** @param {number} worker its app has closed the server, and means it */
    release (worker, /** @type {string} */ key) {
      const socket = held.get(key)
      if (!socket?.users.delete(worker) || socket.users.size > 0) return
      socket.unusedTimer = setTimeout(() => {
        held.delete(key)
        socket.handle.close()
      }, unusedGraceMs).unref()
    },

    /** @param {number} worker it is gone; its sockets stay for its successor */
    forget (worker) {
      for (const { users } of held.values()) users.delete(worker)
    },

    /** The master goes: connections that come later are refused, not left waiting. */
    close () {
      isClosed = true
      for (const { handle, unusedTimer } of held.values()) {
        clearTimeout(unusedTimer)
        handle.close()
      }
      held.clear()
    }
  }
}

/** @typedef {{ address: string, code: string, message: string }} BindError */

const ECANCELED = -constants.errno.ECANCELED
const EADDRINUSE = -constants.errno.EADDRINUSE

/**
 * Binds without listening, by the call that node:cluster's primary uses for its shared handles.
 * @param {SocketQuery} query
 * @returns {{ handle: any, errno?: undefined } | { handle?: undefined, errno: number }}
 */
export function bindSocket ({ address, port, addressType, fd, flags }) {
  const handle = /** @type {any} */ (net)._createServerHandle(address, port, addressType, fd, flags)
  if (typeof handle === 'number') return { errno: handle }
  if (!isBoundTo(handle, port)) {
    handle.close()
    return { errno: EADDRINUSE }
  }
  return { handle }
}

/** A bind to a port in use may report nothing until listen(), which would then take a random port (libuv's delayed error). */
function isBoundTo (/** @type {any} */ handle, /** @type {number | null} */ port) {
  if (!port || port < 0 || typeof handle.getsockname !== 'function') return true
  /** @type {{ port?: number }} */
  const bound = {}
  handle.getsockname(bound)
  return bound.port === port
}

/** @param {SocketQuery} query @param {number} errno @returns {BindError} */
export function describe ({ address, port }, errno) {
  const code = getSystemErrorName(errno)
  const where = port !== null && port >= 0 ? (address ? `${address}:${port}` : `port ${port}`) : String(address)
  const what = code === 'EADDRINUSE' ? 'is in use' : code === 'EACCES' ? 'is not permitted' : 'cannot be bound'
  return { address: where, code, message: `${where} ${what} (${code})` }
}
