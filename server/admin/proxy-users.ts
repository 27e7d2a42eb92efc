import { timingSafeEqual } from 'node:crypto'
import { BlockList, isIP, type Socket } from 'node:net'
import { ROLES, type Auth } from '../api/roles.ts'
import { BY_PROXY, isProxyUser } from '../config/actor-names.ts'
import { DeckError } from '../errors.ts'
import { otherEndOf, ownerOf, plainAddress } from '../system/connection-owner.ts'
import { sha256 } from './sessions.ts'
import type { IncomingMessage } from 'node:http'
import type { Config } from '../config/config.ts'

/** Identifies the sender of a request by what a proxy says of them in headers. */
export type ProxyAuth = Config['admin']['proxyAuth']

/** A live page or stream has to ask the proxy again after that time. */
const COUNTS_FOR_MS = 15 * 60_000

/** @returns whom a proxy has signed in, or throws; undefined: nobody; null: it was too long ago */
export function createProxyUsers (proxyAuth: ProxyAuth | undefined,
  { now }: { now: () => number }): (req: IncomingMessage) => Auth | null | undefined
{
  if (!proxyAuth || proxyAuth.from.length === 0) return () => undefined
  const { user: userHeader = 'X-Forwarded-User', groups: groupsHeader = 'X-Forwarded-Groups', roles } = proxyAuth
  const comesFromProxy = createSenderCheck(proxyAuth)
  const isOwnGroup = groupsHeader.toLowerCase() === userHeader.toLowerCase()
  /** Some live pages go on while the connection of their request, and so its address, is gone. */
  const judged: WeakMap<IncomingMessage, Auth & { until: number }> = new WeakMap()

  return (req) => {
    const known = judged.get(req)
    if (known) return known.until > now() ? known : null
    if (!req.headers[userHeader.toLowerCase()] || !comesFromProxy(req)) return undefined
    const user = headerOf(req, userHeader)
    if (!isProxyUser(user))
      throw new DeckError('bad-request',
        `${userHeader}: expected a name of at most 90 visible characters, no comma, no parenthesis`)
    const groups = isOwnGroup ? [user] : headerOf(req, groupsHeader).split(/[,\s]+/)
    const given = [...groups, '*'].flatMap((group) => Object.hasOwn(roles, group) ? [roles[group]] : [])
    const role = ROLES.findLast((each) => given.includes(each))
    if (role === undefined)
      throw new DeckError('forbidden', `"${user}" has no role: admin.proxyAuth.roles has none of their groups`)
    const name = user + BY_PROXY
    const auth = { actor: name, via: 'proxy' as const, client: 'dashboard' as const, name, role, token: null,
      until: now() + COUNTS_FOR_MS, signOutUrl: proxyAuth.signOutUrl }
    judged.set(req, auth)
    return auth
  }
}

/**
 * Every program of this machine can send from any of its addresses. So without a secret an address counts for other
 * machines alone, and a connection from here by the user who has it, which the kernel tells.
 */
function createSenderCheck ({ from, secret }: ProxyAuth): (req: IncomingMessage) => boolean {
  const users = from.filter((each) => each.startsWith('uid:'))
  const named = new BlockList()
  for (const each of from.filter((one) => !users.includes(one))) {
    const [address, bits = isIP(each) === 6 ? 128 : 32] = each.split('/')
    named.addSubnet(address, Number(bits), familyOf(address))
  }
  return ({ socket, headersDistinct: { 'x-proxy-secret': secrets = [] } }) => {
    if (secret !== undefined && !(secrets.length === 1 && timingSafeEqual(sha256(secrets[0]), sha256(secret))))
      return false
    return isNamed(socket) || (users.length > 0 && users.includes(`uid:${ownerOf(socket)}`))
  }

  function isNamed (socket: Socket) {
    const address = plainAddress(socket.remoteAddress ?? '')
    return isIP(address) > 0 && named.check(address, familyOf(address)) &&
      (secret !== undefined || otherEndOf(socket) === 'elsewhere')
  }
}

function familyOf (address: string) {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4'
}

/** @throws {DeckError} bad-request: somebody else may have added the other one */
function headerOf (req: IncomingMessage, name: string): string {
  const [given = '', ...more] = req.headersDistinct[name.toLowerCase()] ?? []
  if (more.length > 0) throw new DeckError('bad-request', `${name}: expected once, received ${more.length + 1} times`)
  // node reads headers as Latin-1, proxies send UTF-8.
  return Buffer.from(given, 'latin1').toString()
}
