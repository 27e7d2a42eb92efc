/** @typedef {import('node:stream').Duplex} Socket */

/** Who has just come may be about to say something; so many more are let in meanwhile. */
const PATIENCE_MS = 250
const MAX_CROWD = 4
/** What more would be good for nobody. */
const MOST = Object.freeze({ maxKnown: 512, maxStrangers: 256 })

/** @typedef {{ maxKnown: number, maxStrangers: number }} Room */

/**
 * Half of the descriptors are left for everything else: workers, files, the app's sockets.
 * @param {number} descriptors that this process may have open @returns {Room}
 */
export function roomWithin (descriptors) {
  const quarter = Math.floor(descriptors / 4)
  return { maxKnown: Math.min(MOST.maxKnown, quarter), maxStrangers: Math.min(MOST.maxStrangers, Math.floor(quarter / MAX_CROWD)) }
}

/**
 * The connections of a port that has room for only so many. Those who are signed in have room of their own; of the
 * others the one goes first that has been silent for the longest time. So nobody who only holds connections keeps
 * anybody out, and a probe of the health, which asks at once, is always answered.
 * @param {Room} room
 */
export function createConnections ({ maxKnown, maxStrangers }) {
  /** Since when they are silent, the longest first, in both. @type {Map<Socket, number>} */
  const strangers = new Map()
  /** @type {Map<Socket, number>} */
  const known = new Map()

  return {
    /** @param {Socket} socket a new one */
    admit (socket) {
      socket.once('close', () => {
        strangers.delete(socket)
        known.delete(socket)
      })
      enter(strangers, socket, maxStrangers)
    },

    /** @param {Socket} socket has asked for something @param {boolean} isKnown by somebody who is signed in */
    heard (socket, isKnown) {
      if (isKnown || known.has(socket)) {
        strangers.delete(socket)
        enter(known, socket, maxKnown)
      } else {
        enter(strangers, socket, maxStrangers)
      }
    }
  }
}

/** @param {Map<Socket, number>} sockets @param {Socket} socket @param {number} max */
function enter (sockets, socket, max) {
  if (socket.destroyed) return
  const now = performance.now()
  sockets.delete(socket)
  sockets.set(socket, now)
  for (const [oldest, since] of sockets) {
    const isToGo = sockets.size > max * MAX_CROWD || (sockets.size > max && now - since >= PATIENCE_MS)
    if (!isToGo) return
    sockets.delete(oldest)
    oldest.destroy()
  }
}
