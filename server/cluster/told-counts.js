/** Of what a worker tells, the counts alone: the app could have sent it, so it may be anything. @param {import('../../workers/protocol.js').Holds} report @returns {import('../../workers/protocol.js').Holds} */
export function toHolds ({ requests, transfers, sessions, ...longLived }) {
  return { requests: toCount(requests), transfers: toCount(transfers), ...toLongLived(longLived), sessions: toCount(sessions) }
}

/** As toHolds(). @param {import('../../workers/protocol.js').Unfinished} report @returns {Required<import('../../workers/protocol.js').Unfinished>} */
export function toUnfinished ({ requests, connections, stalled, closed }) {
  return { requests: toCount(requests), connections: toCount(connections), stalled: toCount(stalled), closed: toLongLived(closed) }
}

/** @param {Partial<import('../../workers/protocol.js').Holds>} [counts] */
function toLongLived ({ webSockets, eventStreams, connections } = {}) {
  return { webSockets: toCount(webSockets), eventStreams: toCount(eventStreams), connections: toCount(connections) }
}

/** @param {unknown} value */
function toCount (value) {
  return Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0
}
