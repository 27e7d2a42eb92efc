import { createHash, createHmac, randomBytes as cryptoRandomBytes, timingSafeEqual } from 'node:crypto'
import { attempt } from '../errors.ts'
import { actorOf, doerOf, type Auth, type Person } from '../api/roles.ts'
import { NOBODY, ownerOf as ownerOfConnection } from '../system/connection-owner.ts'
import { createAppIdentities, type AppIdentities } from './app-identities.ts'
import type { IncomingMessage } from 'node:http'
import type { Session } from '../../db/sessions.ts'
import type { TokenRegistry } from '../access/api-tokens.ts'
import type { Log } from '../system/log.ts'

/**
 * Identifies the sender of a request by a token or by a session. The secret of a session is in its cookie alone. Its
 * hash is stored, keyed by the token, so that a new token ends every session of the old one.
 */
/** see db/sessions.ts */
type SessionStore = { create: (session: Session) => unknown, find: (hash: string) => Session | null | undefined,
  revoke: (hash: string) => unknown, countByToken: (now: number) => Map<number | null, number>,
  revokeAll: () => unknown }
export type Sessions = ReturnType<typeof createSessions>

const SECRET_BYTES = 32
const SECRET_SHAPE = /^[\w-]{43}$/
// Pages of other ports can set cookies of our name for a longer path; those come first in the header.
const MAX_CANDIDATES = 4
const MAX_REMEMBERED = 1000
/** The holder of the token of the data folder. */
const ADMIN: Readonly<Person> = Object.freeze({ name: null, role: 'admin', token: null, until: null })
const NO_TOKENS = Object.freeze({ find: () => null, isValid: () => false, noteUse () {}, revokedBy: () => null })

export function createSessions (
  { store, token, tokensOfApps = () => [], tokens = NO_TOKENS, identities = createAppIdentities(null), ttlMs,
    cookieName, cookiePath = '/', schemeOf = () => 'http', ownerOf = ownerOfConnection, now = Date.now,
    userByProxy = () => undefined, randomBytes = cryptoRandomBytes, log = { warn () {} } }: {
      store: SessionStore,
      token: string,
      /** of the data folders of the apps of a host, by name: each opens its app alone */
      tokensOfApps?: () => [app: string, token: string][],
      /** with a name */
      tokens?: Pick<TokenRegistry, 'find' | 'isValid' | 'noteUse' | 'revokedBy'>,
      identities?: AppIdentities,
      /** fixed: use does not extend a session */
      ttlMs: number,
      cookieName: string,
      cookiePath?: string,
      schemeOf?: (req: IncomingMessage) => 'http' | 'https',
      /**
       * a browser sends a cookie to every port of a host, also to a server of another
       * user; the check of the owner keeps that user from using it on this machine
       */
      ownerOf?: typeof ownerOfConnection,
      now?: () => number,
      /** undefined: no proxy has signed anybody in; null: what it said is too old */
      userByProxy?: (req: IncomingMessage) => Auth | null | undefined,
      randomBytes?: (size: number) => Buffer,
      log?: Pick<Log, 'warn'>
    }
) {
  const tokenHash = sha256(token)
  // The dashboard must stay usable while the database fails, and a session that was ended then must stay ended.
  const remembered: Map<string, Session> = new Map()
  /** Why sessions have ended, to tell whoever still has their cookie. */
  const ended: Map<string, { session: Session, why: string }> = new Map()
  let isStoreTrusted = true

  return {
    cookieName,
    ttlMs,

    /** @returns how many are open, by the token with which they end; null: of the data folder */
    countByToken (): Map<number | null, number> {
      // While the database is away, the list of tokens says of nobody that they are signed in.
      return attempt(() => store.countByToken(now()), new Map())
    },

    /** @throws {DeckError} bad-request, forbidden: of whom a proxy has signed in */
    authenticate (req: IncomingMessage): Auth | null {
      // A wrong token is refused even with a valid cookie.
      if (req.headers.authorization !== undefined) return byToken(req)
      // It counts more than a cookie, which may be that of an earlier user.
      const user = userByProxy(req)
      if (user !== undefined) return user
      const session = findSession(req)
      if (!session) return null
      const { name, role, token, expiresAt: until, apps = null } = identities.named(session)
      return { actor: actorOf(session), via: 'session', client: 'dashboard', name, role, token, until,
        ...(apps && { apps }) }
    },

    whoHolds,

    /** `req`: that is not signed in. Returns why not any more, as a sentence; null: it does not seem to have been. */
    whyEnded (req: IncomingMessage): string | null {
      const secrets = cookieValues(req.headers.cookie, cookieName)
      const known = secrets.map((secret) => ended.get(hashOf(secret))).find((end) =>
        end && isOpenTo(end.session.owner, ownerOf(req.socket))
      )
      return known?.why ?? (secrets.length > 0 ? 'Your session has ended.' : null)
    },

    /** Tells whether the person still has the rights that a link was made for */
    isStill: ({ token, until }: Person = ADMIN): boolean =>
      (until === null || until > now()) && (token === null || tokens.isValid(token)),

    open (req: IncomingMessage, { name, role, token, until, apps = null }: Person = ADMIN): string {
      const secret = randomBytes(SECRET_BYTES).toString('base64url')
      const createdAt = now()
      const expiresAt = Math.min(createdAt + ttlMs, until ?? Infinity)
      const session = identities.kept({ hash: hashOf(secret), createdAt, expiresAt, name, role, token,
        owner: ownerOf(req.socket), apps })
      tokens.noteUse({ token, name }, req.socket.remoteAddress ?? 'unknown')
      rememberSession(session)
      tryStore('keep a new session', () => store.create(session))
      return setCookie(req, secret, Math.max(0, Math.floor((expiresAt - createdAt) / 1000)))
    },

    /** @returns the Set-Cookie value that removes the cookie */
    close (req: IncomingMessage): string {
      const session = findSession(req)
      if (session) endSession(session, 'You have signed out in another tab or window.')
      return setCookie(req, '', 0)
    },

    /** Ends every session, here and on the disk. */
    revokeAll () {
      for (const session of remembered.values()) noteEnd(session, 'Everybody was signed out.')
      remembered.clear()
      isStoreTrusted = tryStore('end all sessions', () => store.revokeAll())
    }
  }

  function byToken (req: IncomingMessage): Auth | null {
    const given = /^Bearer +([^\s]+) *$/i.exec(String(req.headers.authorization))?.[1] ?? ''
    const person = whoHolds(given)
    if (!person) return null
    const client = req.headers['x-clusterdeck-client'] === 'cli' ? 'cli' : 'api'
    return { actor: actorOf(person), via: 'token', client, ...person }
  }

  /** @returns compares in constant time with the tokens of data folders */
  function whoHolds (candidate: string): Person | null {
    if (timingSafeEqual(sha256(candidate), tokenHash)) return ADMIN
    const known = tokens.find(candidate)
    if (known)
      return { name: known.name, role: known.role, token: known.id, until: known.expiresAt,
        ...(known.apps && { apps: known.apps }) }
    const [app] = tokensOfApps().find(([, one]) => timingSafeEqual(sha256(candidate), sha256(one))) ?? []
    return app === undefined ? null : { ...ADMIN, name: `the token of ${app}`, apps: [app] }
  }

  function findSession (req: IncomingMessage): Session | null {
    for (const secret of cookieValues(req.headers.cookie, cookieName)) {
      const session = lookUp(hashOf(secret))
      if (!session || !isOpenTo(session.owner, ownerOf(req.socket))) continue
      if (session.expiresAt > now() && (session.token === null || tokens.isValid(session.token))) return session
      endSession(session, reasonOf(session))
    }
    return null
  }

  function lookUp (hash: string): Session | null {
    if (ended.has(hash)) return null
    const known = remembered.get(hash)
    if (known || !isStoreTrusted) return known ?? null
    try {
      const stored = store.find(hash) ?? null
      if (stored) rememberSession(stored)
      return stored
    } catch (error) {
      // The session is not known until the database is back; signing in again works meanwhile.
      log.warn({ err: error }, 'could not look up a session in the database')
      return null
    }
  }

  function endSession (session: Session, why: string) {
    remembered.delete(session.hash)
    noteEnd(session, why)
    tryStore('end a session', () => store.revoke(session.hash))
  }

  function noteEnd (session: Session, why: string) {
    ended.set(session.hash, { session, why })
    // A session that could not be removed from the disk stays in here until it would have expired.
    if (ended.size > MAX_REMEMBERED) {
      for (const [hash, end] of ended) if (end.session.expiresAt <= now()) ended.delete(hash)
    }
  }

  /** `session`: that does not count any more */
  function reasonOf ({ token }: Session) {
    const end = token === null ? null : tokens.revokedBy(token)
    return end ? `${doerOf(end)} has revoked your access.` : 'Your session has expired.'
  }

  function rememberSession (session: Session) {
    remembered.set(session.hash, session)
    const [oldest] = remembered.keys()
    if (remembered.size > MAX_REMEMBERED) remembered.delete(oldest)
  }

  function tryStore (purpose: string, write: () => unknown) {
    try {
      write()
      return true
    } catch (error) {
      log.warn({ err: error }, `could not ${purpose} in the database`)
      return false
    }
  }

  function hashOf (secret: string) {
    return createHmac('sha256', tokenHash).update(secret).digest('base64url')
  }

  function setCookie (req: IncomingMessage, value: string, maxAge: number) {
    return `${cookieName}=${value}; Max-Age=${maxAge}; Path=${cookiePath}; HttpOnly${
      schemeOf(req) === 'https' ? '; Secure' : ''
    }; SameSite=Lax`
  }
}

function isOpenTo (owner: number | null, asker: number | null) {
  return asker === owner && asker !== NOBODY
}

export function sha256 (text: string) {
  return createHash('sha256').update(text).digest()
}

/** @returns values in the form of our secrets */
function cookieValues (header: string | undefined, name: string): string[] {
  return (header ?? '').split(';').map((pair) => pair.trim()).filter((pair) => pair.startsWith(`${name}=`)).map((
    pair
  ) => pair.slice(name.length + 1)).filter((value) => SECRET_SHAPE.test(value)).slice(0, MAX_CANDIDATES)
}
