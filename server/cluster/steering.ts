import net from 'node:net'
import { getSystemErrorName } from 'node:util'
import { socketsOf } from '../system/open-sockets.ts'
import { fstatSocket } from '../../workers/socket-file.ts'
import { adoptSocketGroup, bindSocketGroup, placeOf, type Calls, type SocketGroup } from './socket-group.ts'
import { allButProgram, probesOnlyProgram, steeringProgram } from './steering-program.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { SocketQuery } from '../../workers/protocol.ts'

/** Where a socket answers that is bound to any address; a machine without IPv6 has the second one alone. */
const LOOPBACK: Record<string, string[]> = { '0.0.0.0': ['127.0.0.1'], '::': ['::1', '127.0.0.1'] }

export type Steering = ReturnType<typeof createSteering>
/** a worker whose process runs */
export type Living = {
  worker: number,
  isServing: boolean,
  /** it has served, and is to end */
  isLeaving: boolean,
  /** its main process has ended, and what that had started is told to end: it accepts nothing any more */
  isLost?: boolean,
  /** what it consists of, where another master has started it; null: this one has */
  processes: (() => number[]) | null
}

/**
 * Gives each worker a listening socket of its own, and has the kernel send new connections only to those that serve: a
 * new worker can be probed before it gets any, and one that is to end gets none any more, whatever it knows of all
 * this. What waits at the socket of a worker that has died is for the worker that gets this socket next.
 */
export function createSteering ({ calls, living, isHeldBack = false }: {
  calls: Calls,
  living: () => Living[],
  /** as long as nobody serves, clients wait until somebody does */
  isHeldBack?: boolean
}) {
  /** by the key of a socket */
  const routes: Map<string, Route> = new Map()
  /** Those of another master whose sockets are known. */
  const noted: Set<number> = new Set()
  /** The workers that have shut a socket down, by its inode. */
  const ended: Map<number, number> = new Map()

  return {
    bind (key: string, query: SocketQuery): SocketGroup | { errno: number } {
      const group = bindSocketGroup(calls, query, 1)
      if ('errno' in group) return group
      const route = newRoute(group)
      direct(route)
      const errno = group.listen()
      if (errno !== 0) {
        group.close()
        return { errno }
      }
      routes.set(key, route)
      return group
    },

    /** `handles`: of a master before */
    adopt (key: string, handles: SocketHandle[]) {
      const group = adoptSocketGroup(calls, handles)
      routes.set(key, { ...newRoute(group), isSure: false })
      return group
    },

    forget (key: string) {
      routes.delete(key)
    },

    /** @returns of its socket in the group; of a new one where all others are held */
    numberFor (key: string, { worker }: { worker: number }): number {
      const route = mustFind(key)
      mend(route)
      noteOrphans()
      const { group, holders } = route
      const handles = group.handles()
      const lost = new Set(living().flatMap((each) => each.isLost ? each.worker : []))
      const [first] = handles.filter((handle) => lost.has(holders.get(handle) ?? NaN) || !holders.has(handle)).sort((a,
        b) => group.queueLength(b) - group.queueLength(a)
      )
      const handle = handles.find((each) => holders.get(each) === worker) ?? first ??
        group.member(handles.length + 1).handle
      // Who asks for one that cannot be made hears why.
      if (!handle) return handles.length + 1
      holders.set(handle, worker)
      return handles.indexOf(handle) + 1
    },

    /** `worker`: has closed its socket */
    release (key: string, worker: number) {
      const { holders } = routes.get(key) ?? {}
      for (const [handle, holder] of holders ?? []) if (holder === worker) holders?.delete(handle)
    },

    /** @returns how many connections wait for it */
    queueOf (worker: number): number {
      return [...routes.values()].flatMap(({ group, holders }) =>
        [...holders].map(([handle, holder]) => holder === worker ? group.queueLength(handle) : 0)
      ).reduce((sum, each) => sum + each, 0)
    },

    /**
     * A connection to one socket of a group, whoever else serves: the kernel knows it by the port that it comes from.
     * `inode`: of that socket. Returns null: it is in no group.
     */
    connect (inode: number): net.Socket | null {
      for (const route of routes.values()) mend(route)
      // It is refused as a client of it would be, and not asked elsewhere: nobody listens at port 0.
      if (ended.has(inode)) return net.connect(0, '127.0.0.1')
      for (const route of routes.values()) {
        const handle = withInode(route.group, (each) => each === inode)
        if (handle) return connectTo(route, handle)
      }
      return null
    },

    /** A worker has come or gone, or has another socket. `only`: the key of that one. */
    look ({ only }: { only?: string } = {}) {
      const all = living()
      for (const { holders } of routes.values()) {
        for (const [handle, holder] of holders) if (!all.some(({ worker }) => worker === holder)) holders.delete(handle)
      }
      for (const [inode, holder] of ended) if (!all.some(({ worker }) => worker === holder)) ended.delete(inode)
      noteOrphans()
      for (const [key, route] of routes) if ((only ?? key) === key) steer(route)
    },

    /** Tells whether a worker has shut a socket down */
    hasEnded: (): boolean => [...routes.values()].some(({ group }) => group.hasEnded())
  }

  function connectTo (route: Route, probed: SocketHandle) {
    const { handle, address, port } = bindBeside(route.group)
    const probe = { port: placeOf(handle).port, handle: probed }
    route.probes.add(probe)
    steer(route)
    const socket = new net.Socket({ handle, manualStart: true } as net.SocketConstructorOpts)
    socket.once('close', () => {
      route.probes.delete(probe)
      if ([...routes.values()].includes(route)) steer(route)
    })
    return socket.connect({ host: address, port })
  }

  function mustFind (key: string) {
    const route = routes.get(key)
    if (!route) throw new Error(`no sockets are known for ${key}`)
    return route
  }

  function steer (route: Route) {
    mend(route)
    direct(route)
    if (route.isSure) return
    route.isSure = prove(route, calls, direct)
    direct(route)
  }

  /** A worker may have shut its socket down at any moment. */
  function mend (route: Route) {
    for (const handle of route.group.mend()) {
      route.isSure = false
      const holder = route.holders.get(handle)
      if (holder !== undefined) ended.set(fstatSocket(handle.fd).ino, holder)
      route.holders.delete(handle)
      handle.close()
    }
  }

  /** `checks`: connections that no socket is to take */
  function direct ({ group, holders, probes }: Route, checks: Probe[] = []) {
    const all = living()
    const handles = group.handles()
    const heldBy = (workers: Living[]) =>
      handles.filter((handle) => workers.some(({ worker }) => worker === holders.get(handle)))
    const serving = heldBy(all.filter(({ isServing }) => isServing))
    // Where nobody serves, connections wait for whoever does next.
    const chosen = [serving, heldBy(all), handles].find(({ length }) => length > 0) ?? []
    const indexes = chosen.map((handle) => handles.indexOf(handle))
    // Who leaves may shut its socket down, and the kernel gives the index to the last one: that is to be none of those
    // chosen.
    if (serving.length > 0)
      group.member(Math.max(...indexes) + 1 + heldBy(all.filter(({ isLeaving }) => isLeaving)).length)
    const open = isHeldBack && serving.length === 0 ? [] : chosen
    const toOne = [...probes].filter(({ handle }) => handles.includes(handle))
    group.take(open, checks.length > 0 ? allButProgram(checks) : null)
    group.pick(
      steeringProgram(indexes,
        [...toOne, ...checks].map(({ port, handle }) => ({ port, index: handles.indexOf(handle) })))
    )
    // Whatever index the kernel gives these, they get no client.
    group.take(handles.filter((handle) => !open.includes(handle)), probesOnlyProgram(toOne))
  }

  /** Workers of another master have sockets that this one has not given them. */
  function noteOrphans () {
    for (const { worker, processes } of living()) {
      if (processes === null || noted.has(worker)) continue
      noted.add(worker)
      const held = new Set(processes().flatMap((pid) => [...socketsOf(pid)]))
      for (const { group, holders } of routes.values()) {
        const handle = withInode(group, (inode) => held.has(inode))
        if (handle && !holders.has(handle)) holders.set(handle, worker)
      }
    }
  }
}

/**
 * Finds out in which order the kernel has the sockets of a group, which no call tells: a connection to each index is
 * taken by none, and the one that has met it counts that. No worker sees any of it.
 * @returns false: it cannot be told now
 */
function prove (route: Route, calls: Calls, direct: (route: Route, checks: Probe[]) => void): boolean {
  const handles = [...route.group.handles()]
  if (handles.length === 1) return true
  const besides: ReturnType<typeof bindBeside>[] = []
  try {
    while (besides.length < handles.length) besides.push(bindBeside(route.group))
    direct(route, besides.map(({ handle }, index) => ({ port: placeOf(handle).port, handle: handles[index] })))
    const counts = new Map(handles.map((each) => [each, calls.dropped(each.fd)]))
    const order = besides.flatMap(({ handle: { fd }, address, port }, index) => {
      calls.connect(fd, address, port)
      const met = [handles[index], ...handles].find((each) => calls.dropped(each.fd) !== counts.get(each))
      if (!met) return []
      counts.set(met, calls.dropped(met.fd))
      return [met]
    })
    if (new Set(order).size < handles.length) return false
    route.group.arrange(order)
    return true
  } catch {
    // No connection can be made here.
    return false
  } finally {
    for (const { handle } of besides) handle.close()
  }
}

function newRoute (group: SocketGroup): Route {
  return { group, holders: new Map(), probes: new Set(), isSure: true }
}

function withInode (group: SocketGroup, isWanted: (inode: number) => boolean) {
  return group.handles().find(({ fd }) => isWanted(fstatSocket(fd).ino))
}

/**
 * Binds a socket at the address of a group, or at the loopback one where that is any, and at a port that nobody has
 * there. Returns `address`, `port`: to connect to.
 */
function bindBeside ({ handle: listener }: SocketGroup): { handle: SocketHandle, address: string, port: number } {
  const { address, port } = placeOf(listener)
  let errno = 0
  for (const own of LOOPBACK[address] ?? [address]) {
    const handle = net._createServerHandle(own, 0, net.isIPv6(own.split('%')[0]) ? 6 : 4)
    if (typeof handle !== 'number') return { handle, address: own, port }
    errno = handle
  }
  throw new Error(`no connection can be made to ${address}: ${getSystemErrorName(errno)}`)
}

type Route = {
  group: SocketGroup,
  /** the worker that has a socket */
  holders: Map<SocketHandle, number>,
  /** connections to a certain one */
  probes: Set<Probe>,
  /** the order of its sockets is that of the kernel */
  isSure: boolean
}
/** `port`: that it comes from; `handle`: the socket that it goes to */
type Probe = { port: number, handle: SocketHandle }
