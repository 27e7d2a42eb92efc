import { isIP } from 'node:net'

/** @param {string} host a name or an address, in brackets or not @returns {boolean} whether it is reached from this machine alone */
export function isLoopback (host) {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}
