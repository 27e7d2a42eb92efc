import cluster from 'node:cluster'
import dgram from 'node:dgram'
import { errorMonitor } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { setImmediate } from 'node:timers'
import { acceptAlso } from './accept-also.js'
import { bindDatagrams, bindHandle, EADDRINUSE, isDescriptor, openDatagrams, openServer } from './descriptor.js'
import { createPlaceholderHandle, failListen } from './placeholder-handle.js'
import { privateField } from './private-field.js'
import { socketKey } from './protocol.js'

/**
 * @typedef {import('./node-internals.d.ts').AnyServer} AnyServer
 * @typedef {import('./node-internals.d.ts').Asker} Asker
 * @typedef {import('./node-internals.d.ts').ClusterQuery} ClusterQuery
 * @typedef {import('./node-internals.d.ts').DatagramHandle} DatagramHandle
 * @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle
 * @typedef {import('./node-internals.d.ts').TakeHandle} TakeHandle
 * @typedef {import('./protocol.js').SocketQuery} SocketQuery
 * @typedef {import('./channel.js').Messages['socket']} SocketReply
 * @typedef {net.ListenOptions | string | number | null | undefined} ListenOrder  the first argument of `listen`
 */

/** How each server was asked to listen: node:cluster forgets what it does not know. @type {WeakMap<object, ListenOrder>} */
const orders = new WeakMap()

/**
 * Reports every server of this process: when it is asked to listen, when it listens, and when it closes. A late server on
 * any free port is this worker's own, and nothing is told of it.
 * The one prototype, beside that of UDP, that clusterdeck patches; the call itself is Node's own.
 * @param {import('./late-ports.js').LatePorts} latePorts
 * @param {object} hooks
 * @param {(server: net.Server) => boolean} hooks.onListen  whether it is told of any further
 * @param {(server: net.Server, address: string, isFixed: boolean) => void} hooks.onListening  one turn after it began, if it goes on: whoever
 *   looks for a free port closes its server at once. `address`: a URL such as `http://localhost:3000`, `tcp://127.0.0.1:7000` or `unix:/run/app.sock`
 * @param {(address: string) => void} hooks.onClosed
 * @param {() => void} hooks.onSettled  a server that was asked to listen does so, or does not
 * @returns {{ isOpening: () => boolean }} whether any is still about to listen
 */
export function watchServers (latePorts, { onListen, onListening, onClosed, onSettled }) {
  const nodeListen = net.Server.prototype.listen
  /** @type {Set<net.Server>} */
  const opening = new Set()

  net.Server.prototype.listen = function listen (/** @type {[ListenOrder, ...unknown[]]} */ ...args) {
    const isOfApp = onListen(this)
    const isLate = latePorts.isLate()
    if (isLate && isAnyPort(args[0])) {
      latePorts.keep(this)
      keepToProcess(args, 'host')
    } else {
      args[0] = toShared(args[0])
      orders.set(this, args[0])
      if (isOfApp && !opening.has(this)) watchListening(this, { isFixed: isFixed(args[0]), isLate })
    }
    return Reflect.apply(nodeListen, this, args)
  }
  return { isOpening: () => opening.size > 0 }

  function watchListening (/** @type {net.Server} */ server, /** @type {{ isFixed: boolean, isLate: boolean }} */ { isFixed, isLate }) {
    // Somebody who listens for 'error' itself would take it from the app.
    /** @type {import('node:events').EventEmitter} */
    const emitter = server
    /** @type {[string | symbol, () => void][]} */
    const turns = [['listening', tellListening], ['close', stopWatching], [errorMonitor, stopWatching]]
    opening.add(server)
    for (const [name, listener] of turns) emitter.once(name, listener)

    function tellListening () {
      setImmediate(() => {
        stopWatching()
        if (isLate) server.once('close', latePorts.closed)
        if (!server.listening) return latePorts.closed()
        if (isLate && (latePorts.isOwn(server) || latePorts.areForClients())) return
        const address = addressOf(server)
        onListening(server, address, isFixed)
        server.once('close', () => onClosed(address))
      })
    }

    function stopWatching () {
      for (const [name, listener] of turns) emitter.off(name, listener)
      opening.delete(server)
      setImmediate(onSettled)
    }
  }
}

/**
 * Reports every UDP socket that is bound to a port of the app's choice. On any free port it is a client's, whose answers
 * no other worker may get.
 * @param {import('./late-ports.js').LatePorts} latePorts
 * @param {object} hooks
 * @param {(address: string, isAlone: boolean) => void} hooks.onBound  `isAlone`: nobody else is to bind that port
 * @param {(address: string) => void} hooks.onClosed
 */
export function watchDatagramServers (latePorts, { onBound, onClosed }) {
  const nodeBind = dgram.Socket.prototype.bind

  dgram.Socket.prototype.bind = function bind (/** @type {any[]} */ ...args) {
    const [order] = args
    if (isOptions(order) && (isDescriptor(order) || 'recvStart' in order)) return Reflect.apply(nodeBind, this, args)
    if (isAnyPort(order)) {
      keepToProcess(args, 'address')
      return Reflect.apply(nodeBind, this, args)
    }
    const isAlone = !privateField(this, 'state symbol')?.reuseAddr
    const isLate = latePorts.isLate()
    // Each may have it, and all are to hear what is sent to a group of hosts.
    if (isAlone) args[0] = toShared(order)
    this.once('listening', () => {
      if (latePorts.isOwn(this)) return
      const { address, family, port } = this.address()
      const url = `udp://${hostOf({ address, family, port })}:${port}`
      if (isLate) this.once('close', latePorts.closed)
      if (isLate && latePorts.areForClients()) return
      onBound(url, isAlone)
      this.once('close', () => onClosed(url))
    })
    return Reflect.apply(nodeBind, this, args)
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
 * With reusePort each worker would have a queue of its own that ends with it, and with exclusive the first one would have the
 * port for itself. The shared socket looks the same to the app.
 * @template {ListenOrder} Order @param {Order} order @returns {Order}
 */
function toShared (order) {
  if (!isOptions(order) || !(order.reusePort || (order.exclusive && isFixed(order) && !isDescriptor(order)))) return order
  return Object.create(order, { reusePort: { value: false, enumerable: true }, exclusive: { value: order.exclusive && !isFixed(order), enumerable: true } })
}

/** @param {unknown} order  the first argument of `listen`, or of `bind` */
function isAnyPort (order) {
  if (typeof order === 'function') return true
  if (!isOptions(/** @type {ListenOrder} */ (order))) return Number(order ?? 0) === 0
  const { port, path, fd, handle, _handle } = /** @type {net.ListenOptions} */ (order)
  return [path, fd, handle, _handle].every((each) => each === undefined) && Number(port ?? 0) === 0
}

/** Makes it a port of this process alone. @param {any[]} args  of `listen`, or of `bind` @param {'host' | 'address'} name  of its host there */
function keepToProcess (args, name) {
  const [order, host] = args
  if (typeof order === 'function') args.unshift({ port: 0, exclusive: true })
  else if (isOptions(order)) args[0] = Object.create(order, { exclusive: { value: true, enumerable: true } })
  else args[0] = { port: 0, exclusive: true, ...(typeof host === 'string' && { [name]: host }) }
}

/** @param {ListenOrder} order @returns {order is net.ListenOptions} */
function isOptions (order) {
  return typeof order === 'object' && order !== null
}

/**
 * @param {ListenOrder} order
 * @returns {boolean} whether the app has chosen the address, and the other workers listen there too
 */
function isFixed (order) {
  if (!isOptions(order)) return typeof order === 'string' ? order !== '0' : Number(order) > 0
  if (order._handle || order.handle) return false
  return order.path !== undefined || order.fd !== undefined || Number(order.port) > 0
}

/**
 * Takes listening sockets from the master instead of from node:cluster: the master binds each one once and keeps it,
 * so the kernel's queue of connections outlives every worker. Replaces the one hook through which `net` asks the
 * cluster (`cluster._getServer`, Node 20 to 26), so look-ups, `exclusive`, file descriptors and errors stay Node's own.
 * UDP sockets come the same way.
 * @param {object} options
 * @param {import('./channel.js').Channel} options.channel
 * @param {Pick<ReturnType<typeof import('./drain.js').createDrain>, 'isDraining' | 'watchDatagrams'>} options.drain
 * @param {import('./late-ports.js').LatePorts} options.latePorts
 * @param {import('./defer-accept.js').AcceptDeferral | null} options.deferral
 * @param {import('./defer-accept.js').ReceiveDeferral} options.receiveDeferral
 * @param {Pick<import('./even-accept.js').EvenAccept, 'take'>} options.evenAccept
 * @param {Pick<import('./sessions.js').Sessions, 'take'>} options.sessions
 */
export function shareSockets ({ channel, drain, latePorts, deferral, receiveDeferral, evenAccept, sessions }) {
  const indexes = createIndexes()
  /** @type {Map<number, (reply: SocketReply, handle: SocketHandle | DatagramHandle) => void>} */
  const waiting = new Map()
  let seq = 0
  const also = acceptAlso({ channel })

  channel.on('socket', (reply, handle) => {
    const take = waiting.get(reply.seq)
    waiting.delete(reply.seq)
    take?.(reply, handle)
  })

  cluster._getServer = function (server, order, callback) {
    if (isDescriptor(order) || !latePorts.isLate()) return share()
    latePorts.judge(server, { share, join, open: () => openOwn(server, order, callback, { latePorts, ifTaken: () => join(() => callback(EADDRINUSE, NONE)) }) })

    /** A lame duck takes no new work: the listen stays pending until the process ends. */
    function share () {
      if (!drain.isDraining()) askMaster(server, order, callback)
    }

    /** @param {() => void} otherwise */
    function join (otherwise) {
      if (channel.isOpen()) askMaster(server, order, callback, otherwise)
      else otherwise()
    }
  }

  /** @param {Asker} server @param {ClusterQuery} order @param {TakeHandle} callback @param {() => void} [ifNotHeld]  in place of binding it */
  function askMaster (server, order, callback, ifNotHeld) {
    // The service manager's are the master's, and only TCP and Unix sockets are among them.
    if (isDescriptor(order) && !(server instanceof net.Server)) return openDatagrams(server, order, callback, drain.watchDatagrams)
    const query = toQuery(order, indexes)
    const listening = server._listeningId
    if (query.port === -1) query.mode = socketMode(orders.get(server))
    waiting.set(++seq, (reply, handle) => {
      if (reply.isNotHeld) {
        indexes.free(query)
        return ifNotHeld?.()
      }
      // What the others serve is theirs.
      if (ifNotHeld && drain.isDraining()) return handle?.close()
      if (reply.errno) return refuseListen(server, query, reply, callback)
      if (reply.isPlaceholder) return takePlaceholder(server, query, callback)
      if (reply.isWorkersOwn) {
        indexes.free(query)
        if (listening !== server._listeningId || !isDescriptor(order) || !(server instanceof net.Server)) return
        return openServer(server, order, callback, (own) => deferral?.take(server, own))
      }
      if (reply.data !== undefined) server._setServerData?.(reply.data)
      releaseOnClose(handle, query, reply.key)
      if ('recvStop' in handle) {
        drain.watchDatagrams(handle)
        receiveDeferral.take(handle)
      } else if (server instanceof net.Server) {
        also.take(reply.key, handle)
        if (!reply.isOwn) evenAccept.take(server, handle)
        sessions.take(server, reply.key, handle)
        deferral?.take(server, handle)
      }
      callback(0, handle)
    })
    // TLS servers share their session ticket keys this way, so that a session resumes on any worker.
    channel.send({ type: 'socket', seq, query, data: server._getServerData?.(), ...(ifNotHeld && { isOnlyIfHeld: true }) })
  }

  /** @param {Asker} server @param {SocketQuery} query @param {SocketReply} reply @param {TakeHandle} callback */
  function refuseListen (server, query, { seq, errno = 0, awaitMaster }, callback) {
    indexes.free(query)
    if (!awaitMaster || server.listenerCount('error') > 0) return callback(errno, NONE)
    waiting.set(seq, (reply) => callback(reply.errno ?? 0, NONE))
    channel.send({ type: 'bind-failed', seq, errno, query })
  }

  /**
   * Whoever looks for a free port closes its server in the turn in which it listens. One that stays would not be served.
   * @param {Asker} server @param {SocketQuery} query @param {TakeHandle} callback
   */
  function takePlaceholder (server, query, callback) {
    const handle = createPlaceholderHandle(query, () => indexes.free(query))
    server.once('listening', () => setImmediate(() => handle.isOpen() && failListen(server, 'EADDRINUSE', query)))
    callback(0, handle)
  }

  /** @param {SocketHandle | DatagramHandle} handle @param {SocketQuery} query @param {string} key */
  function releaseOnClose (handle, query, key) {
    const close = handle.close
    handle.close = function (callback) {
      handle.close = close
      indexes.free(query)
      close.call(this, callback)
      // The message goes out after the close: only now the address is free.
      if (!drain.isDraining()) channel.send({ type: 'release-socket', key })
    }
  }
}

/** Node closes what a server gets that was closed meanwhile, error or not. */
const NONE = Object.freeze({ close () {} })

/**
 * Listens in this process alone, as if there were no cluster.
 * @param {Asker} server @param {ClusterQuery} order @param {TakeHandle} callback
 * @param {{ latePorts: import('./late-ports.js').LatePorts, ifTaken: () => void }} parts
 */
function openOwn (server, order, callback, { latePorts, ifTaken }) {
  const handle = server instanceof net.Server ? bindHandle(order) : bindDatagrams({ ...order, addressType: server.type })
  if (handle === EADDRINUSE) return ifTaken()
  if (typeof handle === 'number') return callback(handle, NONE)
  latePorts.keep(server)
  callback(0, handle)
}

/**
 * With round-robin the primary of node:cluster listens, but for what is of this process: descriptors, which it would take for
 * its own, and what an app opens for its clients.
 * @param {import('./late-ports.js').LatePorts} latePorts
 */
export function openOwnSockets (latePorts) {
  const ask = cluster._getServer
  cluster._getServer = function (server, query, callback) {
    const share = () => ask.call(this, server, query, callback)
    if (!isDescriptor(query)) {
      if (!latePorts.isLate()) return share()
      latePorts.judge(server, { share, open: () => openOwn(server, query, callback, { latePorts, ifTaken: share }), join: (otherwise) => otherwise() })
    } else if (server instanceof net.Server) openServer(server, query, callback)
    else openDatagrams(server, query, callback)
  }
}

/**
 * @param {ClusterQuery} query
 * @param {ReturnType<typeof createIndexes>} indexes
 * @returns {SocketQuery}
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
 * @param {ListenOrder} order
 */
function socketMode (order) {
  // Node has deprecated the call that only reads the mask.
  const mask = process.umask(0o077)
  process.umask(mask)
  const { readableAll, writableAll } = isOptions(order) ? order : {}
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
    take (/** @type {SocketQuery} */ query) {
      let index = 0
      while (taken.has(socketKey({ ...query, index }))) index++
      taken.add(socketKey({ ...query, index }))
      return index
    },
    free (/** @type {SocketQuery} */ query) { taken.delete(socketKey(query)) }
  }
}

/** @param {net.Server} server */
function addressOf (server) {
  const address = server.address()
  if (address === null) return 'unknown'
  if (typeof address === 'string') return `unix:${isAbstract(address) ? `@${address.slice(1)}` : address}`
  return `${schemeOf(server)}://${hostOf(address)}:${address.port}`
}

// The methods tell, so that a worker does not load the TLS and HTTP/2 modules that its app never uses.
/** @param {AnyServer} server */
function schemeOf (server) {
  const isTls = typeof server.setSecureContext === 'function'
  if (isHttp(server)) return isTls ? 'https' : 'http'
  return isTls ? 'tls' : 'tcp'
}

/** @param {AnyServer} server */
export function isHttp (server) {
  return typeof (server.closeIdleConnections ?? server.updateSettings) === 'function'
}

/** @param {net.AddressInfo} address a host that a person can open: any-address reads as localhost */
function hostOf ({ address, family }) {
  if (address === '::' || address === '0.0.0.0') return 'localhost'
  return family === 'IPv6' ? `[${address}]` : address
}
