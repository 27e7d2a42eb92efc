import { createHash, randomBytes as cryptoRandomBytes } from 'node:crypto'
import { DeckError } from '../errors.js'

/**
 * Tokens with a name, a role and an end, beside the one of the data folder. A token ends with the one that made it, and all
 * end with that of the data folder.
 * @typedef {import('../../db/tokens.js').Token} Token
 */

const PREFIX = 'cdk_'
const SHAPE = /^cdk_[\w-]{43}$/
const MAX_TOKENS = 200

/**
 * @param {object} parts
 * @param {import('../../db/tokens.js').Tokens} parts.store
 * @param {string} parts.owner  the token of the data folder
 * @param {() => number} parts.now
 * @param {(size: number) => Buffer} [parts.randomBytes]
 * @returns {import('../api/tokens.js').TokenRegistry}
 */
export function createTokens ({ store, owner, now, randomBytes = cryptoRandomBytes }) {
  // Known tokens work while the database fails, and a token that is revoked then stays revoked.
  /** @type {Map<number, Token>} by id */
  const remembered = new Map()
  /** @type {Map<string, number>} by hash */
  const ids = new Map()
  /** @type {Set<number>} */
  const revoked = new Set()
  /** @type {Set<() => void>} */
  const listeners = new Set()
  const root = hashOf(`root of tokens ${owner}`)
  readOrNull(() => store.keepOf(root))

  return {
    /** @param {string} secret @returns {Token | null} */
    find (secret) {
      if (!SHAPE.test(secret)) return null
      const hash = hashOf(secret)
      const token = remembered.get(ids.get(hash) ?? NaN) ?? readOrNull(() => store.find(hash))
      if (!token || !isValid(token)) return null
      remembered.set(token.id, token)
      ids.set(hash, token.id)
      return token
    },

    /** @param {number} id @returns {boolean} whether it may still be used */
    isValid: isKnown,

    /** @returns {Token[]} newest first, also those that have expired @throws {DeckError} history-unavailable */
    list () {
      return useStore(() => store.list()).filter(({ id }) => !revoked.has(id))
    },

    /**
     * @param {{ name: string, role: import('../api/roles.js').Role, ttlMs: number, createdBy: string, createdWith: number | null, apps?: readonly string[] | null }} wanted
     * @returns {{ token: Token, secret: string }} the secret is nowhere else
     * @throws {DeckError} not-possible, history-unavailable
     */
    create ({ name, role, ttlMs, createdBy, createdWith, apps = null }) {
      return useStore(() => {
        if (store.list().length >= MAX_TOKENS) throw new DeckError('not-possible', `There are already ${MAX_TOKENS} tokens: revoke some first`)
        const secret = PREFIX + randomBytes(32).toString('base64url')
        const token = { name, role, createdAt: now(), createdBy, createdWith, root, expiresAt: now() + ttlMs, apps }
        const id = store.create({ ...token, hash: hashOf(secret) })
        return { token: { id, ...token }, secret }
      })
    },

    /**
     * It ends here in any case, and with it all that was made and opened by it.
     * @param {number} id @returns {{ token: Token, made: Token[] }} @throws {DeckError} not-found, history-unavailable
     */
    revoke (id) {
      const all = (readOrNull(() => store.list()) ?? [...remembered.values()]).filter((each) => !revoked.has(each.id))
      const token = all.find((each) => each.id === id)
      if (!token) throw new DeckError('not-found', `Token ${id} does not exist`)
      const made = madeWith(id, all)
      for (const each of [token, ...made]) revoked.add(each.id)
      for (const listener of listeners) listener()
      useStore(() => store.remove(id))
      return { token, made }
    },

    /** @param {() => void} listener called when one was revoked */
    onRevoked (listener) { listeners.add(listener) }
  }

  /** @param {Token} token */
  function isValid ({ id, expiresAt, createdWith, root: itsRoot }) {
    return !revoked.has(id) && expiresAt > now() && itsRoot === root && (createdWith === null || isKnown(createdWith))
  }

  /** @param {number} id */
  function isKnown (id) {
    const token = remembered.get(id) ?? readOrNull(() => store.get(id))
    if (!token || !isValid(token)) return false
    remembered.set(id, token)
    return true
  }
}

/** @param {number} id @param {Token[]} all @returns {Token[]} what it has made, what these have, and so on */
function madeWith (id, all) {
  const made = all.filter(({ createdWith }) => createdWith === id)
  return made.flatMap((each) => [each, ...madeWith(each.id, all)])
}

/** @template T @param {() => T} read @returns {T | null} */
function readOrNull (read) {
  try {
    return read()
  } catch {
    // The database is away: a token that is not remembered is unknown until it is back.
    return null
  }
}

/** @template T @param {() => T} work @returns {T} @throws {DeckError} history-unavailable */
function useStore (work) {
  try {
    return work()
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('history-unavailable', 'The database of the tokens cannot be used now', { cause: error })
  }
}

function hashOf (/** @type {string} */ secret) {
  return createHash('sha256').update(secret).digest('base64url')
}
