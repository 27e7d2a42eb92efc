import http from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { DeckError } from '../errors.ts'
import type { Auth } from '../api/roles.ts'

/** Requests without a port: the same server, app and checks, for people whom another deck has signed in. */
export type InProcessTransport = ReturnType<typeof createInProcessTransport>
/** `path`: below /api/v1, with its query */
export type InProcessRequest = { method: string, path: string, headers: Record<string, string | undefined>,
  body?: unknown }
export type Answer = { status: number, headers: http.IncomingHttpHeaders, body: string }

const JSON_TYPE = 'application/json'

export function createInProcessTransport (
  handle: (auth: Auth, req: http.IncomingMessage, res: http.ServerResponse) => void
) {
  /** Created by the first request. */
  let server: http.Server | null = null
  /** Who sends the requests of each connection. */
  const connections: Map<Duplex, Auth> = new Map()
  let isClosed = false

  return {
    /**
     * `maxBytes`: the largest body of an answer.
     * @throws {DeckError} payload-too-large, stopping, and what `signal` is aborted with
     */
    async ask ({ method, path, headers, body }: InProcessRequest, auth: Auth,
      { maxBytes, signal }: { maxBytes: number, signal: AbortSignal }): Promise<Answer>
    {
      const near = connectSocket(auth)
      const text = body === undefined ? undefined : JSON.stringify(body)
      const sent = { accept: JSON_TYPE, ...knownHeaders(headers), host: 'inside',
        ...(text !== undefined && { 'content-type': JSON_TYPE, 'content-length': String(Buffer.byteLength(text)) }) }
      try {
        const response = await new Promise((resolve: (response: http.IncomingMessage) => void, reject) => {
          http.request({ method, path: `/api/v1${path}`, headers: sent, signal, createConnection: () => near }).once(
            'response',
            resolve
          ).once('error', reject).end(text)
        })
        return { status: Number(response.statusCode), headers: response.headers,
          body: await textOf(limitBytes(response, maxBytes)) }
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw isClosed ? new DeckError('stopping', 'The admin page of this master is closing', { cause: error }) : error
      } finally {
        near.destroy()
      }
    },

    close () {
      isClosed = true
      for (const connection of connections.keys()) connection.destroy()
    }
  }

  function connectSocket (auth: Auth): Duplex {
    server ??= http.createServer((req, res) => {
      const sender = connections.get(req.socket)
      if (sender) handle(sender, req, res)
    })
    const [near, far] = duplexPair()
    connections.set(far, auth)
    far.once('close', () => {
      connections.delete(far)
      // The other end would wait for ever unless destroyed; an answer that ended may still be read.
      if (!far.writableFinished) near.destroy()
    })
    near.once('close', () => far.destroy())
    server.emit('connection', far)
    return near
  }
}

function knownHeaders (headers: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => value === undefined ? [] : [[name, value]])
  )
}

/** @throws {DeckError} payload-too-large */
async function* limitBytes (chunks: AsyncIterable<Buffer>, maxBytes: number) {
  let left = maxBytes
  for await (const chunk of chunks) {
    left -= chunk.length
    if (left < 0) {
      throw new DeckError('payload-too-large',
        `The answer is larger than the ${maxBytes} bytes that a member may send: use a smaller limit or a filter`)
    }
    yield chunk
  }
}
