import { createSchemeOf } from '../api/scheme.js'
import { createAnonymousLimiter } from './anonymous-limiter.js'
import { createAppIdentities } from './app-identities.js'
import { createGuard } from './guard.js'
import { createLimiter } from './limiter.js'
import { createSessions } from './sessions.js'
import { attemptOf } from './sign-in.js'
import { createTokens } from './tokens.js'

/**
 * Who may ask: what an admin port has once, whatever apps are behind it.
 * @typedef {ReturnType<typeof createAccess>} Access
 */

/**
 * How many requests are answered in a window of time.
 * @typedef {object} Limits
 * @property {number} windowMs
 * @property {number} signInAttempts  with a wrong token, from one address
 * @property {number} requests  of one holder who is signed in
 * @property {number} switches  to other decks, of one holder who is signed in: each makes a link there
 * @property {number} strangerRequests  without a sign-in, from one address, for paths that are not public
 */

/** @type {Readonly<Limits>} */
export const LIMITS = Object.freeze({ windowMs: 60_000, signInAttempts: 10, requests: 6000, switches: 30, strangerRequests: 600 })

/**
 * @typedef {object} AccessParts
 * @property {import('../api/apps.js').Apps | null} [apps]  of a host, where a role may be for some of them
 * @property {import('../events/stream.js').EventStream} events  hears of sign-ins and tokens
 * @property {import('../../db/history.js').History} history  keeps sessions and tokens
 * @property {string} token  of the owner
 * @property {string} host
 * @property {number} port  the real one: it names the cookie, since cookies ignore ports
 * @property {readonly string[]} allowedHosts
 * @property {string} basePath
 * @property {string | null} publicUrl
 * @property {boolean} hasTls
 * @property {number} sessionTtlMs
 * @property {import('./sign-in-links.js').Links} links
 * @property {() => number} now
 * @property {import('../system/log.js').Log} log
 * @property {(size: number) => Buffer} [randomBytes]
 * @property {Partial<Limits>} limits  in place of those of LIMITS
 */

/** @param {AccessParts} parts */
export function createAccess ({
  apps = null,
  events,
  history,
  token,
  host,
  port,
  allowedHosts,
  basePath,
  publicUrl,
  hasTls,
  sessionTtlMs,
  links,
  now,
  log,
  randomBytes,
  limits: wanted
}) {
  const { windowMs, requests, switches, signInAttempts, strangerRequests } = { ...LIMITS, ...wanted }
  const schemeOf = createSchemeOf(publicUrl)
  const identities = createAppIdentities(apps)
  const tokens = createTokens({ store: history.tokens, owner: token, identities, now, randomBytes })
  const sessions = createSessions({
    store: history.sessions,
    tokens,
    identities,
    token,
    ttlMs: sessionTtlMs,
    cookieName: `clusterdeck_${port}`,
    cookiePath: basePath || '/',
    schemeOf,
    now,
    randomBytes,
    log
  })
  const { authenticate } = sessions

  return {
    apps,
    events,
    tokens,
    sessions,
    /** @type {Pick<import('./sign-in-links.js').Links, 'create' | 'redeem'>} */
    links: {
      create: (person, from) => links.create(person && identities.kept(person), from),
      redeem (code) {
        const { person, ...found } = links.redeem(code)
        return { ...found, ...(person && { person: identities.named(person) }) }
      }
    },
    guard: createGuard({ authenticate, host, port, allowedHosts, publicUrl, scheme: hasTls ? 'https' : 'http' }),
    strangers: createAnonymousLimiter({ windowMs, limit: strangerRequests, now }),
    limiters: {
      requests: createLimiter({ windowMs, limit: requests, now, senderOf: holderOf }),
      switches: createLimiter({ windowMs, limit: switches, now, senderOf: holderOf }),
      signIn: createLimiter({ windowMs, limit: signInAttempts, now, senderOf: attemptOf, countsFailures: true })
    },

    /** The name that a caller used is one that the caller can reach, and the guard has checked it. @param {import('node:http').IncomingMessage} req */
    urlFor: (req) => publicUrl ?? `${schemeOf(req)}://${req.headers.host}${basePath}`
  }
}

/** Those without a sign-in are counted earlier and apart, so that they cannot use up the limits of others. @param {import('express').Request} req */
function holderOf ({ auth }) {
  return auth ? `${auth.via} ${auth.token}` : null
}
