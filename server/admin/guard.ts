import { DeckError } from '../errors.ts'
import { isByBrowser, type Auth } from '../api/roles.ts'
import type { IncomingMessage } from 'node:http'

/**
 * Stands before express and before engine.io, on every request and every upgrade: engine.io does not ask again
 * once a session id is present, and a page of the app that we supervise shares our cookies (cookies ignore ports).
 */

/** Where socket.io answers; nothing below it is reached without being signed in. */
export const LIVE_PATH = '/socket.io/'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Asked by address, or by no name at all, and the same for everybody. */
const PROBES = new Set(['/healthz', '/readyz'])
const PROBE_METHODS = new Set(['GET', 'HEAD'])
const WILDCARDS = new Set(['0.0.0.0', '::', '[::]'])
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']

export function createGuard ({ authenticate, host, port, allowedHosts = [], publicUrl = null, scheme = 'http' }: {
  authenticate: (req: IncomingMessage) => Auth | null,
  /** what the listener is bound to */
  host: string,
  /** the real one, never 0 */
  port: number,
  /** more names, with or without a port */
  allowedHosts?: readonly string[],
  publicUrl?: string | null,
  /** of the listener */
  scheme?: 'http' | 'https'
}) {
  const site = { host, port, allowedHosts, publicUrl, scheme }
  const hosts = allowedHostHeaders(site)
  const origins = allowedOrigins(site)

  return {
    /**
     * Returns the sender; null: not signed in, only public paths are allowed.
     * @throws {DeckError} `forbidden`, `bad-request`; below the live path also `unauthenticated`
     */
    admitRequest (req: IncomingMessage): Auth | null {
      checkTarget(req)
      if (!isProbe(req)) checkHost(req, hosts)
      checkOrigin(req, origins)
      // A probe is never signed in, even with a token or a cookie.
      const auth = isProbe(req) ? null : authenticate(req)
      if (auth && isByBrowser(auth)) checkSameOrigin(req, SAFE_METHODS.has(String(req.method)))
      if (!auth && isLive(req)) throw new DeckError('unauthenticated', 'Sign in to follow the live page')
      return auth
    },

    /** @throws {DeckError} as above, and `not-found`: nothing but the live page upgrades */
    admitUpgrade (req: IncomingMessage): Auth {
      checkTarget(req)
      checkHost(req, hosts)
      checkOrigin(req, origins)
      if (!isLive(req)) throw new DeckError('not-found', 'Nothing here can be upgraded')
      const auth = authenticate(req)
      if (!auth) throw new DeckError('unauthenticated', 'Sign in to follow the live page')
      // A WebSocket is a GET that may write, and no same-origin policy protects it.
      if (isByBrowser(auth)) checkSameOrigin(req, false)
      return auth
    }
  }
}

/**
 * Protects changes by a cookie, ours or that of a proxy: the browser must confirm that our own page sends the request. A
 * page of the app on another port of this host is `same-site`, so SameSite cookies do not help.
 * @param isRead a foreign page may not read either, but it may link to us
 */
export function checkSameOrigin (req: IncomingMessage, isRead: boolean) {
  const site = req.headers['sec-fetch-site']
  const isVouched = site === undefined ? req.headers.origin !== undefined : site === 'same-origin'
  if (isVouched) return
  const isOrdinaryRead = site === undefined || site === 'none' || req.headers['sec-fetch-mode'] === 'navigate'
  if (isRead && isOrdinaryRead) return
  throw new DeckError('forbidden',
    'Only pages of this dashboard may send this: expected Sec-Fetch-Site: same-origin or its own Origin')
}

// Absolute and asterisk targets are for proxies; they would let the Host that was checked differ from the one that is
// used.
function checkTarget ({ url }: IncomingMessage) {
  if (!url?.startsWith('/')) throw new DeckError('bad-request', 'The request target must be a path')
}

function checkHost (req: IncomingMessage, hosts: Set<string>) {
  const given = req.headersDistinct.host ?? []
  if (given.length === 1 && hosts.has(given[0].toLowerCase())) return
  throw new DeckError('forbidden',
    `Host: ${
      JSON.stringify(given.join(', ').slice(0, 100))
    } is not a host name of this admin port; admin.allowedHosts adds more`)
}

function checkOrigin (req: IncomingMessage, origins: Set<string>) {
  const { origin } = req.headers
  if (origin === undefined || origins.has(origin)) return
  throw new DeckError('forbidden', `Origin: ${JSON.stringify(origin.slice(0, 100))} is not this dashboard`)
}

export function isProbe ({ method, url }: Pick<IncomingMessage, 'method' | 'url'>) {
  return PROBE_METHODS.has(String(method)) && PROBES.has(String(url).split('?', 1)[0])
}

function isLive (req: IncomingMessage) {
  return String(req.url).startsWith(LIVE_PATH)
}

type Site = { host: string, port: number, allowedHosts: readonly string[], publicUrl: string | null,
  scheme: 'http' | 'https' }

const IMPLIED_PORTS = Object.freeze({ http: 80, https: 443 })

/** Every Host header that means this site, compared as a whole, so that a rebound DNS name is refused. */
function allowedHostHeaders ({ host, port, allowedHosts, publicUrl, scheme }: Site) {
  const own = ownNames(host).flatMap((name) => withPort(name, port, IMPLIED_PORTS[scheme]))
  // A name without a port also stands for a reverse proxy on the usual ports.
  const more = allowedHosts.flatMap((name) => hasPort(name) ? [name] : [name, `${name}:${port}`])
  const known = publicUrl === null ? [] : [new URL(publicUrl).host]
  return new Set([...own, ...more, ...known].map((name) => name.toLowerCase()))
}

function allowedOrigins ({ host, port, allowedHosts, publicUrl, scheme }: Site) {
  const own = ownNames(host).map((name) => withPort(name, port, IMPLIED_PORTS[scheme]).at(-1)).map((name) =>
    `${scheme}://${name}`
  )
  const more = allowedHosts.flatMap((name) =>
    hasPort(name)
      ? [`http://${name}`, `https://${name}`]
      : [`http://${name}`, `https://${name}`, `http://${name}:${port}`, `https://${name}:${port}`]
  )
  const known = publicUrl === null ? [] : [new URL(publicUrl).origin]
  return new Set([...own, ...more, ...known].map((name) => name.toLowerCase()))
}

function ownNames (host: string) {
  if (WILDCARDS.has(host)) return LOOPBACK_NAMES
  return [...new Set([...LOOPBACK_NAMES, host.includes(':') && !host.startsWith('[') ? `[${host}]` : host])]
}

// Browsers leave out the port that the scheme implies.
function withPort (name: string, port: number, implied: number) {
  return port === implied ? [`${name}:${port}`, name] : [`${name}:${port}`]
}

function hasPort (name: string) {
  return /:\d+$/.test(name) && (!name.includes('::') || name.includes(']:'))
}
