import http from 'node:http'
import { listening } from './listening.ts'
import type { TestOwner } from './deck.ts'

/** Serves on a free port of this machine until the test is over, whoever is still connected then. */
export async function serveHttp (t: TestOwner, answer: http.RequestListener) {
  const server = http.createServer(answer)
  const port = await listening(t, server)
  t.after(() => server.closeAllConnections())
  return { server, port, url: `http://127.0.0.1:${port}` }
}
