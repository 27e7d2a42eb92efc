import net from 'node:net'
import { clearInterval, setImmediate, setInterval } from 'node:timers'
import { createDrainLimits } from './drain-limits.ts'
import { createHttp2Sessions } from './http2-sessions.ts'
import { createLastAnswers } from './last-answer.ts'
import { createOpenWork, isOfHttp, isRaw } from './open-work.ts'
import { createTurns } from './turns.ts'
import { createUpgrades } from './upgrades.ts'
import type { AnyServer as Server, AnySocket as Socket, DatagramHandle } from './node-internals.d.ts'
import type { DrainLimits as Limits, Holds, Unfinished } from './protocol.ts'
import type { Requests } from './requests.ts'
import type { Sessions } from './sessions.ts'
import type { LatePorts } from './late-ports.ts'

/** A response that promised keep-alive before the drain may leave an idle connection at any time. */
const LOOK_EVERY_MS = 100
/** Busy clients leave a worker that has been replaced in this time. */
const LEAVE_WITHIN_MS = 100
/** After so many new connections the worker forgets those that the app has passed on. */
const SWEEP_EVERY = 1024

/**
 * Drains this worker: it accepts nothing new, answers what it has, says `Connection: close` with every answer and cuts
 * idle connections only after a grace period, because a client may be sending just then. Long-lived connections and
 * what still moves stay for longer; at the end of their time they end in their own way. Costs nothing per request until
 * the drain begins.
 */
export function createDrain ({ requests, sessions, latePorts, onStart, onHolds, onOverdue, onDrained }: {
  requests: Requests,
  sessions: Pick<Sessions, 'begin' | 'count' | 'has' | 'end'>,
  latePorts: LatePorts,
  onStart: (limits: Limits) => void,
  /** called now and then */
  onHolds: (holds: Holds) => void,
  /** the deadline has passed, and nothing may stay that is left */
  onOverdue: () => void,
  /** called once, when no connection is left */
  onDrained: () => void
}) {
  /** those that listen, or are about to */
  const servers: Set<Server> = new Set()
  /** a server may listen again after it was closed */
  const watched: WeakSet<Server> = new WeakSet()
  /** the server of each open connection */
  const connections: Map<Socket, Server> = new Map()
  const turns = createTurns()
  const http2Sessions = createHttp2Sessions({ turns })
  const upgrades = createUpgrades()
  const lastAnswers = createLastAnswers({ requests, turns })
  /** handles of UDP sockets that other workers have too */
  const datagrams: Set<DatagramHandle> = new Set()
  let state: 'serving' | 'draining' | 'drained' = 'serving'
  /** null: it serves */
  let work: ReturnType<typeof createOpenWork> | null = null
  let drainLimits: ReturnType<typeof createDrainLimits> | null = null
  let looking: NodeJS.Timeout | undefined
  /** By the last look. */
  let sessionCount = 0
  let ownPortGraceMs = 0

  return {
    watch: watchServer,
    watchDatagrams,
    start: (limits: Limits) => beginDrain(limits),

    /** The time of what is long-lived is over. */
    endConnections (how: { spreadMs: number, isLast: boolean }) {
      drainLimits?.endLongLived(how)
    },

    endWithin,
    letGo,
    servers: () => servers,
    countConnections,
    canBeAsked,
    connections: () => connections,
    holdsLongLived,
    unfinished,
    isDraining: () => state !== 'serving',
    isDrained: () => state === 'drained'
  }

  function watchServer (server: Server) {
    servers.add(server)
    if (watched.has(server)) return
    watched.add(server)
    server.on('connection', (socket) => keepConnection(server, socket))
    // The request of a TLS connection is kept at the outer socket.
    if (typeof server.setSecureContext === 'function')
      server.on('secureConnection', (socket) => keepConnection(server, socket))
    if (typeof server.updateSettings === 'function') http2Sessions.watch(server)
    if (server.closeIdleConnections || server.updateSettings) upgrades.watch(server)
    server.on('close', () => servers.delete(server))
  }

  function watchDatagrams (handle: DatagramHandle) {
    datagrams.add(handle)
  }

  function keepConnection (server: Server, socket: Socket) {
    connections.set(socket, server)
    work?.add(socket, server)
    if (connections.size % SWEEP_EVERY === 0) forgetPassedOn()
    socket.once('close', () => {
      forget(socket)
      finishIfEmpty()
    })
  }

  function forget (socket: Socket) {
    connections.delete(socket)
    work?.remove(socket)
  }

  /** A connection that the app has sent to another process belongs to that one now; Node reports nothing of it. */
  function forgetPassedOn () {
    for (const socket of connections.keys()) if (!socket._handle && !socket.destroyed) forget(socket)
  }

  /** @returns how many are open. One of TLS has two sockets here, of which the outer one is not counted */
  function countConnections (): number {
    forgetPassedOn()
    let count = 0
    for (const socket of connections.keys()) if (!socket.encrypted) count++
    return count
  }

  /** Tells whether there is a connection on which another request may come */
  function canBeAsked (): boolean {
    forgetPassedOn()
    return http2Sessions.count() > 0 || [...connections].some(([socket, server]) => isOfHttp(socket, server))
  }

  /** Tells whether there is a connection that has to be ended in its own way */
  function holdsLongLived (): boolean {
    return work ? work.longLived.count() > 0 : [...connections].some(([socket, server]) => isRaw(socket, server))
  }

  /** @returns what has not come to its end by itself, if this process ends now; null: nothing */
  function unfinished (): Unfinished | null {
    if (!work) return null
    const { cut, longLived: { closed } } = work
    const open = state === 'drained'
      ? { requests: 0, connections: 0 }
      : { requests: requests.count(), connections: countConnections() }
    const all = { requests: cut.requests + open.requests, connections: cut.connections + open.connections,
      stalled: cut.stalled, closed }
    return all.requests + all.connections + closed.webSockets + closed.eventStreams + closed.connections > 0
      ? all
      : null
  }

  /** `hurries`: its clients leave with their next answer */
  function beginDrain (limits: Limits, { hurries = limits.isLast }: { hurries?: boolean } = {}) {
    if (state !== 'serving') return
    state = 'draining'
    onStart(limits)
    sessions.begin()
    // http.Server.close() would cut idle keep-alive connections at once.
    for (const server of servers) {
      // A client has been told of it, and is about to connect.
      if (latePorts.isOwn(server)) continue
      net.Server.prototype.close.call(server)
      closeAgainWithoutError(server)
    }
    const leaveWithinMs = hurries ? 0 : Math.min(LEAVE_WITHIN_MS, limits.deadlineMs / 10)
    turns.give(connections.keys(), leaveWithinMs)
    lastAnswers.begin(new Set([...servers, ...connections.values()]))
    http2Sessions.leave(leaveWithinMs)
    // EBADF: it was closed meanwhile.
    for (const handle of datagrams) handle.recvStop()
    ownPortGraceMs = limits.idleGraceMs
    work = createOpenWork({ limits, upgrades, http2Sessions, sessions })
    for (const [socket, server] of connections) work.add(socket, server)
    drainLimits = createDrainLimits({ limits, work, onEnd: sessions.end, onHolds, onOverdue })
    // The look follows one turn after the timer: what came while this process had no CPU is read in between.
    looking = setInterval(() => setImmediate(look), LOOK_EVERY_MS)
    look()
  }

  /** This process ends soon, whether it drains already or not. */
  function endWithin (ms: number) {
    if (state === 'serving')
      beginDrain({ idleGraceMs: ms, deadlineMs: ms, stalledMs: 0, longLivedMs: 0, spreadMs: ms, isLast: false }, {
        hurries: true
      })
    else drainLimits?.endLongLived({ spreadMs: ms / 2, isLast: false })
  }

  /**
   * An app that closes what it has at SIGTERM ends by itself, as it would without a master: nothing here keeps it
   * running.
   */
  function letGo () {
    looking?.unref()
    process.channel?.unref()
  }

  function look () {
    forgetPassedOn()
    // There may be too many to count them with each connection that closes.
    sessionCount = sessions.count()
    finishIfEmpty()
    if (state === 'draining') drainLimits?.look(sessionCount)
  }

  function finishIfEmpty () {
    if (state !== 'draining' || connections.size > 0 || sessionCount > 0 || sessions.count() > 0 || isAwaited()) return
    state = 'drained'
    clearInterval(looking)
    sessions.end()
    onDrained()
  }

  /** Tells whether a port has just been opened for a client that has not come yet */
  function isAwaited (): boolean {
    return [...servers].some((server) => server.listening && latePorts.isOwn(server, ownPortGraceMs))
  }
}

/** An app's own shutdown closes its servers too, and must not be told that they were not running. */
function closeAgainWithoutError (server: Server) {
  const { close } = server
  server.close = function (callback) {
    server.close = close
    return close.call(server, callback && ((error) => callback(isNotRunning(error) ? undefined : error)))
  }
}

function isNotRunning (error: (Error & { code?: string }) | undefined) {
  return error?.code === 'ERR_SERVER_NOT_RUNNING'
}
