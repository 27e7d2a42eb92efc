import { clearInterval, setTimeout } from 'node:timers'
import { spreadOver } from './spread.ts'
import type { ServerHttp2Stream } from 'node:http2'
import type { AnySocket } from './node-internals.d.ts'

/** The codes with which WebSockets are closed: the server goes away; it restarts, and the client may come back. */
const GOING_AWAY = 1001
const SERVICE_RESTART = 1012

type Carrier = AnySocket | ServerHttp2Stream
type Kind = 'webSockets' | 'eventStreams' | 'connections'
/** `code`: for a WebSocket */
type End = (code: number) => void

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
