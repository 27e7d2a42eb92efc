import { isLoopback } from '../system/loopback.js'

/** @type {Readonly<Record<string, string>>} */
const PORTS = Object.freeze({ 'http:': '80', 'https:': '443' })

/**
 * Whether the browser runs on this machine and loaded its page from this port, not through a proxy or from another port of
 * a tunnel. It can then open other loopback ports, too.
 * @param {Pick<import('express').Request, 'get' | 'socket'>} req
 */
export function isAtLoopback (req) {
  // A proxy may have changed the Host header, so the address that the browser reports comes first.
  const shown = req.get('HX-Current-URL') ?? `http://${req.get('Host')}`
  if (!URL.canParse(shown)) return false
  const { hostname, port, protocol } = new URL(shown)
  return isLoopback(hostname) && (port || PORTS[protocol]) === String(req.socket.localPort)
}
