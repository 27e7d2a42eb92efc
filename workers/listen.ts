import cluster from 'node:cluster'
import dgram from 'node:dgram'
import { errorMonitor, type EventEmitter } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { setImmediate } from 'node:timers'
import { acceptAlso } from './accept-also.ts'
import { bindDatagrams, bindHandle, EADDRINUSE, isDescriptor, openDatagrams, openServer } from './descriptor.ts'
import { createPlaceholderHandle, failListen } from './placeholder-handle.ts'
import { privateField } from './private-field.ts'
import { socketKey, type SocketQuery } from './protocol.ts'
import type { AnyServer, Asker, ClusterQuery, DatagramHandle, SocketHandle, TakeHandle } from './node-internals.d.ts'
import type { Channel, Messages } from './channel.ts'
import type { LatePorts } from './late-ports.ts'
import type { createDrain } from './drain.ts'
import type { AcceptDeferral, ReceiveDeferral } from './defer-accept.ts'
import type { EvenAccept } from './even-accept.ts'
import type { Sessions } from './sessions.ts'

type SocketReply = Messages['socket']
/** the first argument of `listen` */
type ListenOrder = net.ListenOptions | string | number | null | undefined

/** How each server was asked to listen: node:cluster forgets what it does not know. */
const orders: WeakMap<object, ListenOrder> = new WeakMap()

/**
 * Reports every server of this process: when it is asked to listen, when it listens, and when it closes. A late server
 * on any free port is this worker's own, and nothing is told of it. The one prototype, beside that of UDP, that
 * clusterdeck patches; the call itself is Node's own. Returns whether any is still about to listen.
 */
export function watchServers (latePorts: LatePorts, { onListen, onListening, onClosed, onSettled }: {
  /** whether it is told of any further */
  onListen: (server: net.Server) => boolean,
  /**
   * one turn after it began, if it goes on: whoever
   * looks for a free port closes its server at once. `address`: a URL such as `http://localhost:3000`,
   * `tcp://127.0.0.1:7000` or `unix:/run/app.sock`
   */
  onListening: (server: net.Server, address: string, isFixed: boolean) => void,
  onClosed: (address: string) => void,
  /** a server that was asked to listen does so, or does not */
  onSettled: () => void
}): { isOpening: () => boolean } {
  const nodeListen = net.Server.prototype.listen
  const opening: Set<net.Server> = new Set()

  net.Server.prototype.listen = function listen (...args: [ListenOrder, ...unknown[]]) {
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

  function watchListening (server: net.Server, { isFixed, isLate }: { isFixed: boolean, isLate: boolean }) {
    // Somebody who listens for 'error' itself would take it from the app.
    const emitter: EventEmitter = server
    const turns: [string | symbol, () => void][] = [['listening', tellListening], ['close', stopWatching], [
      errorMonitor,
      stopWatching
    ]]
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
 * Reports every UDP socket that is bound to a port of the app's choice. On any free port it is a client's, whose
 * answers no other worker may get.
 */
export function watchDatagramServers (latePorts: LatePorts, { onBound, onClosed }: {
  /** `isAlone`: nobody else is to bind that port */
  onBound: (address: string, isAlone: boolean) => void,
  onClosed: (address: string) => void
}) {
  const nodeBind = dgram.Socket.prototype.bind

  dgram.Socket.prototype.bind = function bind (...args: unknown[]) {
    const [order] = args as ListenOrder[]
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
 * Calls back once a server that listens can also serve: one that nobody listens to for connections only looks whether
 * an address is free.
 */
export function whenServing (server: net.Server, then: () => void) {
  if (server.listenerCount('connection') > 0) return then()
  server.on('newListener', function look (name) {
    if (name !== 'connection') return
    server.off('newListener', look)
    then()
  })
}

/**
 * With reusePort each worker would have a queue of its own that ends with it, and with exclusive the first one would
 * have the port for itself. The shared socket looks the same to the app.
 */
function toShared<Order extends ListenOrder> (order: Order): Order {
  if (!isOptions(order) || !(order.reusePort || (order.exclusive && isFixed(order) && !isDescriptor(order))))
    return order
  return Object.create(order, { reusePort: { value: false, enumerable: true },
    exclusive: { value: order.exclusive && !isFixed(order), enumerable: true } })
}

/** `order`: the first argument of `listen`, or of `bind` */
function isAnyPort (order: unknown) {
  if (typeof order === 'function') return true
  if (!isOptions(order as ListenOrder)) return Number(order ?? 0) === 0
  const { port, path, fd, handle, _handle } = order as net.ListenOptions
  return [path, fd, handle, _handle].every((each) => each === undefined) && Number(port ?? 0) === 0
}

/** Makes it a port of this process alone. `args`: of `listen`, or of `bind`; `name`: of its host there. */
function keepToProcess (args: unknown[], name: 'host' | 'address') {
  const [order, host] = args as ListenOrder[]
  if (typeof order === 'function') args.unshift({ port: 0, exclusive: true })
  else if (isOptions(order)) args[0] = Object.create(order, { exclusive: { value: true, enumerable: true } })
  else args[0] = { port: 0, exclusive: true, ...(typeof host === 'string' && { [name]: host }) }
}

function isOptions (order: ListenOrder): order is net.ListenOptions {
  return typeof order === 'object' && order !== null
}

/** Tells whether the app has chosen the address, and the other workers listen there too */
function isFixed (order: ListenOrder): boolean {
  if (!isOptions(order)) return typeof order === 'string' ? order !== '0' : Number(order) > 0
  if (order._handle || order.handle) return false
  return order.path !== undefined || order.fd !== undefined || Number(order.port) > 0
}

/**
 * Takes listening sockets from the master instead of from node:cluster: the master binds each one once and keeps it,
 * so the kernel's queue of connections outlives every worker. Replaces the one hook through which `net` asks the
 * cluster (`cluster._getServer`, Node 20 to 26), so look-ups, `exclusive`, file descriptors and errors stay Node's own.
 * UDP sockets come the same way.
 */
export function shareSockets (
  { channel, drain, latePorts, deferral, receiveDeferral, evenAccept, sessions }: { channel: Channel,
    drain: Pick<ReturnType<typeof createDrain>, 'isDraining' | 'watchDatagrams'>, latePorts: LatePorts,
    deferral: AcceptDeferral | null, receiveDeferral: ReceiveDeferral, evenAccept: Pick<EvenAccept, 'take'>,
    sessions: Pick<Sessions, 'take'> }
) {
  const indexes = createIndexes()
  const waiting: Map<number, (reply: SocketReply, handle: SocketHandle | DatagramHandle) => void> = new Map()
  let seq = 0
  const also = acceptAlso({ channel })

  channel.on('socket', (reply, handle) => {
    const take = waiting.get(reply.seq)
    waiting.delete(reply.seq)
    take?.(reply, handle)
  })

  cluster._getServer = function (server, order, callback) {
    if (isDescriptor(order) || !latePorts.isLate()) return share()
    latePorts.judge(server, { share, join,
      open: () =>
        openOwn(server, order, callback, { latePorts, ifTaken: () => join(() => callback(EADDRINUSE, NONE)) }) })

    /** A lame duck takes no new work: the listen stays pending until the process ends. */
    function share () {
      if (!drain.isDraining()) askMaster(server, order, callback)
    }

    function join (otherwise: () => void) {
      if (channel.isOpen()) askMaster(server, order, callback, otherwise)
      else otherwise()
    }
  }

  /** `ifNotHeld`: in place of binding it */
  function askMaster (server: Asker, order: ClusterQuery, callback: TakeHandle, ifNotHeld?: () => void) {
    // The service manager's are the master's, and only TCP and Unix sockets are among them.
    if (isDescriptor(order) && !(server instanceof net.Server))
      return openDatagrams(server, order, callback, drain.watchDatagrams)
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
    channel.send({ type: 'socket', seq, query, data: server._getServerData?.(),
      ...(ifNotHeld && { isOnlyIfHeld: true }) })
  }

  function refuseListen (server: Asker, query: SocketQuery, { seq, errno = 0, awaitMaster }: SocketReply,
    callback: TakeHandle)
  {
    indexes.free(query)
    if (!awaitMaster || server.listenerCount('error') > 0) return callback(errno, NONE)
    waiting.set(seq, (reply) => callback(reply.errno ?? 0, NONE))
    channel.send({ type: 'bind-failed', seq, errno, query })
  }

  /**
   * Whoever looks for a free port closes its server in the turn in which it listens. One that stays would not be
   * served.
   */
  function takePlaceholder (server: Asker, query: SocketQuery, callback: TakeHandle) {
    const handle = createPlaceholderHandle(query, () => indexes.free(query))
    server.once('listening', () => setImmediate(() => handle.isOpen() && failListen(server, 'EADDRINUSE', query)))
    callback(0, handle)
  }

  function releaseOnClose (handle: SocketHandle | DatagramHandle, query: SocketQuery, key: string) {
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

/** Listens in this process alone, as if there were no cluster. */
function openOwn (server: Asker, order: ClusterQuery, callback: TakeHandle,
  { latePorts, ifTaken }: { latePorts: LatePorts, ifTaken: () => void })
{
  const handle = server instanceof net.Server
    ? bindHandle(order)
    : bindDatagrams({ ...order, addressType: server.type })
  if (handle === EADDRINUSE) return ifTaken()
  if (typeof handle === 'number') return callback(handle, NONE)
  latePorts.keep(server)
  callback(0, handle)
}

function toQuery ({ address, port, addressType, fd, flags }: ClusterQuery,
  indexes: ReturnType<typeof createIndexes>): SocketQuery
{
  // The worker's working folder may differ from the master's.
  const isPath = port < 0 && typeof address === 'string' && !isAbstract(address) && process.platform !== 'win32'
  const query = { address: isPath ? path.resolve(address) : address, port, addressType, fd, flags, index: 0 }
  query.index = indexes.take(query)
  return query
}

/** The permissions that node gives to a Unix socket, see net.Server's `listen`. */
function socketMode (order: ListenOrder) {
  // Node has deprecated the call that only reads the mask.
  const mask = process.umask(0o077)
  process.umask(mask)
  const { readableAll, writableAll } = isOptions(order) ? order : {}
  return (0o777 & ~mask) | (readableAll ? 0o444 : 0) | (writableAll ? 0o222 : 0)
}

/** `address`: of a Unix socket, which has no path then: unix(7) */
function isAbstract (address: string) {
  return address.startsWith('\0')
}

/** Numbers the servers of this process that share one address, lowest free number first. */
function createIndexes () {
  const taken: Set<string> = new Set()
  return { take (query: SocketQuery) {
    let index = 0
    while (taken.has(socketKey({ ...query, index }))) index++
    taken.add(socketKey({ ...query, index }))
    return index
  }, free (query: SocketQuery) {
    taken.delete(socketKey(query))
  } }
}

function addressOf (server: net.Server) {
  const address = server.address()
  if (address === null) return 'unknown'
  if (typeof address === 'string') return `unix:${isAbstract(address) ? `@${address.slice(1)}` : address}`
  return `${schemeOf(server)}://${hostOf(address)}:${address.port}`
}

// The methods tell, so that a worker does not load the TLS and HTTP/2 modules that its app never uses.
function schemeOf (server: AnyServer) {
  const isTls = typeof server.setSecureContext === 'function'
  if (isHttp(server)) return isTls ? 'https' : 'http'
  return isTls ? 'tls' : 'tcp'
}

export function isHttp (server: AnyServer) {
  return typeof (server.closeIdleConnections ?? server.updateSettings) === 'function'
}

/** `address`: a host that a person can open: any-address reads as localhost */
function hostOf ({ address, family }: net.AddressInfo) {
  if (address === '::' || address === '0.0.0.0') return 'localhost'
  return family === 'IPv6' ? `[${address}]` : address
}
