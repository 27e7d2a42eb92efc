import { alarmKindsIn, missedAlarms, toAlarm } from '../alerts/page-alarms.ts'
import { throttleLatest } from './throttle-latest.ts'
import type { LiveServer, LiveSocket } from './live-socket.d.ts'
import type { Deck } from '../deck.ts'

/**
 * Sends alarms to browsers, whatever page they show: to each the kinds that it has asked for.
 * @returns ends it
 */
export function attachAlarms ({ io, deck }: { io: LiveServer, deck: Pick<Deck, 'events' | 'notices'> }): () => void {
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
  function listenForAlarms (socket: LiveSocket, wish: unknown) {
    const kinds = alarmKindsIn(wish)
    for (const room of socket.rooms) if (room.startsWith(ROOMS)) socket.leave(room)
    socket.join(kinds.map(roomOf))
    return kinds
  }

  function catchUp (socket: LiveSocket,
    { kinds, after, reply }: { kinds: ReturnType<typeof listenForAlarms>, after: unknown, reply: unknown })
  {
    for (const alarm of missedAlarms(deck.notices, { kinds, after })) socket.emit('alarm', alarm)
    if (typeof reply === 'function') reply({ last: deck.events.lastId })
  }
}

/** The names of these rooms begin with it, and those of pages begin with a role. */
const ROOMS = 'alarm '

function roomOf (kind: string) {
  return ROOMS + kind
}
