import { clearInterval, setInterval, setTimeout } from 'node:timers'
import type { ServerHttp2Stream } from 'node:http2'
import type { AnySocket } from './node-internals.d.ts'

/** The codes with which WebSockets are closed: the server goes away; it restarts, and the client may come back. */
const GOING_AWAY = 1001
const SERVICE_RESTART = 1012

type Carrier = AnySocket | ServerHttp2Stream
type Kind = 'webSockets' | 'eventStreams' | 'connections'
/** `code`: for a WebSocket */
type End = (code: number) => void

const TICK_MS = 20

/**
 * What a draining worker keeps for as long as its clients want it: WebSockets, event streams, and connections that are
 * not of HTTP. Once their time is over, each ends in its own way.
 */
export function createLongLived () {
  const held: Map<Carrier, { kind: Kind, end: End, isEnded: boolean }> = new Map()
  const counts = { webSockets: 0, eventStreams: 0, connections: 0 }
  const closed = { ...counts }
  /** null: their time is not over */
  let code: number | null = null
  let endAt = -Infinity
  let spreading: NodeJS.Timeout | undefined

  return {
    counts,
    /** How many were ended, not by their clients or the app. */
    closed,

    count: () => held.size,

    has: (carrier: Carrier) => held.has(carrier),

    add (carrier: Carrier, kind: Kind, end: End) {
      held.set(carrier, { kind, end, isEnded: false })
      counts[kind]++
      // It has begun after the others, on a connection that was idle, and so it ends after them.
      if (code !== null) endAtLast(carrier)
    },

    /** `carrier`: that is closed, or that nothing long-lived uses any longer */
    remove (carrier: Carrier) {
      const one = held.get(carrier)
      if (one) counts[one.kind]--
      held.delete(carrier)
    },

    end ({ spreadMs, isLast }: { spreadMs: number, isLast: boolean }) {
      clearInterval(spreading)
      code = isLast ? GOING_AWAY : SERVICE_RESTART
      endAt = performance.now() + spreadMs
      spreading = spreadOver([...held.keys()], spreadMs, endOne)
    }
  }

  function endAtLast (carrier: Carrier) {
    const ms = endAt - performance.now()
    if (ms > 0) setTimeout(endOne, ms, carrier).unref()
    else endOne(carrier)
  }

  function endOne (carrier: Carrier) {
    const one = held.get(carrier)
    if (!one || one.isEnded || code === null) return
    one.isEnded = true
    closed[one.kind]++
    one.end(code)
  }
}

/** Calls back for each of many within `ms`, evenly and in no order. Returns what it waits by. */
export function spreadOver<Item> (items: Item[], ms: number, each: (item: Item) => void): NodeJS.Timeout | undefined {
  const order = shuffle(items)
  const moments = evenMoments(items.length, ms)
  // What a busy machine has delayed is made up for slowly.
  const mostAtOnce = ms > 0 ? Math.max(1, Math.floor(2 * items.length * TICK_MS / ms)) : Infinity
  const begin = performance.now()
  let next = 0
  callDue()
  if (next === order.length) return
  const timer = setInterval(() => {
    callDue()
    if (next === order.length) clearInterval(timer)
  }, TICK_MS).unref()
  return timer

  function callDue () {
    const elapsed = performance.now() - begin
    const stop = Math.min(order.length, next + mostAtOnce)
    while (next < stop && moments[next] <= elapsed) each(order[next++])
  }
}

/** Each has a part of the time of its own, as long as any other's, and a random moment in it. @returns ascending, ms */
export function evenMoments (count: number, ms: number): number[] {
  return Array.from({ length: count }, (_, index) => (index + Math.random()) / count * ms)
}

function shuffle<Item> (items: Item[]) {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1))
    ;[order[last], order[other]] = [order[other], order[last]]
  }
  return order
}
