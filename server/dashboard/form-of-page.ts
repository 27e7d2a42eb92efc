import type { IncomingMessage } from 'node:http'

export function isFormOfPage ({ method, url, headers }: IncomingMessage) {
  return method === 'POST' && !String(url).startsWith('/api/') && !headers['hx-request'] &&
    String(headers.accept).includes('text/html')
}
