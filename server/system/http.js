import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { whyAbsent, whyNotTold } from './recipient.js'

/**
 * One request, whose redirects are not followed. Not by fetch(), which on Node 20 to 24 never settles where a
 * connection is closed as soon as it is open.
 * @param {string} url
 * @param {{ method?: string, headers: Record<string, string>, body?: string | import('node:stream').Readable, signal?: AbortSignal, fingerprint?: string | null, recipient: import('./recipient.js').Recipient | null, agent?: http.Agent }} request
 *   `fingerprint`: of the one certificate that is right, whoever has signed it; `recipient`: who may be told what is in it;
 *   null: whoever answers, as nothing is secret, or somebody has named both the address and the secret; `agent`: of
 *   keepConnections(), for the same fingerprint and recipient
 * @returns {Promise<http.IncomingMessage>} its body is still to be read
 * @throws {NodeJS.ErrnoException} such as ECONNREFUSED and ECONNRESET; AbortError
 */
export function sendRequest (url, { method = 'GET', headers, body, signal, fingerprint = null, recipient, agent }) {
  const absent = recipient && whyAbsent(recipient)
  if (absent) return Promise.reject(notTold(absent))
  const { request } = url.startsWith('https:') ? https : http
  // Who is to close a connection does so with its answer, and what is still being sent then would break it off.
  const sentHeaders = isStream(body) ? { ...headers, connection: 'keep-alive' } : headers
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: sentHeaders, signal, ...(agent ? { agent } : wayOf({ hasTls: url.startsWith('https:'), fingerprint, recipient, signal })) }).once('response', resolve).once('error', reject)
    if (!isStream(body)) return sent.end(body)
    // An answer that comes before all is sent is one that needs no more.
    sent.once('response', (response) => {
      body.unpipe(sent)
      response.once('end', () => sent.destroy())
    })
    body.once('error', (error) => sent.destroy(error)).pipe(sent)
  })
}

/**
 * Keeps connections for further requests. The kernel takes milliseconds to say who has the other end, and is asked once for each connection.
 * @param {string} url @param {{ fingerprint: string | null, recipient: import('./recipient.js').Recipient | null }} expected
 * @returns {http.Agent} to be destroyed
 */
export function keepConnections (url, { fingerprint, recipient }) {
  const hasTls = url.startsWith('https:')
  const { createConnection } = wayOf({ hasTls, fingerprint, recipient })
  return Object.assign(new (hasTls ? https : http).Agent({ keepAlive: true }), createConnection && { createConnection })
}

/** @param {Expected} expected @returns {Pick<http.RequestOptions, 'agent' | 'createConnection'>} */
function wayOf (expected) {
  return expected.fingerprint === null && expected.recipient === null ? { agent: false } : { createConnection: connectTo(expected) }
}

/** @typedef {{ hasTls: boolean, fingerprint: string | null, recipient: import('./recipient.js').Recipient | null, signal?: AbortSignal }} Expected */

/** @param {unknown} body @returns {body is import('node:stream').Readable} */
function isStream (body) {
  return body !== undefined && typeof body !== 'string'
}

/**
 * Nothing is sent before it is known who listens.
 * @param {Expected} expected
 * @returns {http.RequestOptions['createConnection']}
 */
function connectTo ({ hasTls, fingerprint, recipient, signal }) {
  return (options, onConnected) => {
    const socket = hasTls
      ? tls.connect(/** @type {tls.ConnectionOptions} */ ({ ...options, ...(fingerprint !== null && { rejectUnauthorized: false }) }))
      : net.connect(/** @type {net.NetConnectOpts} */ (options))
    const giveUpSocket = () => socket.destroy(signal?.reason)
    socket.once('close', () => signal?.removeEventListener('abort', giveUpSocket))
    signal?.addEventListener('abort', giveUpSocket)
    socket.once('error', (error) => onConnected(error, socket))
    socket.once(hasTls ? 'secureConnect' : 'connect', async () => {
      const reason = await whyWrong(socket)
      if (reason === null) return onConnected(null, socket)
      socket.destroy()
      onConnected(notTold(reason), socket)
    })
    return undefined
  }

  /** @param {net.Socket} socket @returns {Promise<string | null>} */
  async function whyWrong (socket) {
    if (fingerprint !== null && /** @type {tls.TLSSocket} */ (socket).getPeerCertificate().fingerprint256 !== fingerprint) return 'it shows another certificate than that of the master'
    return recipient && await whyNotTold(socket, recipient, { isPinned: fingerprint !== null })
  }
}

/** @param {string} reason is shown where others show a code */
function notTold (reason) {
  return Object.assign(new Error(reason), { code: reason })
}
