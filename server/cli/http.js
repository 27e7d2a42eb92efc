import http from 'node:http'
import https from 'node:https'

/**
 * One request, whose redirects are not followed. Not by fetch(), which on Node 20 to 24 never settles where a
 * connection is closed as soon as it is open.
 * @param {string} url @param {{ method?: string, headers: Record<string, string>, body?: string, signal?: AbortSignal }} request
 * @returns {Promise<http.IncomingMessage>} its body is still to be read
 * @throws {NodeJS.ErrnoException} such as ECONNREFUSED and ECONNRESET; AbortError
 */
export function request (url, { method = 'GET', headers, body, signal }) {
  const { request } = url.startsWith('https:') ? https : http
  return new Promise((resolve, reject) => {
    request(url, { method, headers, signal, agent: false }).once('response', resolve).once('error', reject).end(body)
  })
}
