import { isLoopback } from '../system/loopback.ts'
import type { Request } from 'express'

const PORTS: Readonly<Record<string, string>> = Object.freeze({ 'http:': '80', 'https:': '443' })

/**
 * Whether the browser runs on this machine and loaded its page from this port, not through a proxy or from another port
 * of a tunnel. It can then open other loopback ports, too.
 */
export function isAtLoopback (req: Pick<Request, 'get' | 'socket'>) {
  // A proxy may have changed the Host header, so the address that the browser reports comes first.
  const shown = req.get('HX-Current-URL') ?? `http://${req.get('Host')}`
  if (!URL.canParse(shown)) return false
  const { hostname, port, protocol } = new URL(shown)
  return isLoopback(hostname) && (port || PORTS[protocol]) === String(req.socket.localPort)
}
