import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { linkSync, lstatSync, rmSync } from 'node:fs'
import net from 'node:net'
import { constants } from 'node:os'
import path from 'node:path'
import { getSystemErrorName } from 'node:util'
import { socketKey } from '../../workers/protocol.js'
import { createInherited } from './inherited.js'

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
 * @param {object} options
 * @param {(error: BindError) => boolean} options.onBindError  returns whether the worker is to wait, because the master is about to end everything
 * @param {(sockets: string[]) => void} [options.onUnused]  the service manager's that no worker has asked for
 * @param {Keeper} [options.keeper]  has a copy of every socket, those of the master before, and the service manager's
 * @param {typeof bindSocket} [options.bind]
 * @param {number} [options.unusedGraceMs]
 */
export function createSockets ({ onBindError, onUnused = () => {}, keeper = NO_KEEPER, bind = bindSocket, unusedGraceMs = UNUSED_GRACE_MS }) {
  /** @type {Map<string, { handle: any, data: unknown, file?: string, inherited?: number, users: Set<number>, unusedTimer?: NodeJS.Timeout }>} */
  const held = new Map()
  for (const [name, { handle, data: kept }] of keeper.held) {
    if (name.startsWith(KEEPER_PREFIX)) held.set(name.slice(KEEPER_PREFIX.length), { ...kept, handle, users: new Set() })
  }
  const inherited = createInherited(keeper.held)
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
        const bound = isClosed ? { errno: ECANCELED } : inherited.match(query) ?? bind(query)
        if (bound.errno !== undefined) return { key, errno: bound.errno, awaitMaster: onBindError(describe(query, bound.errno)) }
        const { handle, errno, ...whose } = bound
        socket = { handle, ...whose, data, users: new Set() }
        held.set(key, socket)
        keeper.hold(KEEPER_PREFIX + key, handle, { data, ...whose })
      }
      clearTimeout(socket.unusedTimer)
      socket.users.add(worker)
      return { key, handle: socket.handle, data: socket.data }
    },

    /** @returns {string[]} of those that are bound */
    names: () => [...held.keys()],

    /** @param {number} worker its app has closed the server, and means it */
    release (worker, /** @type {string} */ key) {
      if (held.get(key)?.users.delete(worker)) expire(key)
    },

    /** The workers have asked for what they need: what was kept from before and nobody wants may go. */
    expireUnused () {
      for (const key of held.keys()) expire(key)
      const unused = inherited.unused(new Set([...held.values()].map((socket) => socket.inherited)))
      if (unused.length > 0) onUnused(unused)
    },

    /** @param {SocketQuery} query @param {number} errno @returns {BindError} in words, with what is known of the cause */
    explain (query, errno) {
      const error = describe(query, errno)
      return errno === EADDRINUSE ? { ...error, message: error.message + inherited.hint(query) } : error
    },

    /** @param {number} worker it is gone; its sockets stay for its successor */
    forget (worker) {
      for (const { users } of held.values()) users.delete(worker)
    },

    /** The cluster ends: connections that come later are refused, not left waiting. */
    close () {
      isClosed = true
      for (const key of [...held.keys()]) drop(key)
      inherited.close()
    },

    /** Another master has these sockets now. */
    leave () {
      isClosed = true
      for (const { handle, unusedTimer } of held.values()) {
        clearTimeout(unusedTimer)
        handle.close()
      }
      held.clear()
      inherited.close()
    }
  }

  /** @param {string} key */
  function expire (key) {
    const socket = held.get(key)
    // One of the service manager's stays: nobody could bind it anew.
    if (!socket || socket.users.size > 0 || socket.inherited !== undefined) return
    clearTimeout(socket.unusedTimer)
    socket.unusedTimer = setTimeout(() => drop(key), unusedGraceMs).unref()
  }

  /** @param {string} key */
  function drop (key) {
    const socket = held.get(key)
    held.delete(key)
    keeper.drop(KEEPER_PREFIX + key)
    clearTimeout(socket?.unusedTimer)
    socket?.handle.close()
    if (socket?.file) rmSync(socket.file, { force: true })
  }
}

/** @typedef {{ held: Map<string, { handle: any, data: any }>, hold: (key: string, handle: any, data?: unknown) => void, drop: (key: string) => void, send: (message: Record<string, any>) => void }} Keeper */

/** The keeper holds other sockets than the app's too. */
const KEEPER_PREFIX = 'app '

/** @type {Keeper} */
const NO_KEEPER = Object.freeze({ held: new Map(), hold () {}, drop () {}, send () {} })

/** @typedef {{ address: string, code: string, message: string }} BindError */

const ECANCELED = -constants.errno.ECANCELED
const EADDRINUSE = -constants.errno.EADDRINUSE
/** What fits into sun_path, unix(7), without its final NUL. */
const MAX_UNIX_PATH_BYTES = 107

/**
 * Binds without listening, by the call that node:cluster's primary uses for its shared handles.
 * @param {SocketQuery} query
 * @returns {{ handle: any, file?: string, errno?: undefined } | { handle?: undefined, errno: number }} `file`: to be removed with the socket
 */
export function bindSocket (query) {
  const { address, port } = query
  if (port === -1 && address?.startsWith('/')) return bindUnixSocket(query, address)
  const handle = createHandle(query)
  if (typeof handle === 'number') return { errno: handle }
  if (!isBoundTo(handle, port)) {
    handle.close()
    return { errno: EADDRINUSE }
  }
  return { handle }
}

/** @param {SocketQuery} query @returns {any} a handle, or an error number below 0 */
function createHandle ({ address, port, addressType, fd, flags }) {
  return /** @type {any} */ (net)._createServerHandle(address, port, addressType, fd, flags)
}

/**
 * libuv removes the path of a Unix socket when the process that bound it closes it or ends, even while other processes
 * go on serving there. So it is bound to another name, and linked to its own, which is ours to remove.
 * @param {SocketQuery} query @param {string} file
 */
function bindUnixSocket (query, file) {
  if (isAbandoned(file)) rmSync(file, { force: true })
  const boundName = path.join(path.dirname(file), `.${randomBytes(4).toString('hex')}`)
  const isTooLong = Buffer.byteLength(boundName) > MAX_UNIX_PATH_BYTES
  const handle = createHandle(isTooLong ? query : { ...query, address: boundName })
  if (typeof handle === 'number') return { errno: handle }
  if (isTooLong) return { handle }
  try {
    linkSync(boundName, file)
    return { handle, file }
  } catch (/** @type {any} */ error) {
    handle.close()
    return { errno: error.code === 'EEXIST' ? EADDRINUSE : error.errno }
  } finally {
    rmSync(boundName, { force: true })
  }
}

const PROBE = `require('net').connect(process.argv[1])
  .on('connect', () => process.exit(1))
  .on('error', ({ code }) => process.exit(code === 'ECONNREFUSED' ? 0 : 1))`
const PROBE_PATIENCE_MS = 2_000

/**
 * Whether a socket's path was left behind by processes that were killed: nobody removes it then, and only connect(2)
 * tells. Rare, and asked before anything serves, so a process is well spent on an answer that comes at once.
 * @param {string} file
 */
function isAbandoned (file) {
  if (!lstatSync(file, { throwIfNoEntry: false })?.isSocket()) return false
  return spawnSync(process.execPath, ['-e', PROBE, file], { stdio: 'ignore', timeout: PROBE_PATIENCE_MS }).status === 0
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
