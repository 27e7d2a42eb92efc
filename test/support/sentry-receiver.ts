import { buffer } from 'node:stream/consumers'
import { serveHttp } from './http-server.ts'
import type { TestOwner } from './deck.ts'

type Thrown = { type: string, value: string, mechanism?: object,
  stacktrace: { frames: { function: string, in_app: boolean }[] } }
export type SentryEvent = { event_id: string, level: string, platform: string, release: string, environment: string,
  server_name: string, fingerprint: string[], transaction: string, exception: { values: Thrown[] },
  logentry: { formatted: string }, tags: Record<string, string>, extra: Record<string, string>,
  contexts: { runtime: object, end: { requests: string[] } } }

/**
 * Takes envelopes as their definition says, and refuses what is none:
 * https://develop.sentry.dev/sdk/foundations/transport/envelopes/
 */
export async function startSentryReceiver (t: TestOwner) {
  const received: ({ path: string, auth: string } & ReturnType<typeof readEnvelope>)[] = []
  /** what it answers, in turn; 200 after these */
  const statuses: number[] = []
  const { port } = await serveHttp(t, async (request, response) => {
    const body = await buffer(request)
    const status = statuses.shift() ?? 200
    try {
      if (status === 200)
        received.push({ path: `${request.method} ${request.url}`, auth: String(request.headers['x-sentry-auth']),
          ...readEnvelope(body) })
      response.writeHead(status).end()
    } catch (error) {
      response.writeHead(400).end(String(error))
    }
  })
  return { received, statuses, dsn: `http://0123456789abcdef@127.0.0.1:${port}/tools/7` }
}

/** `body`: of one item */
export function readEnvelope (body: Buffer) {
  const [headers, afterHeaders] = readLine<{ event_id: string, sent_at: string }>(body, 0)
  const [item, afterItem] = readLine<{ type: string, length: number }>(body, afterHeaders)
  const payload = body.subarray(afterItem, afterItem + item.length)
  if (payload.length !== item.length)
    throw new Error(`length: expected ${item.length} bytes, received ${payload.length}`)
  const rest = body.subarray(afterItem + item.length).toString()
  if (!['', '\n'].includes(rest)) throw new Error(`expected the end, received ${rest}`)
  const event: SentryEvent = JSON.parse(payload.toString())
  if (!/^[\da-f]{32}$/.test(event.event_id) || event.event_id !== headers.event_id)
    throw new Error(`event_id: ${event.event_id}, ${headers.event_id}`)
  return { headers, item, event }
}

/** @returns JSON, and where the next line begins */
function readLine<T> (body: Buffer, start: number): [T, number] {
  const end = body.indexOf('\n', start)
  if (end === -1) throw new Error('a header has no end')
  return [JSON.parse(body.subarray(start, end).toString()), end + 1]
}
