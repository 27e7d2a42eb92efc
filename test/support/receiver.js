import { once } from 'node:events'
import http from 'node:http'

/** Whom alerts tell: it answers 204, unless it is told otherwise. @param {import('./deck.js').TestOwner} t */
export async function startReceiver (t) {
  /** @type {number[]} in turn */
  const statuses = []
  const server = http.createServer((request, response) => { request.resume().on('end', () => response.writeHead(statuses.shift() ?? 204).end()) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/hook`, statuses }
}
