import http from 'node:http'
import https from 'node:https'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

const PATIENCE_MS = 20_000

/** HTTP/1, over TLS with `protocol: 'https'`, over a Unix socket where one is given. */
export function openHttp ({ protocol, host, port, socket, path = '/', method = 'GET', headers = {}, body }: Target,
  isFresh: boolean): Session
{
  const transport = protocol === 'https' ? https : http
  const agent = isFresh ? false : new transport.Agent({ keepAlive: true, maxSockets: 1 })
  const where = socket ? { socketPath: socket } : { host, port, rejectUnauthorized: false }
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const options = { ...where, path, method, agent, timeout: PATIENCE_MS, headers: { ...headers, ...length } }
  return { ask: () =>
    new Promise((resolve, reject) => {
      const request = transport.request(options, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        }).on('error', reject)
        response.on('end', () =>
          response.statusCode === 200
            ? resolve(text)
            : reject(new Error(`status ${response.statusCode}: ${text.slice(0, 80)}`)))
      })
      request.on('error', reject).on('timeout', () => request.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)))
        .end(body)
    }), close: () => {
      if (agent) agent.destroy()
    } }
}
