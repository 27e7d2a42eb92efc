import { adoptSocketGroup, bindSocketGroup, type Calls, type SocketGroup } from './socket-group.ts'
import { stickyProgram } from './sticky-program.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { SocketQuery, ToWorker } from '../../workers/protocol.ts'

/** a worker that is ready */
export type Serving = { worker: number, slot: number, isOrphan: boolean }
export type Sticky = ReturnType<typeof createSticky>

/** The socket of a removed slot stays open this long, so that other workers answer its last clients. */
const REMOVED_GRACE_MS = 5000

/**
 * Keeps each client address with one slot. While a slot has no ready worker, the worker of another slot answers for it;
 * after a while the kernel sends its new clients there.
 */
export function createSticky ({ calls, failoverMs, isHeldBack, size, serving, tell, now = () => performance.now() }: {
  calls: Calls,
  /** how long a slot may be without a worker that is ready */
  failoverMs: number,
  /** whether workers accept nothing before their app has answered a probe */
  isHeldBack: boolean,
  /** how many slots there are */
  size: () => number,
  serving: () => Serving[],
  tell: (worker: number, message: ToWorker, handle?: SocketHandle) => void,
  /** monotonic, ms */
  now?: () => number
}) {
  /** by the key of a socket */
  const routes: Map<string, Routes> = new Map()
  let timer: NodeJS.Timeout | undefined

  return {
    bind (key: string, query: SocketQuery): SocketGroup | { errno: number } {
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

    /** `handles`: of a master before */
    adopt (key: string, handles: SocketHandle[]) {
      const group = adoptSocketGroup(calls, handles)
      beginRoute(key, group)
      return group
    },

    forget (key: string) {
      routes.delete(key)
    },

    /** A slot keeps its socket. */
    release () {},

    /** What waits at the socket of a slot is accepted by another worker while its own is away. */
    queueOf: () => 0,

    /** @returns of its socket in the group */
    numberFor: (_key: string, { slot }: { slot: number }): number => slot,

    /** A worker has come or gone. */
    look: lookAtRoutes
  }

  function beginRoute (key: string, group: SocketGroup) {
    routes.set(key, { group, awaySince: new Map(), known: Math.max(1, size()), standIns: new Map(), removedAt: null })
  }

  /** `usersOf`: the workers that have a socket */
  function lookAtRoutes ({ usersOf }: { usersOf: (key: string) => Set<number> }) {
    clearTimeout(timer)
    const waits = [...routes].map(([key, route]) => lookAt(key, route, usersOf(key)))
    const soonest = Math.min(...waits)
    if (soonest < Infinity) timer = setTimeout(lookAtRoutes, Math.ceil(soonest), { usersOf }).unref()
  }

  /** @returns ms until it has to be looked at again */
  function lookAt (key: string, route: Routes, users: Set<number>): number {
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

  function standIn (key: string, { group, standIns }: Routes,
    { chosen, candidates }: { chosen: number[], candidates: Serving[] })
  {
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

  /** @returns ms until they can go */
  function dropRemoved (key: string, route: Routes, { size, at }: { size: number, at: number }): number {
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

type Routes = {
  group: SocketGroup,
  /** monotonic ms since which a slot has no worker that is ready */
  awaySince: Map<number, number>,
  /** how many slots have had a worker, or are about to */
  known: number,
  /** the worker that accepts for a slot that gets no new connections, by slot */
  standIns: Map<number, number>,
  /** since when there are more sockets than slots */
  removedAt: number | null
}
