import { fstatSync } from 'node:fs'
import { socketsOf } from '../system/open-sockets.js'
import { adoptSocketGroup, bindSocketGroup } from './socket-group.js'
import { steeringProgram } from './steering-program.js'

/** @typedef {ReturnType<typeof createSteering>} Steering */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {{ worker: number, pid: number | null, isServing: boolean }} Living a worker whose process runs */

/**
 * Gives each worker a listening socket of its own, and has the kernel send new connections only to those that serve: a new
 * worker can be probed before it gets any, and one that is to end gets none any more, whatever it knows of all this.
 * What waits at the socket of a worker that has died is for the worker that gets this socket next.
 * @param {object} parts
 * @param {import('./socket-group.js').Calls} parts.calls
 * @param {() => Living[]} parts.living
 */
export function createSteering ({ calls, living }) {
  /** @type {Map<string, Route>} by the key of a socket */
  const routes = new Map()

  return {
    /** @param {string} key @param {import('../../workers/protocol.js').SocketQuery} query @returns {import('./socket-group.js').SocketGroup | { errno: number }} */
    bind (key, query) {
      const group = bindSocketGroup(calls, query, 1)
      if ('errno' in group) return group
      const errno = group.listen()
      if (errno !== 0) {
        group.close()
        return { errno }
      }
      routes.set(key, { group, holders: [null] })
      return group
    },

    /** @param {string} key @param {SocketHandle[]} handles  of a master before */
    adopt (key, handles) {
      const group = adoptSocketGroup(calls, handles)
      routes.set(key, { group, holders: handles.map(() => null) })
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

    /** @param {number} worker @returns {number} how many connections wait for it */
    queueOf (worker) {
      return [...routes.values()].reduce((sum, { group, holders }) => sum + (holders.includes(worker) ? group.queueLength(holders.indexOf(worker) + 1) : 0), 0)
    },

    /** A worker has come or gone. */
    look () {
      const all = living()
      for (const { holders } of routes.values()) {
        holders.forEach((holder, index) => { if (!all.some(({ worker }) => worker === holder)) holders[index] = null })
      }
      noteOrphans()
      const serving = all.filter(({ isServing }) => isServing).map(({ worker }) => worker)
      for (const route of routes.values()) steer(route, serving)
    }
  }

  /** @param {string} key */
  function mustFind (key) {
    const route = routes.get(key)
    if (!route) throw new Error(`no sockets are known for ${key}`)
    return route
  }

  /** @param {Route} route @param {number[]} serving */
  function steer ({ group, holders }, serving) {
    const indexes = (/** @type {(holder: number | null) => boolean} */ isWanted) => holders.flatMap((holder, index) => isWanted(holder) ? [index] : [])
    // Where nobody serves, connections wait for whoever does next.
    const choices = [indexes((holder) => holder !== null && serving.includes(holder)), indexes((holder) => holder !== null), indexes(() => true)]
    group.pick(steeringProgram(choices.find((each) => each.length > 0) ?? [0], []))
  }

  /** Workers of a master before have sockets that this one has not given them. */
  function noteOrphans () {
    const known = new Set([...routes.values()].flatMap(({ holders }) => holders))
    for (const { worker, pid } of living()) {
      if (pid === null || known.has(worker)) continue
      const held = socketsOf(pid)
      for (const { group, holders } of routes.values()) {
        const index = group.handles().findIndex(({ fd }) => held.has(fstatSync(fd).ino))
        if (index !== -1) holders[index] ??= worker
      }
    }
  }
}

/** @typedef {{ group: import('./socket-group.js').SocketGroup, holders: (number | null)[] }} Route `holders`: the worker that has each socket */
