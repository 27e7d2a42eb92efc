import net from 'node:net'
import { constants } from 'node:os'
import { fstatSocket } from '../../workers/socket-file.ts'
import { toError } from '../errors.ts'
import { loadPosix } from '../system/posix.ts'
import { canStage, type stageUnixPath } from './unix-staging.ts'
import type { Socket } from './sockets.ts'
import type { SocketQuery } from '../../workers/protocol.ts'

/** Workers that are started together, to take the place of others. */
export type Generations = {
  /** null: it takes the place of one that has gone, or of none */
  of: (worker: number) => string | null,
  /**
   * that is under way; `isRevoked`: it makes way for
   * those before it; `isAtOnce`: all of them are ready before any other worker ends
   */
  rollout: () => { generation: string, isRevoked: boolean, isAtOnce: boolean } | null,
  /** false: it is about to end */
  stays: (worker: number) => boolean
}

const NUMBERED = /^(.*:\d+)@(\d+)$/s
const EINVAL = -constants.errno.EINVAL
const ENOENT = -constants.errno.ENOENT

/**
 * One path leads to one Unix socket. So the workers of a rollout have a new one, which nobody finds before the first of
 * them is ready, or in a restart all of them; then the path leads there, and the others accept what waits at theirs
 * until nothing does. Whoever takes the place of a worker that has gone gets the socket to which the path leads. Each
 * socket is held by the key of the address and, but for the first, a number.
 */
export function createUnixGenerations ({ held, ready, stage, generations, drop, expire, isClosed, onMade }: {
  /** of all addresses */
  held: Map<string, Socket>,
  /** workers */
  ready: ReadonlySet<number>,
  /** null: all workers have the same socket */
  stage: typeof stageUnixPath | null,
  generations: Generations,
  drop: (key: string) => void,
  /** lets it go if nobody asks for it soon */
  expire: (key: string) => void,
  isClosed: () => boolean,
  onMade: () => void
}) {
  /** Keys of the sockets to which the paths lead, by the key of the address. */
  const shown: Map<string, string> = new Map()
  const coming: Map<string, { generation: string | null, until: Promise<void> }> = new Map()
  /** What has just failed, by the key of the address. */
  const failed: Map<string, number> = new Map()
  let last = 0
  // Another program may ask for as many paths as it likes: one after the other.
  let turn = Promise.resolve()
  for (const [key, socket] of held) if (socket.path) adopt(key, socket)
  for (const key of shown.values()) held.get(key)?.path?.restore()

  return {
    /**
     * @param base the key of an address
     * @returns of the socket that the worker is to have; `until`: it has to ask again then
     */
    place (base: string,
      { worker, query }: { worker: number, query: SocketQuery }): { key: string, errno?: number, until?: Promise<void> }
    {
      const key = shownFor(base)
      const failure = failed.get(base)
      if (failure !== undefined) return { key, errno: failure }
      const errno = held.get(key)?.path?.restore()
      // No path leads to this socket any more, so the next request gets a new one.
      if (errno === ENOENT) drop(key)
      else if (errno) return { key, errno }
      const chosen = choose(base, { worker, query })
      return { key: chosen,
        until: coming.get(chosen)?.until ??
          (chosen === base || held.has(chosen) ? undefined : make(chosen, query, generations.of(worker))) }
    },

    /** Null: not in this way */
    begin: (key: string, query: SocketQuery): Promise<void> | null =>
      stage && isPath(query) ? make(key, query, null) : null,

    /** A worker is ready, or about to end: paths lead to those that will serve on. */
    look () {
      for (const base of new Set([...held].flatMap(([key, { path }]) => path ? baseOf(key) : []))) {
        const now = held.get(shownFor(base))
        const others = [...held].filter(([other, its]) => isHidden(other, its) && baseOf(other) === base).sort(([, one],
          [, two]) => countServing(two) - countServing(one)
        )
        const [better, socket] = others.find(([, its]) =>
          countServing(its) > 0 && !isShut(its) && now && isBetter(its, now)
        ) ?? []
        if (better === undefined || !socket) continue
        const rollout = generations.rollout()
        // Whoever comes in the place of those that had taken over is one of them.
        if (rollout && socket.isShown !== false) socket.generation = `${rollout.generation} back`
        show(better)
      }
    },

    /** Nobody finds what no path leads to. */
    dropUnused (isUnused: (key: string) => boolean) {
      for (const [key, socket] of [...held]) if (isHidden(key, socket) && isUnused(key) && !socket.isAdopted) drop(key)
    },

    /** @returns at how many of its sockets somebody waits whom no other worker will serve */
    queueOf (worker: number): number {
      const all = [...held].filter(([, { path }]) => path)
      // What the workers of another master have is not known.
      const isOrphan = !all.some(([, { users }]) => users.has(worker))
      return all.filter(([key, socket]) =>
        isHidden(key, socket) && (isOrphan || socket.users.has(worker)) && stateOf(socket).isWaitedFor
      ).length
    },

    /** `inode`: of a socket. Returns a connection to it, wherever its path leads. */
    connect (inode: number): net.Socket | null {
      const found = [...held.values()].find(({ path, handle }) => path && fstatSocket(fdOf(handle)).ino === inode)
      return found?.path ? net.connect({ path: found.path.hidden }) : null
    },

    /** `key`: is not held any more */
    forget (key: string) {
      if (shown.get(baseOf(key)) === key) shown.delete(baseOf(key))
    },

    isHidden
  }

  /** `socket`: of a master before */
  function adopt (key: string, socket: Socket) {
    const base = baseOf(key)
    last = Math.max(last, Number(NUMBERED.exec(key)?.[2] ?? 0))
    Object.assign(socket, { isAdopted: true, isShown: true })
    if (socket.path?.isShown() || !held.get(shown.get(base) ?? '')?.path?.isShown()) shown.set(base, key)
  }

  function choose (base: string, { worker, query }: { worker: number, query: SocketQuery }): string {
    const key = shownFor(base)
    const socket = held.get(key)
    if (!stage || (socket && !socket.path)) return key
    const hidden = [...coming, ...[...held].filter(([, { isShown }]) => isShown === false)].filter(([other]) =>
      other !== key && baseOf(other) === base
    )
    if (!socket) return coming.has(key) ? key : hidden[0]?.[0] ?? base
    const mayStage = canStage(query)
    if (isShut(socket)) {
      if (!mayStage) drop(key)
      return mayStage ? hidden[0]?.[0] ?? numbered(base) : base
    }
    const generation = generations.of(worker)
    if (!mayStage || generation === null || generation === socket.generation ||
      !(socket.isAdopted || [...socket.users].some((user) => ready.has(user)))) return key
    return hidden.find(([, its]) => its.generation === generation)?.[0] ?? numbered(base)
  }

  function shownFor (base: string): string {
    return shown.get(base) ?? base
  }

  function countServing ({ users }: Socket): number {
    return [...users].filter((worker) => ready.has(worker) && generations.stays(worker)).length
  }

  /** `other`: at which some serve; `now`: to which the path leads */
  function isBetter (other: Socket, now: Socket): boolean {
    const rollout = generations.rollout()
    if (countServing(now) === 0 || isShut(now)) return true
    // It is new. Before an old worker of a restart ends, all new ones are ready.
    if (other.isShown === false)
      return !rollout?.isAtOnce || [...now.users].some((worker) => ready.has(worker) && !generations.stays(worker))
    return rollout
      ? rollout.isRevoked && now.generation === rollout.generation
      : countServing(now) < countServing(other)
  }

  function numbered (base: string) {
    return `${base}@${++last}`
  }

  function make (key: string, query: SocketQuery, generation: string | null): Promise<void> {
    const until = turn.then(async () => {
      const isFirst = !held.has(shownFor(baseOf(key)))
      const bound = await (stage as NonNullable<typeof stage>)(query, { isFirst }).catch((error) => ({
        errno: toError(error).errno ?? EINVAL
      }))
      coming.delete(key)
      if (bound.errno !== undefined) return fail(key, bound.errno)
      held.set(key, { ...bound, query, isEstablished: false, users: new Set(), generation, isShown: false })
      onMade()
      const errno = isFirst && !isClosed() ? show(key) : 0
      if (errno !== 0 || isClosed()) {
        drop(key)
        fail(key, errno)
      } else expire(key)
    })
    turn = until
    coming.set(key, { generation, until })
    return until
  }

  /** Those that wait for it ask again at once. `errno`: 0: they get another one. */
  function fail (key: string, errno: number) {
    const base = baseOf(key)
    if (errno === 0) return
    failed.set(base, errno)
    setImmediate(() => failed.delete(base))
  }

  /** @returns 0, or an error number: the path leads elsewhere */
  function show (key: string): number {
    const base = baseOf(key)
    const socket = held.get(key)
    const before = shownFor(base)
    const old = before === key ? undefined : held.get(before)
    const errno = socket?.path?.show(old?.path?.memory ?? null) ?? 0
    if (errno !== 0 || !socket) return errno
    socket.isShown = true
    shown.set(base, key)
    old?.path?.hide()
    if (old?.users.size === 0) old.isAdopted ? expire(before) : drop(before)
    return 0
  }

  /** Tells whether it has a path that does not lead to it */
  function isHidden (key: string, { path }: Socket): boolean {
    return path !== undefined && shownFor(baseOf(key)) !== key
  }
}

/** @returns that of the address */
export function baseOf (key: string): string {
  return NUMBERED.exec(key)?.[1] ?? key
}

function isPath ({ address, port }: SocketQuery) {
  return port === -1 && Boolean(address?.startsWith('/'))
}

/** Tells whether a worker has shut it down for all */
function isShut (socket: Socket): boolean {
  return stateOf(socket).isShut
}

function stateOf ({ handle }: Socket) {
  return loadPosix()?.lookAtUnix(fdOf(handle)) ?? { isWaitedFor: false, isShut: false }
}

/** `handle`: of a Unix socket */
function fdOf (handle: Socket['handle']) {
  return 'fd' in handle ? handle.fd : -1
}
