import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import type { TestOwner } from './deck.ts'

/**
 * Has a server listen, and closed after the test.
 * @returns its port, a free one
 */
export async function listening (t: TestOwner, server: Server, host: string = '127.0.0.1'): Promise<number> {
  server.listen(0, host)
  t.after(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
