import diagnostics from 'node:diagnostics_channel'
import { clearTimeout, setTimeout } from 'node:timers'
import { createLastAnswers } from './last-answer.ts'
import type { Socket } from 'node:net'
import type { ChannelMessages } from './node-internals.d.ts'
import type { Requests } from './requests.ts'

/** Which connections are busy is looked at for so long, or until as many requests have come as are too many here. */
const LOOK_MS = 1000
const LOOK_AT_MOST_MS = 10_000
const ENOUGH_REQUESTS = 4
/** A connection that has been busy will soon be asked again. */
const ASKED_WITHIN_MS = 10_000

/** Clients that came back all at once would meet the same worker rather than the one that is idle. */
const GAP_MS = 20

const STARTS = 'http.server.request.start'

type RequestStart = ChannelMessages['http.server.request.start']

/**
 * Lets go of HTTP/1 connections of a worker that gets more requests than the others. Those that are asked are looked at
 * for a moment; the next answer of some says `Connection: close`. Never one that has more requests than are too many:
 * it would be too busy wherever it goes. Costs nothing per request unless connections are to go.
 */
export function createBusyConnections ({ requests, isDraining, onEnd, wait = waitAside }: {
  requests: Requests,
  isDraining: () => boolean,
  /** how many have been let go, after each call */
  onEnd: (connections: number) => void,
  wait?: (ms: number) => Promise<unknown>
}) {
  const lastAnswers = createLastAnswers({ requests })
  let isAtIt = false

  return {
    /** `connections`: the most that may go */
    async letGo ({ requestsPerSecond, connections }: { requestsPerSecond: number, connections: number }) {
      if (isAtIt || isDraining()) return
      isAtIt = true
      const ms = Math.min(LOOK_AT_MOST_MS, Math.max(LOOK_MS, ENOUGH_REQUESTS / requestsPerSecond * 1000))
      const counts = await countRequests(wait(ms))
      const ended = await endNext(chooseSockets(counts, requestsPerSecond * ms / 1000, connections))
      isAtIt = false
      onEnd(ended)
    }
  }

  /** @returns how many it was */
  function endNext (chosen: Set<Socket>): Promise<number> {
    const wanted = chosen.size
    const told: WeakSet<Socket> = new WeakSet()
    let nextAt = 0
    return new Promise((resolve) => {
      const late = setTimeout(finish, ASKED_WITHIN_MS).unref()
      diagnostics.subscribe(STARTS, onStart)
      if (wanted === 0) finish()

      function onStart ({ server, response, socket }: RequestStart) {
        if (!chosen.has(socket) || !isTurnOf(socket)) return
        lastAnswers.end(server, response, () => {
          chosen.delete(socket)
          if (chosen.size === 0) finish()
        })
      }

      function isTurnOf (socket: Socket) {
        if (told.has(socket)) return true
        if (performance.now() < nextAt) return false
        nextAt = performance.now() + GAP_MS
        told.add(socket)
        return true
      }

      function finish () {
        clearTimeout(late)
        diagnostics.unsubscribe(STARTS, onStart)
        resolve(wanted - chosen.size)
      }
    })
  }
}

/** @returns of each connection that was asked by then */
async function countRequests (looked: Promise<unknown>): Promise<Map<Socket, number>> {
  const counts: Map<Socket, number> = new Map()
  const count = ({ socket }: RequestStart) => {
    counts.set(socket, (counts.get(socket) ?? 0) + 1)
  }
  diagnostics.subscribe(STARTS, count)
  await looked
  diagnostics.unsubscribe(STARTS, count)
  return counts
}

/** @returns which does not keep the app running */
function waitAside (ms: number): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}

/** `surplus`: requests of the same time */
function chooseSockets (counts: Map<Socket, number>, surplus: number, atMost: number) {
  const chosen: Set<Socket> = new Set()
  let left = surplus
  for (const [socket, count] of counts) {
    if (chosen.size === atMost || count > left || socket.destroyed) continue
    chosen.add(socket)
    left -= count
  }
  return chosen
}
