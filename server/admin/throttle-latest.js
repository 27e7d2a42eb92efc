/**
 * Answers the requests of sockets. If a socket asks more often than it is answered, only its last request counts.
 * @typedef {import('socket.io').Socket} Socket
 * @typedef {ReturnType<typeof throttleLatest>} LatestThrottle
 */

/** Between two answers to one socket. */
const MIN_GAP_MS = 200

/** @param {(socket: Socket, wish: any) => void} answer  the wish comes from a browser and is not checked */
export function throttleLatest (answer) {
  /** @type {Map<Socket, { wish: any, timer: NodeJS.Timeout }>} */
  const waiting = new Map()
  /** @type {WeakMap<Socket, number>} */
  const answeredAt = new WeakMap()

  return {
    /** @param {Socket} socket @param {any} wish */
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
    const wish = waiting.get(socket)?.wish
    forgetSocket(socket)
    answer(socket, wish)
    answeredAt.set(socket, performance.now())
  }

  function forgetSocket (/** @type {Socket} */ socket) {
    clearTimeout(waiting.get(socket)?.timer)
    waiting.delete(socket)
  }
}
