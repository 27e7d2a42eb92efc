import cluster from 'node:cluster'
import { errorMonitor } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { setImmediate } from 'node:timers'
import { acceptAlso } from './accept-also.js'
import { isDescriptor, openDescriptor } from './descriptor.js'
import { createPlaceholderHandle, failListen } from './placeholder-handle.js'
import { socketKey } from './protocol.js'

/** How each server was asked to listen: node:cluster forgets what it does not know. @type {WeakMap<object, any>} */
const orders = new WeakMap()

/**
 * Tells of every server of this process: when it is asked to listen, and from when to when it does.
 * The one prototype that clusterdeck patches; the call itself is Node's own.
 * @param {object} hooks
 * @param {(server: net.Server) => boolean} hooks.onListen  whether it is told of any further
 * @param {(server: net.Server, address: string, isFixed: boolean) => void} hooks.onListening  one turn after it began, if it goes on: whoever
 *   looks for a free port closes its server at once. `address`: a URL such as `http://localhost:3000`, `tcp://127.0.0.1:7000` or `unix:/run/app.sock`
 * @param {(address: string) => void} hooks.onClosed
 * @param {() => void} hooks.onSettled  a server that was asked to listen does so, or does not
 * @returns {{ isOpening: () => boolean }} whether any is still about to listen
 */
export function watchServers ({ onListen, onListening, onClosed, onSettled }) {
  const nodeListen = net.Server.prototype.listen
  /** @type {Set<net.Server>} */
  const opening = new Set()

  net.Server.prototype.listen = function listen (/** @type {any[]} */ ...args) {
    const isOfApp = onListen(this)
    args[0] = withoutReusePort(args[0])
    orders.set(this, args[0])
    if (isOfApp && !opening.has(this)) watchListening(this, isFixed(args[0]))
    return /** @type {any} */ (nodeListen).apply(this, args)
  }
  return { isOpening: () => opening.size > 0 }

  function watchListening (/** @type {net.Server} */ server, /** @type {boolean} */ isFixed) {
    // Somebody who listens for 'error' itself would take it from the app.
    const turns = /** @type {[any, () => void][]} */ ([['listening', tellListening], ['close', stopWatching], [errorMonitor, stopWatching]])
    opening.add(server)
    for (const [name, listener] of turns) server.once(name, listener)

    function tellListening () {
      setImmediate(() => {
        stopWatching()
        if (!server.listening) return
        const address = addressOf(server)
        onListening(server, address, isFixed)
        server.once('close', () => onClosed(address))
      })
    }

    function stopWatching () {
      for (const [name, listener] of turns) server.off(name, listener)
      opening.delete(server)
      setImmediate(onSettled)
    }
  }
}

/**
 * Calls back once a server that listens can also serve: one that nobody listens to for connections only looks whether an
 * address is free.
 * @param {net.Server} server @param {() => void} then
 */
export function whenServing (server, then) {
  if (server.listenerCount('connection') > 0) return then()
  server.on('newListener', function look (name) {
    if (name !== 'connection') return
    server.off('newListener', look)
    then()
  })
}

/**
 * A socket of its own in a group has a queue that ends with its worker; to the app the shared one is the same.
 * @param {any} where the first argument of `listen`
 */
function withoutReusePort (where) {
  return Object(where).reusePort ? Object.create(where, { reusePort: { value: false, enumerable: true } }) : where
}

/**
 * @param {any} where the first argument of `listen`
 * @returns {boolean} whether the app has chosen the address, and the other workers listen there too
 */
function isFixed (where) {
  if (typeof where !== 'object' || where === null) return typeof where === 'string' ? where !== '0' : Number(where) > 0
  if (where.exclusive || where._handle || where.handle) return false
  return where.path !== undefined || where.fd !== undefined || Number(where.port) > 0
}

/**
 * Takes listening sockets from the master instead of from node:cluster: the master binds each one once and keeps it,
 * so the kernel's queue of connections outlives every worker. Replaces the one hook through which `net` asks the
 * cluster (`cluster._getServer`, Node 20 to 26), so look-ups, `exclusive`, file descriptors and errors stay Node's own.
 * UDP sockets come the same way.
 * @param {{ channel: import('./channel.js').Channel, drain: Pick<ReturnType<typeof import('./drain.js').createDrain>, 'isDraining' | 'watchDatagrams'>, deferral: import('./defer-accept.js').AcceptDeferral | null, evenAccept: Pick<import('./even-accept.js').EvenAccept, 'take'> }} options
 */
export function shareSockets ({ channel, drain, deferral, evenAccept }) {
  const nodeCluster = /** @type {any} */ (cluster)
  const indexes = createIndexes()
  /** @type {Map<number, (reply: any, handle: any) => void>} */
  const waiting = new Map()
  let seq = 0
  const also = acceptAlso({ channel })

  channel.on('socket', (reply, handle) => {
    const take = waiting.get(reply.seq)
    waiting.delete(reply.seq)
    take?.(reply, handle)
  })

  nodeCluster._getServer = function (/** @type {any} */ server, /** @type {any} */ options, /** @type {any} */ callback) {
    // A lame duck takes no new work: the listen stays pending until the process ends.
    if (drain.isDraining()) return

    // The service manager's are the master's, and only TCP and Unix sockets are among them.
    if (isDescriptor(options) && !(server instanceof net.Server)) return openDescriptor(server, options, callback, drain.watchDatagrams)
    const query = toQuery(options, indexes)
    const listening = server._listeningId
    if (query.port === -1) query.mode = socketMode(orders.get(server))
    waiting.set(++seq, (reply, handle) => {
      if (reply.errno) return refuseListen(server, query, reply, callback)
      if (reply.isPlaceholder) return takePlaceholder(server, query, callback)
      if (reply.isWorkersOwn) {
        indexes.free(query)
        if (listening === server._listeningId) openDescriptor(server, options, callback, (own) => deferral?.take(server, own))
        return
      }
      if (reply.data !== undefined) server._setServerData?.(reply.data)
      releaseOnClose(handle, query, reply.key)
      if (server instanceof net.Server) {
        also.take(reply.key, handle)
        if (!reply.isOwn) evenAccept.take(server, handle)
        deferral?.take(server, handle)
      } else {
        drain.watchDatagrams(handle)
      }
      callback(0, handle)
    })
    // TLS servers share their session ticket keys this way, so that a session resumes on any worker.
    channel.send({ type: 'socket', seq, query, data: server._getServerData?.() })
  }

  function refuseListen (/** @type {net.Server} */ server, /** @type {any} */ query, /** @type {any} */ reply, /** @type {any} */ callback) {
    indexes.free(query)
    // A server that was closed meanwhile has Node close what it gets, error or not.
    if (!reply.awaitMaster || server.listenerCount('error') > 0) return callback(reply.errno, { close () {} })
    waiting.set(reply.seq, ({ errno }) => callback(errno, { close () {} }))
    channel.send({ type: 'bind-failed', seq: reply.seq, errno: reply.errno, query })
  }

  // Whoever looks for a free port closes its server in the turn in which it listens. One that stays would not be served.
  function takePlaceholder (/** @type {net.Server} */ server, /** @type {any} */ query, /** @type {any} */ callback) {
    const handle = createPlaceholderHandle(query, () => indexes.free(query))
    server.once('listening', () => setImmediate(() => handle.isOpen() && failListen(server, 'EADDRINUSE', query)))
    callback(0, handle)
  }

  function releaseOnClose (/** @type {any} */ handle, /** @type {any} */ query, /** @type {string} */ key) {
    const close = handle.close
    handle.close = function () {
      handle.close = close
      indexes.free(query)
      const result = close.apply(this, arguments)
      // Only now the address is free for whoever waits for it.
      if (!drain.isDraining()) channel.send({ type: 'release-socket', key })
      return result
    }
  }
}

/**
 * With round-robin the primary of node:cluster listens, and would take a descriptor for one of its own.
 */
export function openOwnDescriptors () {
  const nodeCluster = /** @type {any} */ (cluster)
  const ask = nodeCluster._getServer
  nodeCluster._getServer = function (/** @type {any} */ server, /** @type {any} */ options, /** @type {any} */ callback) {
    if (isDescriptor(options)) openDescriptor(server, options, callback)
    else ask.apply(this, arguments)
  }
}

/**
 * @param {any} options node:cluster's query
 * @param {ReturnType<typeof createIndexes>} indexes
 * @returns {import('./protocol.js').SocketQuery}
 */
function toQuery ({ address, port, addressType, fd, flags }, indexes) {
  // The worker's working folder may differ from the master's.
  const isPath = port < 0 && typeof address === 'string' && !isAbstract(address) && process.platform !== 'win32'
  const query = { address: isPath ? path.resolve(address) : address, port, addressType, fd, flags, index: 0 }
  query.index = indexes.take(query)
  return query
}

/**
 * The permissions that node gives to a Unix socket, see net.Server's `listen`.
 * @param {any} order the first argument of `listen`
 */
function socketMode (order) {
  // To read it is deprecated, as another thread could make a file meanwhile.
  const mask = process.umask(0o077)
  process.umask(mask)
  const { readableAll, writableAll } = Object(order)
  return (0o777 & ~mask) | (readableAll ? 0o444 : 0) | (writableAll ? 0o222 : 0)
}

/** @param {string} address of a Unix socket, which has no path then: unix(7) */
function isAbstract (address) {
  return address.startsWith('\0')
}

/** Numbers the servers of this process that share one address, lowest free number first. */
function createIndexes () {
  /** @type {Set<string>} */
  const taken = new Set()
  return {
    take (/** @type {import('./protocol.js').SocketQuery} */ query) {
      let index = 0
      while (taken.has(socketKey({ ...query, index }))) index++
      taken.add(socketKey({ ...query, index }))
      return index
    },
    free (/** @type {import('./protocol.js').SocketQuery} */ query) { taken.delete(socketKey(query)) }
  }
}

/** @param {net.Server} server */
function addressOf (server) {
  const address = server.address()
  if (address === null) return 'unknown'
  if (typeof address === 'string') return `unix:${isAbstract(address) ? `@${address.slice(1)}` : address}`
  return `${schemeOf(server)}://${hostOf(address)}:${address.port}`
}

// Told by their methods, so that a worker does not load the TLS and HTTP/2 modules that its app never uses.
/** @param {net.Server & { setSecureContext?: Function }} server */
function schemeOf (server) {
  const isTls = typeof server.setSecureContext === 'function'
  if (isHttp(server)) return isTls ? 'https' : 'http'
  return isTls ? 'tls' : 'tcp'
}

/** @param {any} server */
export function isHttp (server) {
  return typeof (server.closeIdleConnections ?? server.updateSettings) === 'function'
}

/** @param {net.AddressInfo} address a host that a person can open: any-address reads as localhost */
function hostOf ({ address, family }) {
  if (address === '::' || address === '0.0.0.0') return 'localhost'
  return family === 'IPv6' ? `[${address}]` : address
}
