import type { IncomingMessage } from 'node:http'

/**
 * The scheme that the browser uses. A proxy with TLS sends X-Forwarded-Proto, or its URL is configured. A client that
 * lies about it only harms itself: its cookie comes back by TLS alone, and its link leads nowhere.
 */
export function createSchemeOf (publicUrl: string | null): (req: IncomingMessage) => 'http' | 'https' {
  const known = publicUrl === null ? null : new URL(publicUrl)
  return ({ headers, socket }) => {
    if (('encrypted' in socket && socket.encrypted) ||
      (known?.protocol === 'https:' && headers.host?.toLowerCase() === known.host))
    {
      return 'https'
    }
    const [first] = String(headers['x-forwarded-proto'] ?? '').split(',')
    return first.trim().toLowerCase() === 'https' ? 'https' : 'http'
  }
}
