import { serveHttp } from './http-server.ts'
import type { TestOwner } from './deck.ts'

/** Whom alerts tell: it answers 204, unless it is told otherwise. */
export async function startReceiver (t: TestOwner) {
  /** in turn */
  const statuses: number[] = []
  const { url } = await serveHttp(t, (request, response) => {
    request.resume().on('end', () => response.writeHead(statuses.shift() ?? 204).end())
  })
  return { url: `${url}/hook`, statuses }
}
