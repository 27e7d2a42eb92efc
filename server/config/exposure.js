import { DeckError } from '../errors.js'
import { isLoopback } from '../system/loopback.js'

/**
 * Refuses an admin port that others reach without TLS, unless that is said as well: whoever is on the way could read the
 * token and act with it.
 * @param {{ host: string, publicUrl?: string, tls: { cert?: string }, plainHttp: boolean }} admin
 * @throws {DeckError} invalid-config
 */
export function checkExposure ({ host, publicUrl, tls, plainHttp }) {
  if (isLoopback(host) || tls.cert || plainHttp || publicUrl?.startsWith('https:')) return
  throw new DeckError('invalid-config', `admin.host: expected 127.0.0.1 or another address of this machine alone, received ${JSON.stringify(host)}, where others could read tokens on the way: set admin.tls, or admin.publicUrl to the https address of a proxy in front, or admin.plainHttp if that is what you want`)
}
