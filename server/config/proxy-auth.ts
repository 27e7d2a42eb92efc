import { isIP } from 'node:net'
import { isLoopback } from '../system/loopback.ts'
import { invalid } from './invalid.ts'
import type { Config } from './config.ts'

/** Whether it says where a proxy connects from: an address, a range, or a user of this machine. */
export function isProxySource (text: string): boolean {
  if (/^uid:(0|[1-9]\d{0,9})$/.test(text)) return true
  const [, address = '', bits = '32'] = /^([^/%]+)(?:\/(\d+))?$/.exec(text) ?? []
  const isV4 = isIP(address) === 4
  // Lower ones have another meaning: 0.0.0.0, or IPv4 in the form of IPv6.
  const isOne = text === '::1' || parseInt(address, isV4 ? 10 : 16) > (isV4 ? 0 : 0xff)
  // No proxy is everywhere in a wider range: 0.0.0.0/0 is everybody.
  return isIP(address) > 0 && isOne && Number(bits) >= 8 && Number(bits) <= (isV4 ? 32 : 128)
}

/** @throws {DeckError} invalid-config */
export function checkProxyAuth ({ from, roles, secret }: Config['admin']['proxyAuth']) {
  const hasRoles = Object.keys(roles).length > 0
  if (hasRoles !== from.length > 0)
    throw invalid(`admin.proxyAuth.${hasRoles ? 'from' : 'roles'}`,
      `a value, as admin.proxyAuth.${hasRoles ? 'roles' : 'from'} has one`, 'nothing')
  const own = from.find((each) => isLoopback(each.split('/')[0]))
  if (own !== undefined && secret === undefined)
    throw invalid('admin.proxyAuth.from',
      'the user of the proxy, such as uid:0, or a secret with it, as every user of this machine can send from there',
      JSON.stringify(own))
}
