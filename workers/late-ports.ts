import { clearInterval, setImmediate, setInterval } from 'node:timers'
import { loadConnectionCalls, type ConnectionCalls } from './connection-calls.ts'
import { isRaw } from './open-work.ts'
import type { AnyServer, AnySocket, Asker } from './node-internals.d.ts'

const LOOK_EVERY_MS = 20
/** Who still waits for an answer after so long waits for this port. */
const WAITS_FOR_PORT_MS = 1000
/** The kernel's clock does not tell which of two came first that are a tick apart. */
const TICK_MS = 10
/** An app that has closed so many late servers opens them for clients. */
const MAX_CLOSED = 3

export type LatePorts = ReturnType<typeof createLatePorts>

/**
 * Whose is a port that an app opens when its worker serves already? It is shared as any other, unless it is opened for
 * a client: a passive transfer of FTP, a tunnel, a call. Node does not tell for whom code runs, at least not for free.
 * But a client that waits for a port gets no answer as long as the app waits for it, while all others do; and whoever
 * opens ports for clients reckons with one that is taken, and listens for the error.
 * All this is looked at when a server begins to listen late, so that requests cost nothing more.
 */
export function createLatePorts (
  { isLate, connections, loadCalls = loadConnectionCalls, now = () => performance.now() }: {
    /** whether this worker serves already */
    isLate: () => boolean,
    /** that are open */
    connections: () => Iterable<[AnySocket, AnyServer]>,
    loadCalls?: () => Pick<ConnectionCalls, 'agesOf'> | null,
    /** monotonic, ms */
    now?: () => number
  }
) {
  /** When those were opened that are this worker's own. */
  const own: WeakMap<object, number> = new WeakMap()
  let calls: ReturnType<typeof loadCalls> | undefined
  let closed = 0
  let opensForClients = false

  return {
    isLate,

    /** `server`: of this worker alone */
    keep (server: object) {
      own.set(server, now())
    },

    /** `withinMs`: it was opened no longer ago */
    isOwn: (server: object, withinMs: number = Infinity): boolean => now() - (own.get(server) ?? -Infinity) < withinMs,

    /** A late server was closed. */
    closed () {
      opensForClients ||= ++closed >= MAX_CLOSED
    },

    /** Tells whether the late servers of this app come and go */
    areForClients: (): boolean => opensForClients,

    /**
     * @param server is asked to listen late, at an address that the app has chosen
     * @param ways one of the first two is called, sooner or later
     */
    judge (server: Asker, { share, open, join }: {
      share: () => void,
      /** in this process alone */
      open: () => void,
      /** shares it if others do already */
      join: (otherwise: () => void) => void
    }) {
      const waiting = [...connections()].flatMap(waitOf)
      if (waiting.length === 0) share()
      else if (opensForClients) open()
      // The app may add its listener for errors right after the call.
      else setImmediate(() => handlesErrors(server) ? join(() => watch(waiting, { share, open })) : share())
    }
  }

  function watch (waiting: (() => boolean)[], { share, open }: { share: () => void, open: () => void }) {
    const since = now()
    const timer = setInterval(() => {
      const isAnswered = !waiting.some((isWaiting) => isWaiting())
      if (!isAnswered && now() - since < WAITS_FOR_PORT_MS) return
      clearInterval(timer)
      opensForClients ||= !isAnswered
      if (isAnswered) share()
      else open()
    }, LOOK_EVERY_MS)
  }

  /** Tells whether its client goes on waiting for an answer; none: it does not wait */
  function waitOf ([socket, server]: [AnySocket, AnyServer]): (() => boolean)[] {
    const { _httpMessage: answer } = socket
    const bytes = socket.bytesWritten
    if (answer) return answer._header ? [] : [() => !answer._header && !socket.destroyed]
    return isRaw(socket, server) && hasSpokenLast(socket, server)
      ? [() => socket.bytesWritten === bytes && !socket.destroyed]
      : []
  }

  /**
   * @returns whether the last bytes were the client's. Question and answer of one tick are those of a WebSocket, or
   * unanswered
   */
  function hasSpokenLast ({ _handle }: AnySocket, server: AnyServer): boolean {
    calls ??= loadCalls()
    const ages = _handle && _handle.fd >= 0 ? calls?.agesOf(_handle.fd) : null
    if (!ages) return false
    const [leadMs, isRecent] = [ages.sentMs - ages.heardMs, ages.heardMs <= TICK_MS]
    return leadMs > TICK_MS || (isRecent && !server.closeIdleConnections && leadMs > -TICK_MS)
  }
}

function handlesErrors (server: Asker) {
  // node:dgram adds one of its own for the callback of bind().
  return server.listeners('error').some(({ name }) => name !== 'removeListeners')
}
