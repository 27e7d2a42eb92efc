import { serveHttp } from './http-server.js'

/** Whom alerts tell: it answers 204, unless it is told otherwise. @param {import('./deck.js').TestOwner} t */
export async function startReceiver (t) {
  /** @type {number[]} in turn */
  const statuses = []
  const { url } = await serveHttp(t, (request, response) => { request.resume().on('end', () => response.writeHead(statuses.shift() ?? 204).end()) })
  return { url: `${url}/hook`, statuses }
}
