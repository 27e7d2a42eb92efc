import { createAnonymousLimiter } from './anonymous-limiter.ts'
import { createAppIdentities } from './app-identities.ts'
import { createGuard } from './guard.ts'
import { attemptOf, createLimiter } from './limiter.ts'
import { createProxyUsers, type ProxyAuth } from './proxy-users.ts'
import { createSessions } from './sessions.ts'
import { createTokens } from './tokens.ts'
import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import type { Apps } from '../host/api-apps.ts'
import type { EventStream } from '../events/stream.ts'
import type { History } from '../../db/history.ts'
import type { Links } from './sign-in-links.ts'
import type { Log } from '../system/log.ts'

/** Who may ask: what an admin port has once, whatever apps are behind it. */
export type Access = ReturnType<typeof createAccess>

/** How many requests are answered in a window of time. */
export type Limits = {
  windowMs: number,
  /** with a wrong token, from one address */
  signInAttempts: number,
  /** of one holder who is signed in */
  requests: number,
  /** to other decks, of one holder who is signed in: each makes a link there */
  switches: number,
  /** without a sign-in, from one address, for paths that are not public */
  strangerRequests: number
}

export const LIMITS: Readonly<Limits> = Object.freeze({ windowMs: 60_000, signInAttempts: 10, requests: 6000,
  switches: 30, strangerRequests: 600 })

export type AccessParts = {
  /** of a host, where a role may be for some of them */
  apps?: Apps | null,
  /** hears of sign-ins and tokens */
  events: EventStream,
  /** keeps sessions and tokens */
  history: History,
  /** of the owner */
  token: string,
  host: string,
  /** the real one: it names the cookie, since cookies ignore ports */
  port: number,
  allowedHosts: readonly string[],
  basePath: string,
  publicUrl: string | null,
  hasTls: boolean,
  sessionTtlMs: number,
  proxyAuth?: ProxyAuth,
  links: Links,
  now: () => number,
  log: Log,
  randomBytes?: (size: number) => Buffer,
  /** in place of those of LIMITS */
  limits: Partial<Limits>
}

export function createAccess (
  { apps = null, events, history, token, host, port, allowedHosts, basePath, publicUrl, hasTls, sessionTtlMs, proxyAuth,
    links, now, log, randomBytes, limits: wanted }: AccessParts
) {
  const { windowMs, requests, switches, signInAttempts, strangerRequests } = { ...LIMITS, ...wanted }
  const schemeOf = createSchemeOf(publicUrl)
  const identities = createAppIdentities(apps)
  const tokens = createTokens({ store: history.tokens, owner: token, identities, now, randomBytes })
  const sessions = createSessions({ store: history.sessions, tokensOfApps: apps?.tokens, tokens, identities, token,
    ttlMs: sessionTtlMs, cookieName: `clusterdeck_${port}`, cookiePath: basePath || '/', schemeOf, now, randomBytes,
    log, userByProxy: createProxyUsers(proxyAuth, { now }) })
  const { authenticate } = sessions

  return {
    apps,
    events,
    tokens,
    sessions,
    links: { create: (person, from) => links.create(person && identities.kept(person), from), redeem (code) {
      const { person, ...found } = links.redeem(code)
      return { ...found, ...(person && { person: identities.named(person) }) }
    } } as Pick<Links, 'create' | 'redeem'>,
    guard: createGuard({ authenticate, host, port, allowedHosts, publicUrl, scheme: hasTls ? 'https' : 'http' }),
    strangers: createAnonymousLimiter({ windowMs, limit: strangerRequests, now }),
    limiters: { requests: createLimiter({ windowMs, limit: requests, now, senderOf: holderOf }),
      switches: createLimiter({ windowMs, limit: switches, now, senderOf: holderOf }),
      signIn: createLimiter({ windowMs, limit: signInAttempts, now, senderOf: attemptOf, countsFailures: true }) },

    /** Remembers when and from where a token was used, also by a session of it. */
    noteUse ({ auth, socket }: IncomingMessage) {
      if (auth) tokens.noteUse(auth, socket.remoteAddress ?? 'unknown')
    },

    /** The name that a caller used is one that the caller can reach, and the guard has checked it. */
    urlFor: (req: IncomingMessage) => publicUrl ?? `${schemeOf(req)}://${req.headers.host}${basePath}`
  }
}

/** Those without a sign-in are counted earlier and apart, so that they cannot use up the limits of others. */
function holderOf ({ auth }: Request) {
  return auth ? `${auth.via} ${auth.via === 'proxy' ? auth.actor : auth.token}` : null
}

/**
 * The scheme that the browser uses. A proxy with TLS sends X-Forwarded-Proto, or its URL is configured. A client that
 * lies about it only harms itself: its cookie comes back by TLS alone, and its link leads nowhere.
 */
function createSchemeOf (publicUrl: string | null): (req: IncomingMessage) => 'http' | 'https' {
  const known = publicUrl === null ? null : new URL(publicUrl)
  return ({ headers, socket }) => {
    if (('encrypted' in socket && socket.encrypted) ||
      (known?.protocol === 'https:' && headers.host?.toLowerCase() === known.host))
    {
      return 'https'
    }
    const [first] = String(headers['x-forwarded-proto'] ?? '').split(',')
    return first.trim().toLowerCase() === 'https' ? 'https' : 'http'
  }
}
