import { clearInterval, setTimeout } from 'node:timers'
import { spreadOver } from './spread.js'

/** The codes with which WebSockets are closed: the server goes away; it restarts, and the client may come back. */
const GOING_AWAY = 1001
const SERVICE_RESTART = 1012

/**
 * @typedef {import('./node-internals.d.ts').AnySocket | import('node:http2').ServerHttp2Stream} Carrier
 * @typedef {'webSockets' | 'eventStreams' | 'connections'} Kind
 * @typedef {(code: number) => void} End  `code`: for a WebSocket
 */

/**
 * What a draining worker keeps for as long as its clients want it: WebSockets, event streams, and connections that are
 * not of HTTP. Once their time is over, each ends in its own way.
 */
export function createLongLived () {
  /** @type {Map<Carrier, { kind: Kind, end: End, isEnded: boolean }>} */
  const held = new Map()
  const counts = { webSockets: 0, eventStreams: 0, connections: 0 }
  const closed = { ...counts }
  /** @type {number | null} null: their time is not over */
  let code = null
  let endAt = -Infinity
  /** @type {NodeJS.Timeout | undefined} */
  let spreading

  return {
    counts,
    /** How many were ended, not by their clients or the app. */
    closed,

    count: () => held.size,

    /** @param {Carrier} carrier */
    has: (carrier) => held.has(carrier),

    /** @param {Carrier} carrier @param {Kind} kind @param {End} end */
    add (carrier, kind, end) {
      held.set(carrier, { kind, end, isEnded: false })
      counts[kind]++
      // It has begun after the others, on a connection that was idle, and so it ends after them.
      if (code !== null) endAtLast(carrier)
    },

    /** @param {Carrier} carrier  that is closed, or that nothing long-lived uses any longer */
    remove (carrier) {
      const one = held.get(carrier)
      if (one) counts[one.kind]--
      held.delete(carrier)
    },

    /** @param {{ spreadMs: number, isLast: boolean }} how */
    end ({ spreadMs, isLast }) {
      clearInterval(spreading)
      code = isLast ? GOING_AWAY : SERVICE_RESTART
      endAt = performance.now() + spreadMs
      spreading = spreadOver([...held.keys()], spreadMs, endOne)
    }
  }

  function endAtLast (/** @type {Carrier} */ carrier) {
    const ms = endAt - performance.now()
    if (ms > 0) setTimeout(endOne, ms, carrier).unref()
    else endOne(carrier)
  }

  function endOne (/** @type {Carrier} */ carrier) {
    const one = held.get(carrier)
    if (!one || one.isEnded || code === null) return
    one.isEnded = true
    closed[one.kind]++
    one.end(code)
  }
}
