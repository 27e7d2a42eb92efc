import { once } from 'node:events'
import http from 'node:http'

/**
 * Serves on a free port of this machine until the test is over, whoever is still connected then.
 * @param {import('./deck.js').TestOwner} t @param {http.RequestListener} answer
 */
export async function serveHttp (t, answer) {
  const server = http.createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { server, port, url: `http://127.0.0.1:${port}` }
}
