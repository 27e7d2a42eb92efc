/**
 * By which scheme a browser has come here: a proxy in front that speaks TLS says so. Who lies about it harms
 * nobody but himself: his cookie comes back by TLS alone, and his link leads nowhere.
 * @param {import('node:http').IncomingMessage} req
 * @returns {'http' | 'https'}
 */
export function schemeOf ({ headers }) {
  const [first] = String(headers['x-forwarded-proto'] ?? '').split(',')
  return first.trim().toLowerCase() === 'https' ? 'https' : 'http'
}
