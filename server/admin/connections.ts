import type { Duplex as Socket } from 'node:stream'

/** A new connection gets this long to send a request. Meanwhile up to four times as many are accepted. */
const PATIENCE_MS = 250
const MAX_CROWD = 4
/** No machine needs more connections to its admin port. */
const MOST = Object.freeze({ maxKnown: 512, maxStrangers: 256 })

export type Room = { maxKnown: number, maxStrangers: number }

/**
 * Leaves half of the descriptors for workers, files and the app's sockets.
 * @param descriptors the limit of open files of this process
 */
export function roomWithin (descriptors: number): Room {
  const quarter = Math.floor(descriptors / 4)
  return { maxKnown: Math.min(MOST.maxKnown, quarter),
    maxStrangers: Math.min(MOST.maxStrangers, Math.floor(quarter / MAX_CROWD)) }
}

/**
 * Limits the connections of a port, those with a sign-in apart from the rest. One connection too many closes the
 * longest idle one of the holder who has most. So holding connections keeps nobody else out, and a health probe, which
 * sends its request at once, is always answered.
 */
export function createConnections ({ maxKnown, maxStrangers }: Room) {
  const strangers = createPlaces(maxStrangers)
  const known = createPlaces(maxKnown)

  return {
    admit (socket: Socket) {
      socket.once('close', () => {
        strangers.leave(socket)
        known.leave(socket)
      })
      strangers.enter(socket, '')
    },

    /** `socket`: one that has sent a request; `holder`: who is signed in; null: nobody */
    heard (socket: Socket, holder: string | null) {
      const named = holder ?? known.holderOf(socket)
      if (named === undefined) return strangers.enter(socket, '')
      strangers.leave(socket)
      known.enter(socket, named)
    }
  }
}

function createPlaces (max: number) {
  /** Connections of each holder with the start of their idle time, the longest first. */
  const ofHolder: Map<string, Map<Socket, number>> = new Map()
  const holders: Map<Socket, string> = new Map()

  return { holderOf: (socket: Socket) => holders.get(socket), enter: addSocket, leave: removeSocket }

  function addSocket (socket: Socket, holder: string) {
    if (socket.destroyed) return
    removeSocket(socket)
    const now = performance.now()
    holders.set(socket, holder)
    const own = ofHolder.get(holder) ?? new Map()
    ofHolder.set(holder, own.set(socket, now))
    while (holders.size > max) {
      const [[oldest, since]] = largestHolder()
      if (holders.size <= max * MAX_CROWD && now - since < PATIENCE_MS) return
      removeSocket(oldest)
      oldest.destroy()
    }
  }

  function removeSocket (socket: Socket) {
    const holder = holders.get(socket)
    if (holder === undefined) return
    holders.delete(socket)
    const own = ofHolder.get(holder)
    own?.delete(socket)
    if (own?.size === 0) ofHolder.delete(holder)
  }

  function largestHolder () {
    return [...ofHolder.values()].reduce((most, own) => own.size > most.size ? own : most)
  }
}
