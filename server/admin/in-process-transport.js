import http from 'node:http'
import { duplexPair } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { DeckError } from '../errors.js'

/**
 * Requests that come over no port: the same server, the same app and the same checks, for whom somebody else has let in.
 * @typedef {ReturnType<typeof createInProcessTransport>} InProcessTransport
 * @typedef {{ method: string, path: string, headers: Record<string, string | undefined>, body?: unknown }} InProcessRequest `path`: below /api/v1, with its query
 * @typedef {{ status: number, headers: http.IncomingHttpHeaders, body: string }} Answer
 */

const JSON_TYPE = 'application/json'

/** @param {(auth: import('./guard.js').Auth, req: http.IncomingMessage, res: http.ServerResponse) => void} handle */
export function createInProcessTransport (handle) {
  /** Made for the first one who asks. @type {http.Server | null} */
  let server = null
  /** Who asks by which connection. @type {Map<import('node:stream').Duplex, import('./guard.js').Auth>} */
  const connections = new Map()
  let isClosed = false

  return {
    /**
     * @param {InProcessRequest} order @param {import('./guard.js').Auth} auth @param {{ maxBytes: number, signal: AbortSignal }} limits `maxBytes`: of the body of the answer
     * @returns {Promise<Answer>}
     * @throws {DeckError} payload-too-large, stopping, and what `signal` is aborted with
     */
    async ask ({ method, path, headers, body }, auth, { maxBytes, signal }) {
      const near = connect(auth)
      const text = body === undefined ? undefined : JSON.stringify(body)
      const sent = { accept: JSON_TYPE, ...known(headers), host: 'inside', ...(text !== undefined && { 'content-type': JSON_TYPE, 'content-length': String(Buffer.byteLength(text)) }) }
      try {
        const response = await new Promise((/** @type {(response: http.IncomingMessage) => void} */ resolve, reject) => {
          http.request({ method, path: `/api/v1${path}`, headers: sent, signal, createConnection: () => near }).once('response', resolve).once('error', reject).end(text)
        })
        return { status: Number(response.statusCode), headers: response.headers, body: await textOf(limited(response, maxBytes)) }
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw isClosed ? new DeckError('stopping', 'The admin page of this master ends', { cause: error }) : error
      } finally {
        near.destroy()
      }
    },

    close () {
      isClosed = true
      for (const connection of connections.keys()) connection.destroy()
    }
  }

  /** @param {import('./guard.js').Auth} auth @returns {import('node:stream').Duplex} */
  function connect (auth) {
    server ??= http.createServer((req, res) => handle(/** @type {import('./guard.js').Auth} */ (connections.get(req.socket)), req, res))
    const [near, far] = duplexPair()
    connections.set(far, auth)
    far.once('close', () => {
      connections.delete(far)
      // By itself the other end would wait for ever; what was ended whole may still be read.
      if (!far.writableFinished) near.destroy()
    })
    near.once('close', () => far.destroy())
    server.emit('connection', far)
    return near
  }
}

/** @param {Record<string, string | undefined>} headers @returns {Record<string, string>} */
function known (headers) {
  return /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)))
}

/** @param {AsyncIterable<Buffer>} chunks @param {number} maxBytes @throws {DeckError} payload-too-large */
async function * limited (chunks, maxBytes) {
  let left = maxBytes
  for await (const chunk of chunks) {
    left -= chunk.length
    if (left < 0) throw new DeckError('payload-too-large', `the answer is larger than the ${maxBytes} bytes that can come from a member: ask for less, by a limit or a filter`)
    yield chunk
  }
}
