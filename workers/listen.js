import cluster from 'node:cluster'
import net from 'node:net'
import path from 'node:path'
import { socketKey } from './protocol.js'

/**
 * Tells of every server of this process: when it is asked to listen, and each time it does.
 * The one prototype that clusterdeck patches; the call itself is Node's own.
 * @param {{ onListen: (server: net.Server) => void, onListening: (address: string, server: net.Server) => void }} hooks
 *   `address`: a URL such as `http://localhost:3000`, `tcp://127.0.0.1:7000` or `unix:/run/app.sock`
 */
export function watchServers ({ onListen, onListening }) {
  const nodeListen = net.Server.prototype.listen
  const waiting = new WeakSet()

  net.Server.prototype.listen = function listen (/** @type {any[]} */ ...args) {
    onListen(this)
    if (!waiting.has(this)) {
      waiting.add(this)
      this.once('listening', () => {
        waiting.delete(this)
        onListening(addressOf(this), this)
      })
    }
    return /** @type {any} */ (nodeListen).apply(this, args)
  }
}

/**
 * Takes listening sockets from the master instead of from node:cluster: the master binds each one once and keeps it,
 * so the kernel's queue of connections outlives every worker. Replaces the one hook through which `net` asks the
 * cluster (`cluster._getServer`, Node 20 to 26), so look-ups, `exclusive`, file descriptors and errors stay Node's own.
 * UDP sockets go on to node:cluster.
 * @param {{ channel: import('./channel.js').Channel, isDraining: () => boolean, hold: import('./hold.js').Hold | null }} options
 */
export function shareSockets ({ channel, isDraining, hold }) {
  const nodeCluster = /** @type {any} */ (cluster)
  const nodeGetServer = nodeCluster._getServer
  const indexes = createIndexes()
  /** @type {Map<number, (reply: any, handle: any) => void>} */
  const waiting = new Map()
  let seq = 0

  channel.on('socket', (reply, handle) => {
    waiting.get(reply.seq)?.(reply, handle)
    waiting.delete(reply.seq)
  })

  nodeCluster._getServer = function (/** @type {any} */ server, /** @type {any} */ options, /** @type {any} */ callback) {
    if (!isStreamServer(server)) return nodeGetServer.call(this, server, options, callback)
    // A lame duck takes no new work: the listen stays pending until the process ends.
    if (isDraining()) return

    const query = toQuery(options, indexes)
    waiting.set(++seq, (reply, handle) => {
      if (reply.errno) return refuse(server, query, reply, callback)
      if (reply.data !== undefined) server._setServerData?.(reply.data)
      releaseOnClose(handle, query, reply.key)
      hold?.take(server, handle)
      callback(0, handle)
    })
    // TLS servers share their session ticket keys this way, so that a session resumes on any worker.
    channel.send({ type: 'socket', seq, query, data: server._getServerData?.() })
  }

  function refuse (/** @type {net.Server} */ server, /** @type {any} */ query, /** @type {any} */ reply, /** @type {any} */ callback) {
    indexes.free(query)
    const isFatal = server.listenerCount('error') === 0
    if (isFatal) channel.send({ type: 'bind-failed', errno: reply.errno, query })
    // A server that was closed meanwhile has Node close what it gets, error or not.
    if (!(isFatal && reply.awaitMaster)) callback(reply.errno, { close () {} })
  }

  function releaseOnClose (/** @type {any} */ handle, /** @type {any} */ query, /** @type {string} */ key) {
    const close = handle.close
    handle.close = function () {
      handle.close = close
      indexes.free(query)
      if (!isDraining()) channel.send({ type: 'release-socket', key })
      return close.apply(this, arguments)
    }
  }
}

/** @param {unknown} server @returns {boolean} and not a UDP socket */
function isStreamServer (server) {
  return server instanceof net.Server
}

/**
 * @param {any} options node:cluster's query
 * @param {ReturnType<typeof createIndexes>} indexes
 * @returns {import('./protocol.js').SocketQuery}
 */
function toQuery ({ address, port, addressType, fd, flags }, indexes) {
  // The worker's working folder may differ from the master's.
  const isPath = port < 0 && typeof address === 'string' && process.platform !== 'win32'
  const query = { address: isPath ? path.resolve(address) : address, port, addressType, fd, flags, index: 0 }
  query.index = indexes.take(query)
  return query
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
  if (typeof address === 'string') return `unix:${address}`
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
