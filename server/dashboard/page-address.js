import { isLoopback } from '../system/loopback.js'

const PORTS = Object.freeze(/** @type {Record<string, string>} */ ({ 'http:': '80', 'https:': '443' }))

/**
 * Whether the browser has its page from this very port of its own machine, so that it reaches other loopback ports just
 * so; not by a proxy, nor by a tunnel that begins at another port.
 * @param {Pick<import('express').Request, 'get' | 'socket'>} req
 */
export function isAtLoopback (req) {
  // A proxy may have changed the Host.
  const shown = req.get('HX-Current-URL') ?? `http://${req.get('Host')}`
  if (!URL.canParse(shown)) return false
  const { hostname, port, protocol } = new URL(shown)
  return isLoopback(hostname) && (port || PORTS[protocol]) === String(req.socket.localPort)
}
