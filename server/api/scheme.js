/**
 * By which scheme a browser comes here. A proxy that speaks TLS says so by X-Forwarded-Proto, or its address is configured.
 * Who lies about it harms nobody but himself: his cookie comes back by TLS alone, and his link leads nowhere.
 * @param {string | null} publicUrl
 * @returns {(req: import('node:http').IncomingMessage) => 'http' | 'https'}
 */
export function createSchemeOf (publicUrl) {
  const known = publicUrl === null ? null : new URL(publicUrl)
  return ({ headers, socket }) => {
    if (/** @type {import('node:tls').TLSSocket} */ (socket).encrypted || (known?.protocol === 'https:' && headers.host?.toLowerCase() === known.host)) return 'https'
    const [first] = String(headers['x-forwarded-proto'] ?? '').split(',')
    return first.trim().toLowerCase() === 'https' ? 'https' : 'http'
  }
}
