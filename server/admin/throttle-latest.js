/**
 * Answers the requests of sockets. If a socket asks more often than it is answered, only its last request counts.
 * @typedef {import('./live-socket.d.ts').LiveSocket} Socket
 */

/** The least time between two answers to one socket. */
const MIN_GAP_MS = 200

/** @template Wish @param {(socket: Socket, wish: Wish) => void} answer */
export function throttleLatest (answer) {
  /** @type {Map<Socket, { wish: Wish, timer: NodeJS.Timeout }>} */
  const waiting = new Map()
  /** @type {WeakMap<Socket, number>} */
  const answeredAt = new WeakMap()

  return {
    /** @param {Socket} socket @param {Wish} wish */
    ask (socket, wish) {
      const earlier = waiting.get(socket)
      if (earlier) return Object.assign(earlier, { wish })
      const waitMs = (answeredAt.get(socket) ?? -Infinity) + MIN_GAP_MS - performance.now()
      waiting.set(socket, { wish, timer: setTimeout(answerWish, Math.max(0, waitMs), socket) })
    },

    forget: forgetSocket,

    close () {
      for (const socket of waiting.keys()) forgetSocket(socket)
    }
  }

  function answerWish (/** @type {Socket} */ socket) {
    const asked = waiting.get(socket)
    forgetSocket(socket)
    if (asked) answer(socket, asked.wish)
    answeredAt.set(socket, performance.now())
  }

  function forgetSocket (/** @type {Socket} */ socket) {
    clearTimeout(waiting.get(socket)?.timer)
    waiting.delete(socket)
  }
}
