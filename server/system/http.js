import http from 'node:http'
import https from 'node:https'
import tls from 'node:tls'

/**
 * One request, whose redirects are not followed. Not by fetch(), which on Node 20 to 24 never settles where a
 * connection is closed as soon as it is open.
 * @param {string} url
 * @param {{ method?: string, headers: Record<string, string>, body?: string | import('node:stream').Readable, signal?: AbortSignal, fingerprint?: string | null }} request `fingerprint`: of the one certificate that is right, whoever has signed it
 * @returns {Promise<http.IncomingMessage>} its body is still to be read
 * @throws {NodeJS.ErrnoException} such as ECONNREFUSED and ECONNRESET; AbortError
 */
export function request (url, { method = 'GET', headers, body, signal, fingerprint = null }) {
  const { request } = url.startsWith('https:') ? https : http
  // Who is to close a connection does so with its answer, and what is still being sent then would break it off.
  const sentHeaders = isStream(body) ? { ...headers, connection: 'keep-alive' } : headers
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: sentHeaders, signal, ...(fingerprint === null ? { agent: false } : { createConnection: connectTo(fingerprint) }) }).once('response', resolve).once('error', reject)
    if (!isStream(body)) return sent.end(body)
    // An answer that comes before all is sent is one that needs no more.
    sent.once('response', (response) => {
      body.unpipe(sent)
      response.once('end', () => sent.destroy())
    })
    body.once('error', (error) => sent.destroy(error)).pipe(sent)
  })
}

/** @param {unknown} body @returns {body is import('node:stream').Readable} */
function isStream (body) {
  return body !== undefined && typeof body !== 'string'
}

/**
 * Nothing is sent before it is known who listens.
 * @param {string} fingerprint
 * @returns {http.RequestOptions['createConnection']}
 */
function connectTo (fingerprint) {
  return (options, onConnected) => {
    const socket = tls.connect(/** @type {tls.ConnectionOptions} */ ({ ...options, rejectUnauthorized: false }))
    socket.once('error', (error) => onConnected(error, socket))
    socket.once('secureConnect', () => {
      if (socket.getPeerCertificate().fingerprint256 === fingerprint) return onConnected(null, socket)
      socket.destroy(Object.assign(new Error('another certificate'), { code: 'it shows another certificate than that of the master' }))
    })
    return undefined
  }
}
