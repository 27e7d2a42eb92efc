import type { LiveSocket as Socket } from './live-socket.d.ts'

/** Answers the requests of sockets. If a socket asks more often than it is answered, only its last request counts. */

/** The least time between two answers to one socket. */
const MIN_GAP_MS = 200

export function throttleLatest<Wish> (answer: (socket: Socket, wish: Wish) => void) {
  const waiting: Map<Socket, { wish: Wish, timer: NodeJS.Timeout }> = new Map()
  const answeredAt: WeakMap<Socket, number> = new WeakMap()

  return { ask (socket: Socket, wish: Wish) {
    const earlier = waiting.get(socket)
    if (earlier) return Object.assign(earlier, { wish })
    const waitMs = (answeredAt.get(socket) ?? -Infinity) + MIN_GAP_MS - performance.now()
    waiting.set(socket, { wish, timer: setTimeout(answerWish, Math.max(0, waitMs), socket) })
  }, forget: forgetSocket, close () {
    for (const socket of waiting.keys()) forgetSocket(socket)
  } }

  function answerWish (socket: Socket) {
    const asked = waiting.get(socket)
    forgetSocket(socket)
    if (asked) answer(socket, asked.wish)
    answeredAt.set(socket, performance.now())
  }

  function forgetSocket (socket: Socket) {
    clearTimeout(waiting.get(socket)?.timer)
    waiting.delete(socket)
  }
}
