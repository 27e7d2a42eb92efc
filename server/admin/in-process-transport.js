import http from 'node:http'
import { duplexPair } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { DeckError } from '../errors.js'

/**
 * Requests without a port: the same server, app and checks, for people whom another deck has signed in.
 * @typedef {ReturnType<typeof createInProcessTransport>} InProcessTransport
 * @typedef {{
 *   method: string,
 *   path: string,
 *   headers: Record<string, string | undefined>,
 *   body?: unknown
 * }} InProcessRequest `path`: below /api/v1, with its query
 * @typedef {{ status: number, headers: http.IncomingHttpHeaders, body: string }} Answer
 */

const JSON_TYPE = 'application/json'

/** @param {(auth: import('../api/roles.js').Auth, req: http.IncomingMessage, res: http.ServerResponse) => void} handle */
export function createInProcessTransport (handle) {
  /** Created by the first request. @type {http.Server | null} */
  let server = null
  /** Who sends the requests of each connection. @type {Map<import('node:stream').Duplex, import('../api/roles.js').Auth>} */
  const connections = new Map()
  let isClosed = false

  return {
    /**
     * @param {InProcessRequest} order
     * @param {import('../api/roles.js').Auth} auth
     * @param {{ maxBytes: number, signal: AbortSignal }} limits `maxBytes`: the largest body of an answer
     * @returns {Promise<Answer>}
     * @throws {DeckError} payload-too-large, stopping, and what `signal` is aborted with
     */
    async ask ({ method, path, headers, body }, auth, { maxBytes, signal }) {
      const near = connectSocket(auth)
      const text = body === undefined ? undefined : JSON.stringify(body)
      const sent = {
        accept: JSON_TYPE,
        ...knownHeaders(headers),
        host: 'inside',
        ...(text !== undefined && { 'content-type': JSON_TYPE, 'content-length': String(Buffer.byteLength(text)) })
      }
      try {
        const response = await new Promise((/** @type {(response: http.IncomingMessage) => void} */ resolve, reject) => {
          http
            .request({ method, path: `/api/v1${path}`, headers: sent, signal, createConnection: () => near })
            .once('response', resolve)
            .once('error', reject)
            .end(text)
        })
        return { status: Number(response.statusCode), headers: response.headers, body: await textOf(limitBytes(response, maxBytes)) }
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

  /** @param {import('../api/roles.js').Auth} auth @returns {import('node:stream').Duplex} */
  function connectSocket (auth) {
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

/** @param {Record<string, string | undefined>} headers @returns {Record<string, string>} */
function knownHeaders (headers) {
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))
}

/** @param {AsyncIterable<Buffer>} chunks @param {number} maxBytes @throws {DeckError} payload-too-large */
async function * limitBytes (chunks, maxBytes) {
  let left = maxBytes
  for await (const chunk of chunks) {
    left -= chunk.length
    if (left < 0) {
      throw new DeckError(
        'payload-too-large',
        `The answer is larger than the ${maxBytes} bytes that a member may send: use a smaller limit or a filter`
      )
    }
    yield chunk
  }
}
