import { adoptSocketGroup, bindSocketGroup } from './socket-group.js'
import { stickyProgram } from './sticky-program.js'

/** @typedef {import('./socket-group.js').SocketGroup} SocketGroup */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */
/** @typedef {{ worker: number, slot: number, isOrphan: boolean }} Serving a worker that is ready */
/** @typedef {ReturnType<typeof createSticky>} Sticky */

/** The socket of a removed slot stays open this long, so that other workers answer its last clients. */
const REMOVED_GRACE_MS = 5000

/**
 * Keeps each client address with one slot. While a slot has no ready worker, the worker of another slot answers for it;
 * after a while the kernel sends its new clients there.
 * @param {object} parts
 * @param {import('./socket-group.js').Calls} parts.calls
 * @param {number} parts.failoverMs  how long a slot may be without a worker that is ready
 * @param {boolean} parts.isHeldBack  whether workers accept nothing before their app has answered a probe
 * @param {() => number} parts.size  how many slots there are
 * @param {() => Serving[]} parts.serving
 * @param {(worker: number, message: import('../../workers/protocol.js').ToWorker, handle?: SocketHandle) => void} parts.tell
 * @param {() => number} [parts.now]  monotonic, ms
 */
export function createSticky ({ calls, failoverMs, isHeldBack, size, serving, tell, now = () => performance.now() }) {
  /** @type {Map<string, Routes>} by the key of a socket */
  const routes = new Map()
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    /** @param {string} key @param {import('../../workers/protocol.js').SocketQuery} query @returns {SocketGroup | { errno: number }} */
    bind (key, query) {
      const group = bindSocketGroup(calls, query, Math.max(1, size()))
      if ('errno' in group) return group
      const errno = isHeldBack ? 0 : group.listen()
      if (errno !== 0) {
        group.close()
        return { errno }
      }
      beginRoute(key, group)
      return group
    },

    /** @param {string} key @param {SocketHandle[]} handles  of a master before */
    adopt (key, handles) {
      const group = adoptSocketGroup(calls, handles)
      beginRoute(key, group)
      return group
    },

    /** @param {string} key */
    forget (key) { routes.delete(key) },

    /** A slot keeps its socket. */
    release () {},

    /** What waits at the socket of a slot is accepted by another worker while its own is away. */
    queueOf: () => 0,

    /** @param {string} _key @param {{ slot: number }} who @returns {number} of its socket in the group */
    numberFor: (_key, { slot }) => slot,

    /** A worker has come or gone. */
    look: lookAtRoutes
  }

  /** @param {string} key @param {SocketGroup} group */
  function beginRoute (key, group) {
    routes.set(key, { group, awaySince: new Map(), known: Math.max(1, size()), standIns: new Map(), removedAt: null })
  }

  /** @param {{ usersOf: (key: string) => Set<number> }} parts  `usersOf`: the workers that have a socket */
  function lookAtRoutes ({ usersOf }) {
    clearTimeout(timer)
    const waits = [...routes].map(([key, route]) => lookAt(key, route, usersOf(key)))
    const soonest = Math.min(...waits)
    if (soonest < Infinity) timer = setTimeout(lookAtRoutes, Math.ceil(soonest), { usersOf }).unref()
  }

  /** @param {string} key @param {Routes} route @param {Set<number>} users @returns {number} ms until it has to be looked at again */
  function lookAt (key, route, users) {
    const { group, awaySince } = route
    const present = Array.from({ length: size() }, (_, index) => index + 1)
    // The cluster ends.
    if (present.length === 0 || !group.isListening()) return Infinity
    group.member(present.length)
    const ready = serving().filter(({ worker, isOrphan }) => isOrphan || users.has(worker))
    const at = now()
    for (const slot of present) {
      if (ready.some((each) => each.slot === slot)) {
        awaySince.delete(slot)
        route.known = Math.max(route.known, slot)
      } else if (!awaySince.has(slot)) {
        // An added slot has no clients yet.
        awaySince.set(slot, slot <= route.known ? at : -Infinity)
      }
    }
    const waits = present.map((slot) => Number(awaySince.get(slot) ?? Infinity) + failoverMs - at)
    const near = present.filter((_, index) => waits[index] > 0)
    const chosen = near.length > 0 ? near : present
    group.pick(stickyProgram(chosen.map((slot) => slot - 1)))
    standIn(key, route, { chosen, candidates: ready.filter(({ isOrphan }) => !isOrphan) })
    return Math.min(...waits.filter((wait) => wait > 0), dropRemoved(key, route, { size: present.length, at }))
  }

  /** @param {string} key @param {Routes} route @param {{ chosen: number[], candidates: Serving[] }} who */
  function standIn (key, { group, standIns }, { chosen, candidates }) {
    for (const [index, handle] of group.handles().entries()) {
      const slot = index + 1
      const current = standIns.get(slot)
      const isWanted = !chosen.includes(slot)
      if (current !== undefined && isWanted && candidates.some(({ worker }) => worker === current)) continue
      if (current !== undefined) {
        tell(current, { type: 'accept-no-more', key, name: slot })
        standIns.delete(slot)
      }
      if (!isWanted || candidates.length === 0) continue
      const { worker } = candidates[slot % candidates.length]
      standIns.set(slot, worker)
      tell(worker, { type: 'accept-also', key, name: slot }, handle)
    }
  }

  /** @param {string} key @param {Routes} route @param {{ size: number, at: number }} now @returns {number} ms until they can go */
  function dropRemoved (key, route, { size, at }) {
    if (route.group.handles().length <= size) {
      route.removedAt = null
      return Infinity
    }
    route.removedAt ??= at
    const wait = route.removedAt + REMOVED_GRACE_MS - at
    if (wait > 0) return wait
    for (const [slot, worker] of route.standIns) {
      if (slot <= size) continue
      tell(worker, { type: 'accept-no-more', key, name: slot })
      route.standIns.delete(slot)
    }
    route.known = size
    route.group.shrink(size)
    return Infinity
  }
}

/**
 * @typedef {object} Routes
 * @property {SocketGroup} group
 * @property {Map<number, number>} awaySince  monotonic ms since which a slot has no worker that is ready
 * @property {number} known  how many slots have had a worker, or are about to
 * @property {Map<number, number>} standIns  the worker that accepts for a slot that gets no new connections, by slot
 * @property {number | null} removedAt  since when there are more sockets than slots
 */
