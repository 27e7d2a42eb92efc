const MAX_REQUESTS = 100
const MAX_METHOD_CHARS = 20
const MAX_PATH_CHARS = 500

/** @typedef {{ method: string, path: string, ageMs: number }} OpenRequest  `path`: without the query */

/**
 * Cuts the list of requests in flight for the master, whatever a client has sent.
 * @param {{ method: string, path: string, ageMs: number }[]} requests oldest first
 * @returns {OpenRequest[]}
 */
export function listRequests (requests) {
  return requests.slice(0, MAX_REQUESTS).map(({ method, path, ageMs }) => ({
    method: method.slice(0, MAX_METHOD_CHARS),
    path: path.slice(0, MAX_PATH_CHARS),
    ageMs: Math.round(ageMs)
  }))
}

/**
 * Tells the master what is in flight whenever it asks.
 * @param {import('./channel.js').Channel} channel @param {Pick<import('./requests.js').Requests, 'inFlight'>} requests
 */
export function answerRequestLists (channel, requests) {
  channel.on('list-requests', ({ id }) => {
    const all = requests.inFlight()
    channel.send({ type: 'requests', id, requests: listRequests(all), total: all.length })
  })
}
