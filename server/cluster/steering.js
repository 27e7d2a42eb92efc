import net from 'node:net'
import { getSystemErrorName } from 'node:util'
import { socketsOf } from '../system/open-sockets.js'
import { fstatSocket } from '../../workers/socket-file.js'
import { adoptSocketGroup, bindSocketGroup, placeOf } from './socket-group.js'
import { probesOnlyProgram, steeringProgram } from './steering-program.js'

/** Where a socket answers that is bound to any address; a machine without IPv6 has the second one alone. @type {Record<string, string[]>} */
const LOOPBACK = { '0.0.0.0': ['127.0.0.1'], '::': ['::1', '127.0.0.1'] }

/** @typedef {ReturnType<typeof createSteering>} Steering */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */
/**
 * @typedef {object} Living  a worker whose process runs
 * @property {number} worker
 * @property {boolean} isServing
 * @property {(() => number[]) | null} processes  what it consists of, where another master has started it; null: this one has
 */

/**
 * Gives each worker a listening socket of its own, and has the kernel send new connections only to those that serve: a new
 * worker can be probed before it gets any, and one that is to end gets none any more, whatever it knows of all this.
 * What waits at the socket of a worker that has died is for the worker that gets this socket next.
 * @param {object} parts
 * @param {import('./socket-group.js').Calls} parts.calls
 * @param {() => Living[]} parts.living
 * @param {boolean} [parts.isHeldBack]  as long as nobody serves, clients wait until somebody does
 */
export function createSteering ({ calls, living, isHeldBack = false }) {
  /** @type {Map<string, Route>} by the key of a socket */
  const routes = new Map()
  /** Those of another master whose sockets are known. @type {Set<number>} */
  const noted = new Set()

  return {
    /** @param {string} key @param {import('../../workers/protocol.js').SocketQuery} query @returns {import('./socket-group.js').SocketGroup | { errno: number }} */
    bind (key, query) {
      const group = bindSocketGroup(calls, query, 1)
      if ('errno' in group) return group
      const route = { group, holders: [null], probes: new Set() }
      holdBack(route, listServing())
      const errno = group.listen()
      if (errno !== 0) {
        group.close()
        return { errno }
      }
      routes.set(key, route)
      return group
    },

    /** @param {string} key @param {SocketHandle[]} handles  of a master before */
    adopt (key, handles) {
      const group = adoptSocketGroup(calls, handles)
      routes.set(key, { group, holders: handles.map(() => null), probes: new Set() })
      return group
    },

    /** @param {string} key */
    forget (key) { routes.delete(key) },

    /** @param {string} key @param {{ worker: number }} who @returns {number} of its socket in the group; of a new one where all others are held */
    numberFor (key, { worker }) {
      const { group, holders } = mustFind(key)
      const at = holders.indexOf(worker)
      if (at !== -1) return at + 1
      noteOrphans()
      const free = holders.flatMap((holder, index) => holder === null ? [index + 1] : [])
      const [first] = free.sort((a, b) => group.queueLength(b) - group.queueLength(a))
      const number = first ?? holders.length + 1
      holders[number - 1] = worker
      return number
    },

    /** @param {string} key @param {number} worker  has closed its socket */
    release (key, worker) {
      const { holders = [] } = routes.get(key) ?? {}
      if (holders.includes(worker)) holders[holders.indexOf(worker)] = null
    },

    /** @param {number} worker @returns {number} how many connections wait for it */
    queueOf (worker) {
      return [...routes.values()].reduce((sum, { group, holders }) => sum + (holders.includes(worker) ? group.queueLength(holders.indexOf(worker) + 1) : 0), 0)
    },

    /**
     * A connection to one socket of a group, whoever else serves: the kernel knows it by the port that it comes from.
     * @param {number} inode of that socket @returns {net.Socket | null} null: it is in no group
     */
    connect (inode) {
      for (const route of routes.values()) {
        const index = indexOf(route, inode)
        if (index !== -1) return connectTo(route, index)
      }
      return null
    },

    /** A worker has come or gone. */
    look () {
      const all = living()
      for (const { holders } of routes.values()) {
        holders.forEach((holder, index) => { if (!all.some(({ worker }) => worker === holder)) holders[index] = null })
      }
      noteOrphans()
      for (const route of routes.values()) steer(route)
    }
  }

  /** @param {Route} route @param {number} index */
  function connectTo (route, index) {
    const { handle, address, port } = bindBeside(route.group)
    const probe = { port: placeOf(handle).port, index }
    route.probes.add(probe)
    steer(route)
    const socket = new net.Socket(/** @type {net.SocketConstructorOpts} */ ({ handle, manualStart: true }))
    socket.once('close', () => {
      route.probes.delete(probe)
      steer(route)
    })
    return socket.connect({ host: address, port })
  }

  /** @param {string} key */
  function mustFind (key) {
    const route = routes.get(key)
    if (!route) throw new Error(`no sockets are known for ${key}`)
    return route
  }

  /** @returns {number[]} workers */
  function listServing () {
    return living().filter(({ isServing }) => isServing).map(({ worker }) => worker)
  }

  /** @param {Route} route @param {number[]} serving */
  function holdBack ({ group, holders, probes }, serving) {
    group.take(isHeldBack && !holders.some((holder) => holder !== null && serving.includes(holder)) ? probesOnlyProgram([...probes]) : null)
  }

  /** @param {Route} route */
  function steer (route) {
    const { group, holders, probes } = route
    const serving = listServing()
    holdBack(route, serving)
    const indexes = (/** @type {(holder: number | null) => boolean} */ isWanted) => holders.flatMap((holder, index) => isWanted(holder) ? [index] : [])
    // Where nobody serves, connections wait for whoever does next.
    const choices = [indexes((holder) => holder !== null && serving.includes(holder)), indexes((holder) => holder !== null), indexes(() => true)]
    group.pick(steeringProgram(choices.find((each) => each.length > 0) ?? [0], [...probes]))
  }

  /** Workers of another master have sockets that this one has not given them. */
  function noteOrphans () {
    for (const { worker, processes } of living()) {
      if (processes === null || noted.has(worker)) continue
      noted.add(worker)
      const held = new Set(processes().flatMap((pid) => [...socketsOf(pid)]))
      for (const { group, holders } of routes.values()) {
        const index = group.handles().findIndex(({ fd }) => held.has(fstatSocket(fd).ino))
        if (index !== -1) holders[index] ??= worker
      }
    }
  }
}

/** @param {Route} route @param {number} inode */
function indexOf ({ group }, inode) {
  return group.handles().findIndex(({ fd }) => fstatSocket(fd).ino === inode)
}

/**
 * Binds a socket at the address of a group, or at the loopback one where that is any, and at a port that nobody has there.
 * @param {import('./socket-group.js').SocketGroup} group
 * @returns {{ handle: SocketHandle, address: string, port: number }} `address`, `port`: to connect to
 */
function bindBeside ({ handle: listener }) {
  const { address, port } = placeOf(listener)
  let errno = 0
  for (const own of LOOPBACK[address] ?? [address]) {
    const handle = net._createServerHandle(own, 0, net.isIPv6(own.split('%')[0]) ? 6 : 4)
    if (typeof handle !== 'number') return { handle, address: own, port }
    errno = handle
  }
  throw new Error(`no connection can be made to ${address}: ${getSystemErrorName(errno)}`)
}

/**
 * @typedef {object} Route
 * @property {import('./socket-group.js').SocketGroup} group
 * @property {(number | null)[]} holders  the worker that has each socket
 * @property {Set<{ port: number, index: number }>} probes  connections to a certain one
 */
