import { alarmKindsIn, missedAlarms, toAlarm } from '../dashboard/alarms.js'
import { throttleLatest } from './throttle-latest.js'

/**
 * Sends alarms to browsers, whatever page they show: to each the kinds that it has asked for.
 * @param {object} parts
 * @param {import('./live-socket.d.ts').LiveServer} parts.io
 * @param {Pick<import('../deck.js').Deck, 'events' | 'notices'>} parts.deck
 * @returns {() => void} ends it
 */
export function attachAlarms ({ io, deck }) {
  const latest = throttleLatest(catchUp)
  io.on('connection', (socket) => {
    socket.on('notify', (wish, reply) => {
      const kinds = listenForAlarms(socket, wish)
      latest.ask(socket, { kinds, after: Object(wish).after, reply })
    })
    socket.on('disconnect', () => latest.forget(socket))
  })

  const unsubscribe = deck.events.subscribe((event) => {
    const alarm = io.sockets.sockets.size > 0 && toAlarm(event)
    if (alarm) io.to(roomOf(alarm.kind)).emit('alarm', alarm)
  })
  return () => {
    unsubscribe()
    latest.close()
  }

  /** Replaces the kinds that this browser asked for before. */
  function listenForAlarms (/** @type {import('./live-socket.d.ts').LiveSocket} */ socket, /** @type {unknown} */ wish) {
    const kinds = alarmKindsIn(wish)
    for (const room of socket.rooms) if (room.startsWith(ROOMS)) socket.leave(room)
    socket.join(kinds.map(roomOf))
    return kinds
  }

  /**
   * @param {import('./live-socket.d.ts').LiveSocket} socket
   * @param {{ kinds: ReturnType<typeof listenForAlarms>, after: unknown, reply: unknown }} wish
   */
  function catchUp (socket, { kinds, after, reply }) {
    for (const alarm of missedAlarms(deck.notices, { kinds, after })) socket.emit('alarm', alarm)
    if (typeof reply === 'function') reply({ last: deck.events.lastId })
  }
}

/** The names of these rooms begin with it, and those of pages begin with a role. */
const ROOMS = 'alarm '

/** @param {string} kind */
function roomOf (kind) {
  return ROOMS + kind
}
