import type { IncomingMessage } from 'node:http'

/** Whether a page has sent a form without its scripts. */
export function isFormOfPage ({ method, url, headers }: IncomingMessage) {
  return method === 'POST' && !String(url).startsWith('/api/') && !headers['hx-request'] &&
    String(headers.accept).includes('text/html')
}
