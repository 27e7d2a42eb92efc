import { realpathSync } from 'node:fs'
import path from 'node:path'
import { ADMIN_NAME, describeInherited, listInherited } from '../systemd/activated-sockets.js'

/** @typedef {import('../systemd/activated-sockets.js').InheritedSocket} InheritedSocket */
/** @typedef {import('../../workers/protocol.js').SocketQuery} SocketQuery */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */

const ANY_ADDRESS = ['::', '0.0.0.0']

/**
 * The app's sockets that the service manager opened. Each is found by the address that the app asks for.
 * @param {import('./sockets.js').Keeper['held']} held
 */
export function createInherited (held) {
  const sockets = listInherited(held).filter(({ data }) => data.name !== ADMIN_NAME)

  return {
    /** @param {SocketQuery} query @returns {{ handle: SocketHandle, inherited: number, errno?: undefined } | null} `inherited`: which one it is */
    match (query) {
      // A second server of a worker on the same address uses the same socket.
      if (query.index > 0) return null
      const best = sockets.find(({ data }) => isExactly(query, data)) ?? sockets.find(({ data }) => isAlike(query, data))
      return best ? { handle: best.handle, inherited: best.data.fd } : null
    },

    /** @param {SocketQuery} query could not be bound @returns {string} a hint at the cause, or nothing */
    hint ({ port }) {
      const near = sockets.find(({ data }) => data.port !== undefined && data.port === port)
      return near ? `; the service manager has ${describeInherited(near.data)}, and that is not the address that the app listens on` : ''
    },

    /** @param {Set<number | undefined>} used @returns {string[]} the other ones, in words */
    unused: (used) => sockets.filter(({ data }) => !used.has(data.fd)).map(({ data }) => describeInherited(data)),

    close () {
      for (const { handle } of sockets) handle.close()
    }
  }
}

/** @param {SocketQuery} query @param {InheritedSocket} socket */
function isExactly ({ address, port, fd }, socket) {
  if (fd !== undefined && fd !== null) return fd === socket.fd
  if (socket.port === undefined) return port === -1 && address === socket.path
  return port === socket.port && address === socket.host
}

/**
 * `::` and `0.0.0.0` both mean any address, and a link to a folder leads to the same Unix socket.
 * @param {SocketQuery} query @param {InheritedSocket} socket
 */
function isAlike ({ address, port, fd }, socket) {
  if (fd !== undefined && fd !== null) return false
  if (socket.port === undefined) return port === -1 && Boolean(address && socket.path) && realName(String(address)) === realName(String(socket.path))
  return port === socket.port && ANY_ADDRESS.includes(String(socket.host)) && (!address || ANY_ADDRESS.includes(address))
}

/** @param {string} file */
function realName (file) {
  try {
    return path.join(realpathSync(path.dirname(file)), path.basename(file))
  } catch {
    // ENOENT: there is no such folder.
    return file
  }
}
