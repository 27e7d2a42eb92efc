import { isIP } from 'node:net'

/** `host`: a name or an address, in brackets or not. Returns whether it is reached from this machine alone. */
export function isLoopback (host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}
