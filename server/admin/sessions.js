import { createHash, createHmac, randomBytes as cryptoRandomBytes, timingSafeEqual } from 'node:crypto'
import { doerOf } from '../api/preconditions.js'
import { actorOf } from '../api/roles.js'
import { NOBODY, ownerOf as ownerOfConnection } from '../system/connection-owner.js'
import { createAppIdentities } from './app-identities.js'

/**
 * Identifies the sender of a request by a token or by a session. The secret of a session is in its cookie alone. Its hash
 * is stored, keyed by the token, so that a new token ends every session of the old one.
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('../api/roles.js').Auth} Auth
 * @typedef {import('../api/roles.js').Person} Person
 * @typedef {import('../../db/sessions.js').Session} Session
 * @typedef {object} SessionStore  see db/sessions.js
 * @property {(session: Session) => unknown} create
 * @property {(hash: string) => Session | null | undefined} find
 * @property {(hash: string) => unknown} revoke
 * @property {(now: number) => Map<number, number>} countByToken
 * @property {() => unknown} revokeAll
 * @typedef {ReturnType<typeof createSessions>} Sessions
 */

const SECRET_BYTES = 32
const SECRET_SHAPE = /^[\w-]{43}$/
// Pages of other ports can set cookies of our name for a longer path; those come first in the header.
const MAX_CANDIDATES = 4
const MAX_REMEMBERED = 1000
/** The holder of the token of the data folder. @type {Readonly<Person>} */
const ADMIN = Object.freeze({ name: null, role: 'admin', token: null, until: null })
const NO_TOKENS = Object.freeze({ find: () => null, isValid: () => false, noteUse () {}, revokedBy: () => null })

/**
 * @param {object} parts
 * @param {SessionStore} parts.store
 * @param {string} parts.token
 * @param {Pick<import('../api/tokens.js').TokenRegistry, 'find' | 'isValid' | 'noteUse' | 'revokedBy'>} [parts.tokens]  with a name
 * @param {import('./app-identities.js').AppIdentities} [parts.identities]
 * @param {number} parts.ttlMs  fixed: use does not extend a session
 * @param {string} parts.cookieName
 * @param {string} [parts.cookiePath]
 * @param {(req: IncomingMessage) => 'http' | 'https'} [parts.schemeOf]
 * @param {typeof ownerOfConnection} [parts.ownerOf]  a browser sends a cookie to every port of a host, also to a server of another
 *   user; the check of the owner keeps that user from using it on this machine
 * @param {() => number} [parts.now]
 * @param {(size: number) => Buffer} [parts.randomBytes]
 * @param {Pick<import('../system/log.js').Log, 'warn'>} [parts.log]
 */
export function createSessions ({
  store,
  token,
  tokens = NO_TOKENS,
  identities = createAppIdentities(null),
  ttlMs,
  cookieName,
  cookiePath = '/',
  schemeOf = () => 'http',
  ownerOf = ownerOfConnection,
  now = Date.now,
  randomBytes = cryptoRandomBytes,
  log = { warn () {} }
}) {
  const tokenHash = sha256(token)
  // The dashboard must stay usable while the database fails, and a session that was ended then must stay ended.
  /** @type {Map<string, Session>} */
  const remembered = new Map()
  /** Why sessions have ended, to tell whoever still has their cookie. @type {Map<string, { session: Session, why: string }>} */
  const ended = new Map()
  let isStoreTrusted = true

  return {
    cookieName,
    ttlMs,

    /** @returns {Map<number, number>} how many are open, by the token with which they end */
    countByToken () {
      try {
        return store.countByToken(now())
      } catch {
        // While the database is away, the list of tokens says of nobody that they are signed in.
        return new Map()
      }
    },

    /**
     * @param {IncomingMessage} req
     * @returns {Auth | null}
     */
    authenticate (req) {
      // A wrong token is refused even with a valid cookie.
      if (req.headers.authorization !== undefined) return byToken(req)
      const session = findSession(req)
      if (!session) return null
      const { name, role, token, expiresAt: until, apps = null } = identities.named(session)
      return { actor: actorOf(session), via: 'session', client: 'dashboard', name, role, token, until, ...(apps && { apps }) }
    },

    whoHolds,

    /**
     * @param {IncomingMessage} req  that is not signed in
     * @returns {string | null} why not any more, as a sentence; null: it does not seem to have been
     */
    whyEnded (req) {
      const secrets = cookieValues(req.headers.cookie, cookieName)
      const known = secrets.map((secret) => ended.get(hashOf(secret))).find((end) => end && isOpenTo(end.session.owner, ownerOf(req.socket)))
      return known?.why ?? (secrets.length > 0 ? 'Your session has ended.' : null)
    },

    /** @param {Person} [person] @returns {boolean} whether the person still has the rights that a link was made for */
    isStill: ({ token, until } = ADMIN) => (until === null || until > now()) && (token === null || tokens.isValid(token)),

    /** @param {IncomingMessage} req @param {Person} [person] @returns {string} the Set-Cookie value of a new session */
    open (req, { name, role, token, until, apps = null } = ADMIN) {
      const secret = randomBytes(SECRET_BYTES).toString('base64url')
      const createdAt = now()
      const expiresAt = Math.min(createdAt + ttlMs, until ?? Infinity)
      const session = identities.kept({ hash: hashOf(secret), createdAt, expiresAt, name, role, token, owner: ownerOf(req.socket), apps })
      if (token !== null) tokens.noteUse(token, req.socket.remoteAddress ?? 'unknown')
      rememberSession(session)
      tryStore('keep a new session', () => store.create(session))
      return setCookie(req, secret, Math.max(0, Math.floor((expiresAt - createdAt) / 1000)))
    },

    /**
     * @param {IncomingMessage} req
     * @returns {string} the Set-Cookie value that removes the cookie
     */
    close (req) {
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

  /** @param {IncomingMessage} req @returns {Auth | null} */
  function byToken (req) {
    const given = /^Bearer +([^\s]+) *$/i.exec(String(req.headers.authorization))?.[1] ?? ''
    const person = whoHolds(given)
    if (!person) return null
    const client = req.headers['x-clusterdeck-client'] === 'cli' ? 'cli' : 'api'
    return { actor: actorOf(person), via: 'token', client, ...person }
  }

  /** @param {string} candidate @returns {Person | null} compares in constant time with the admin token */
  function whoHolds (candidate) {
    if (timingSafeEqual(sha256(candidate), tokenHash)) return ADMIN
    const known = tokens.find(candidate)
    return known && { name: known.name, role: known.role, token: known.id, until: known.expiresAt, ...(known.apps && { apps: known.apps }) }
  }

  /** @param {IncomingMessage} req @returns {Session | null} */
  function findSession (req) {
    for (const secret of cookieValues(req.headers.cookie, cookieName)) {
      const session = lookUp(hashOf(secret))
      if (!session || !isOpenTo(session.owner, ownerOf(req.socket))) continue
      if (session.expiresAt > now() && (session.token === null || tokens.isValid(session.token))) return session
      endSession(session, reasonOf(session))
    }
    return null
  }

  /** @param {string} hash @returns {Session | null} */
  function lookUp (hash) {
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

  /** @param {Session} session @param {string} why */
  function endSession (session, why) {
    remembered.delete(session.hash)
    noteEnd(session, why)
    tryStore('end a session', () => store.revoke(session.hash))
  }

  /** @param {Session} session @param {string} why */
  function noteEnd (session, why) {
    ended.set(session.hash, { session, why })
    // A session that could not be removed from the disk stays in here until it would have expired.
    if (ended.size > MAX_REMEMBERED) for (const [hash, end] of ended) if (end.session.expiresAt <= now()) ended.delete(hash)
  }

  /** @param {Session} session  that does not count any more */
  function reasonOf ({ token }) {
    const end = token === null ? null : tokens.revokedBy(token)
    return end ? `${doerOf(end)} has revoked your access.` : 'Your session has expired.'
  }

  function rememberSession (/** @type {Session} */ session) {
    remembered.set(session.hash, session)
    const [oldest] = remembered.keys()
    if (remembered.size > MAX_REMEMBERED) remembered.delete(oldest)
  }

  function tryStore (/** @type {string} */ purpose, /** @type {() => unknown} */ write) {
    try {
      write()
      return true
    } catch (error) {
      log.warn({ err: error }, `could not ${purpose} in the database`)
      return false
    }
  }

  function hashOf (/** @type {string} */ secret) {
    return createHmac('sha256', tokenHash).update(secret).digest('base64url')
  }

  function setCookie (/** @type {IncomingMessage} */ req, /** @type {string} */ value, /** @type {number} */ maxAge) {
    return `${cookieName}=${value}; Max-Age=${maxAge}; Path=${cookiePath}; HttpOnly${schemeOf(req) === 'https' ? '; Secure' : ''}; SameSite=Lax`
  }
}

/** @param {number | null} owner @param {number | null} asker */
function isOpenTo (owner, asker) {
  return asker === owner && asker !== NOBODY
}

function sha256 (/** @type {string} */ text) {
  return createHash('sha256').update(text).digest()
}

/** @returns {string[]} values in the form of our secrets */
function cookieValues (/** @type {string | undefined} */ header, /** @type {string} */ name) {
  return (header ?? '').split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
    .filter((value) => SECRET_SHAPE.test(value))
    .slice(0, MAX_CANDIDATES)
}
