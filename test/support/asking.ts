import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'

/** `url`: of http or https. Returns what is answered over a connection of its own. */
export function get (url: string): Promise<string> {
  const isTls = url.startsWith('https')
  return new Promise((resolve, reject) => {
    const request = (isTls ? https : http).get(url, { agent: false, timeout: 10_000,
      ...(isTls ? { rejectUnauthorized: false } : {}) }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text) => {
        body += text
      }).on('end', () => resolve(body)).on('error', reject)
    })
    request.on('error', reject).on('timeout', () => request.destroy(new Error('no answer within 10 s')))
  })
}

export async function askPath (socketPath: string, path: string = '/'): Promise<string> {
  const [response] = await once(http.get({ socketPath, path, agent: false }), 'response')
  return String((await response.toArray()).join(''))
}

export async function askDatagram (port: number, address: string = '127.0.0.1'): Promise<string> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  socket.send('hello', port, address)
  const [message] = await once(socket, 'message')
  socket.close()
  return String(message)
}
