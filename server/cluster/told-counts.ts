import type { Holds, Unfinished } from '../../workers/protocol.ts'

/** Of what a worker tells, the counts alone: the app could have sent it, so it may be anything. */
export function toHolds ({ requests, transfers, sessions, ...longLived }: Holds): Holds {
  return { requests: toCount(requests), transfers: toCount(transfers), ...toLongLived(longLived),
    sessions: toCount(sessions) }
}

/** As toHolds(). */
export function toUnfinished ({ requests, connections, stalled, closed }: Unfinished): Required<Unfinished> {
  return { requests: toCount(requests), connections: toCount(connections), stalled: toCount(stalled),
    closed: toLongLived(closed) }
}

function toLongLived ({ webSockets, eventStreams, connections }: Partial<Holds> = {}) {
  return { webSockets: toCount(webSockets), eventStreams: toCount(eventStreams), connections: toCount(connections) }
}

function toCount (value: unknown) {
  return Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0
}
