import { createHash, randomBytes as cryptoRandomBytes } from 'node:crypto'
import { DeckError } from '../errors.js'

/**
 * Tokens with a name, a role and an end, beside the one of the data folder.
 * @typedef {import('../../db/tokens.js').Token} Token
 * @typedef {Token & { role: import('../api/roles.js').Role }} KnownToken
 * @typedef {ReturnType<typeof createTokens>} Tokens
 */

const PREFIX = 'cdk_'
const SHAPE = /^cdk_[\w-]{43}$/
const MAX_TOKENS = 200

/**
 * @param {object} parts
 * @param {import('../../db/tokens.js').Tokens} parts.store
 * @param {() => number} parts.now
 * @param {(size: number) => Buffer} [parts.randomBytes]
 */
export function createTokens ({ store, now, randomBytes = cryptoRandomBytes }) {
  // They keep working while the database fails, and what was revoked then stays revoked.
  /** @type {Map<string, Token>} by hash */
  const remembered = new Map()
  /** @type {Set<number>} */
  const revoked = new Set()
  /** @type {Set<() => void>} */
  const listeners = new Set()

  return {
    /** @param {string} secret @returns {KnownToken | null} */
    find (secret) {
      if (!SHAPE.test(secret)) return null
      const hash = hashOf(secret)
      const token = remembered.get(hash) ?? attempt(() => store.find(hash))
      if (!token || !isValid(token)) return null
      remembered.set(hash, token)
      return /** @type {KnownToken} */ (token)
    },

    /** @param {number} id @returns {boolean} whether it may still be used */
    isValid (id) {
      const token = [...remembered.values()].find((each) => each.id === id) ?? attempt(() => store.get(id))
      return token !== null && isValid(token)
    },

    /** @returns {KnownToken[]} newest first, also those that have expired @throws {DeckError} history-unavailable */
    list () {
      return /** @type {KnownToken[]} */ (written(() => store.list()).filter(({ id }) => !revoked.has(id)))
    },

    /**
     * @param {{ name: string, role: import('../api/roles.js').Role, ttlMs: number, createdBy: string }} wanted
     * @returns {{ token: KnownToken, secret: string }} the secret is nowhere else
     * @throws {DeckError} not-possible, history-unavailable
     */
    create ({ name, role, ttlMs, createdBy }) {
      return written(() => {
        if (store.list().length >= MAX_TOKENS) throw new DeckError('not-possible', `there are ${MAX_TOKENS} tokens already: revoke some first`)
        const secret = PREFIX + randomBytes(32).toString('base64url')
        const token = { name, role, createdAt: now(), createdBy, expiresAt: now() + ttlMs }
        const id = store.create({ ...token, hash: hashOf(secret) })
        return { token: { id, ...token }, secret }
      })
    },

    /**
     * It ends here in any case, and with it all that was opened by it.
     * @param {number} id @returns {KnownToken} @throws {DeckError} not-found, history-unavailable
     */
    revoke (id) {
      const token = revoked.has(id) ? null : attempt(() => store.get(id)) ?? [...remembered.values()].find((each) => each.id === id) ?? null
      if (!token) throw new DeckError('not-found', `Token ${id} does not exist`)
      revoked.add(id)
      for (const listener of listeners) listener()
      written(() => store.remove(id))
      return /** @type {KnownToken} */ (token)
    },

    /** @param {() => void} listener called when one was revoked */
    onRevoked (listener) { listeners.add(listener) }
  }

  /** @param {Token} token */
  function isValid ({ id, expiresAt }) {
    return !revoked.has(id) && expiresAt > now()
  }
}

/** @template T @param {() => T} read @returns {T | null} */
function attempt (read) {
  try {
    return read()
  } catch {
    // The database is away: whoever is not remembered is a stranger until it is back.
    return null
  }
}

/** @template T @param {() => T} work @returns {T} @throws {DeckError} history-unavailable */
function written (work) {
  try {
    return work()
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('history-unavailable', 'the database that keeps the tokens cannot be used at the moment', { cause: error })
  }
}

function hashOf (/** @type {string} */ secret) {
  return createHash('sha256').update(secret).digest('base64url')
}
