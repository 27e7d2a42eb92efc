import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What proxies stand before: a server of this very process. */
export async function createUpstream () {
  const server = createServer((_request, response) => response.end('hello from upstream')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close () {
    server.close()
    server.closeAllConnections()
  } }
}
