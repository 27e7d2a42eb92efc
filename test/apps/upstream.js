import { once } from 'node:events'
import { createServer } from 'node:http'

/** What proxies stand before: a server of this very process. */
export async function createUpstream () {
  const server = createServer((_request, response) => response.end('hello from upstream')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    url: `http://127.0.0.1:${port}`,
    close () {
      server.close()
      server.closeAllConnections()
    }
  }
}
