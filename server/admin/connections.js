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
 * The connections of a port that has room for only so many. Those who are signed in have room of their own. One too
 * many closes one of the holder who has most: the one that has been silent for the longest time. So nobody who only
 * holds connections keeps anybody else out, and a probe of the health, which asks at once, is always answered.
 * @param {Room} room
 */
export function createConnections ({ maxKnown, maxStrangers }) {
  const strangers = createPlaces(maxStrangers)
  const known = createPlaces(maxKnown)

  return {
    /** @param {Socket} socket a new one */
    admit (socket) {
      socket.once('close', () => {
        strangers.leave(socket)
        known.leave(socket)
      })
      strangers.enter(socket, '')
    },

    /** @param {Socket} socket has asked for something @param {string | null} holder who is signed in, as text; null: nobody */
    heard (socket, holder) {
      const named = holder ?? known.holderOf(socket)
      if (named === undefined) return strangers.enter(socket, '')
      strangers.leave(socket)
      known.enter(socket, named)
    }
  }
}

/** @param {number} max */
function createPlaces (max) {
  /** Of each holder since when their connections are silent, the longest first. @type {Map<string, Map<Socket, number>>} */
  const ofHolder = new Map()
  /** @type {Map<Socket, string>} */
  const holders = new Map()

  return { holderOf: (/** @type {Socket} */ socket) => holders.get(socket), enter, leave }

  /** @param {Socket} socket @param {string} holder */
  function enter (socket, holder) {
    if (socket.destroyed) return
    leave(socket)
    const now = performance.now()
    holders.set(socket, holder)
    const own = ofHolder.get(holder) ?? new Map()
    ofHolder.set(holder, own.set(socket, now))
    while (holders.size > max) {
      const [[oldest, since]] = largest()
      if (holders.size <= max * MAX_CROWD && now - since < PATIENCE_MS) return
      leave(oldest)
      oldest.destroy()
    }
  }

  /** @param {Socket} socket */
  function leave (socket) {
    const holder = holders.get(socket)
    if (holder === undefined) return
    holders.delete(socket)
    const own = /** @type {Map<Socket, number>} */ (ofHolder.get(holder))
    own.delete(socket)
    if (own.size === 0) ofHolder.delete(holder)
  }

  function largest () {
    return [...ofHolder.values()].reduce((most, own) => own.size > most.size ? own : most)
  }
}
