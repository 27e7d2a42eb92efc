import { DeckError } from '../errors.ts'
import { isLoopback } from '../system/loopback.ts'

/**
 * Refuses an admin port that others reach without TLS, unless an option allows it: they could read the token on its
 * way.
 * @throws {DeckError} invalid-config
 */
export function checkExposure (
  { host, publicUrl, tls, plainHttp }: { host: string, publicUrl?: string, tls: { cert?: string }, plainHttp: boolean }
) {
  if (isLoopback(host) || tls.cert || plainHttp || publicUrl?.startsWith('https:')) return
  const ways = 'set admin.tls, or admin.publicUrl to the https address of a proxy, or admin.plainHttp to allow it'
  const expected = `an address of this machine alone, such as 127.0.0.1, received ${
    JSON.stringify(host)
  }, where others could read tokens`
  throw new DeckError('invalid-config', `admin.host: expected ${expected}; ${ways}`)
}
