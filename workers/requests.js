import diagnostics from 'node:diagnostics_channel'

/** Beyond this many, those whose connection is gone are looked for at each new request. */
const CROWDED = 256

/** @typedef {{ method: string, path: string, ageMs: number, response: import('node:http').ServerResponse }} RequestInFlight  `path`: without the query */
/** @typedef {ReturnType<typeof watchRequests>} Requests */

/**
 * Knows the HTTP/1 requests that this worker has not answered yet, without touching the app's objects.
 */
export function watchRequests () {
  /** @type {Map<any, number>} when each began, monotonic ms */
  const open = new Map()
  let crowded = CROWDED

  diagnostics.subscribe('http.server.request.start', (/** @type {any} */ { response }) => {
    open.set(response, performance.now())
    if (open.size > crowded) forgetGone()
  })
  diagnostics.subscribe('http.server.response.finish', (/** @type {any} */ { response }) => open.delete(response))

  return {
    /** @returns {RequestInFlight[]} oldest first */
    inFlight () {
      forgetGone()
      const now = performance.now()
      return [...open].map(([response, startedAt]) => ({
        method: String(response.req?.method),
        path: String(response.req?.url).split('?', 1)[0],
        ageMs: Math.round(now - startedAt),
        response
      }))
    }
  }

  /** A request whose client has gone is never finished. */
  function forgetGone () {
    for (const response of open.keys()) {
      if (response.destroyed || response.writableFinished || response.req?.socket?.destroyed) open.delete(response)
    }
    crowded = Math.max(CROWDED, open.size * 2)
  }
}
