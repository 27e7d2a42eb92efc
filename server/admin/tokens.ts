import { createHash, randomBytes as cryptoRandomBytes } from 'node:crypto'
import { madeWith, type Person } from '../api/roles.ts'
import { attempt, DeckError, orUnavailable } from '../errors.ts'
import { createAppIdentities, type AppIdentities } from './app-identities.ts'
import type { Token, Tokens } from '../../db/tokens.ts'
import type { TokenRegistry, WantedToken } from '../access/api-tokens.ts'

/**
 * Tokens with a name, a role and an end, beside the one of the data folder. A token ends with the one that made it, and
 * all end with that of the data folder.
 */

const PREFIX = 'cdk_'
const SHAPE = /^cdk_[\w-]{43}$/
const MAX_TOKENS = 200
/** A token that has expired is listed for that long, so that one sees why a script is refused. */
const LISTED_MS = 30 * 24 * 60 * 60_000
/** The last use of a token is stored at most so often. */
const SAVE_EVERY_MS = 60_000

export function createTokens (
  { store, owner, identities = createAppIdentities(null), now, randomBytes = cryptoRandomBytes }: {
    store: Tokens,
    /** the token of the data folder */
    owner: string,
    identities?: AppIdentities,
    now: () => number,
    randomBytes?: (size: number) => Buffer
  }
): TokenRegistry {
  // Known tokens work while the database fails, and a token that is revoked then stays revoked.
  /** by id */
  const remembered: Map<number, Token> = new Map()
  /** by hash */
  const ids: Map<string, number> = new Map()
  /** Whose tokens were revoked, and by whom. */
  const revoked: Map<number, { name: string, actor: string }> = new Map()
  const uses: Map<number | null, { at: number, from: string, savedAt: number }> = new Map()
  const listeners: Set<() => void> = new Set()
  const root = rootOf(owner)
  attempt(() => store.keepOf(root))

  return {
    find (secret: string): Token | null {
      if (!SHAPE.test(secret)) return null
      const hash = hashOf(secret)
      // While the database is away a token that is not remembered is unknown.
      const token = remembered.get(ids.get(hash) ?? NaN) ?? attempt(() => store.find(hash))
      if (!token || !isValid(token)) return null
      remembered.set(token.id, token)
      ids.set(hash, token.id)
      return identities.named(token)
    },

    /** Tells whether it may still be used */
    isValid: isKnown,

    /** @returns whose it was, and who has revoked it; null: nobody since this master started */
    revokedBy: (id: number): { name: string, actor: string } | null => revoked.get(id) ?? null,

    noteUse ({ token: id, name }: Pick<Person, 'token' | 'name'>, from: string) {
      // The token of an app is neither here nor the owner's.
      if (id === null && name !== null) return
      const [at, { savedAt = -Infinity } = {}] = [now(), uses.get(id)]
      const isDue = at - savedAt >= SAVE_EVERY_MS
      uses.set(id, { at, from, savedAt: isDue ? at : savedAt })
      if (isDue && id !== null) attempt(() => store.noteUse(id, { at, from }))
    },

    lastUseByOwner: () => uses.get(null) ?? null,

    /** @returns newest first, also those that have expired @throws {DeckError} history-unavailable */
    list (): Token[] {
      return useStore(() => store.list()).filter(({ id }) => !revoked.has(id)).map(withLastUse).map(identities.named)
    },

    /** Returns the secret is nowhere else @throws {DeckError} name-taken, not-possible, history-unavailable */
    create (
      { name, role, ttlMs, createdBy, createdWith, apps = null, kind = 'token' }: WantedToken
    ): { token: Token, secret: string } {
      return useStore(() => {
        store.removePast({ now: now(), longAgo: now() - LISTED_MS })
        const others = store.list().filter(({ id }) => !revoked.has(id))
        refuseTaken(name, kind, others)
        if (others.length >= MAX_TOKENS)
          throw new DeckError('not-possible', `There are already ${MAX_TOKENS} tokens: revoke some first`)
        const secret = PREFIX + randomBytes(32).toString('base64url')
        const token = { name, role, createdAt: now(), createdBy, createdWith, root, expiresAt: now() + ttlMs, apps,
          kind }
        const id = store.create({ ...identities.kept(token), hash: hashOf(secret) })
        return { token: { id, ...token, usedAt: null, usedFrom: null }, secret }
      })
    },

    /**
     * The token ends here even if the database fails, and so do all tokens, links and sessions that were made with it.
     * @throws {DeckError} not-found, history-unavailable
     */
    revoke (id: number, actor: string): { token: Token, made: Token[] } {
      const all = (attempt(() => store.list()) ?? [...remembered.values()]).filter((each) => !revoked.has(each.id))
      const token = all.find((each) => each.id === id)
      if (!token) throw new DeckError('not-found', noSuchToken(id))
      const made = madeWith(id, all)
      for (const { id: each, name } of [token, ...made]) revoked.set(each, { name, actor })
      for (const listener of listeners) listener()
      useStore(() => store.remove(id))
      return { token: identities.named(token), made: made.map(identities.named) }
    },

    /** `listener`: called when one was revoked; returns what ends that */
    onRevoked (listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  }

  /**
   * By its name the history says who did something, so no two that are valid have the same. One person may have several
   * links.
   * @throws {DeckError} name-taken
   */
  function refuseTaken (name: string, kind: Token['kind'], others: Token[]) {
    const same = others.find((each) =>
      each.name.toLowerCase() === name.toLowerCase() && isValid(each) && [kind, each.kind].includes('token')
    )
    if (same)
      throw new DeckError('name-taken',
        `name: ${
          JSON.stringify(same.name)
        } is taken by ${same.kind} ${same.id}: choose another name, or revoke that first`)
  }

  function noSuchToken (id: number) {
    const end = revoked.get(id)
    return end ? `Token ${id} of ${end.name} has already been revoked by ${end.actor}` : `Token ${id} does not exist`
  }

  function withLastUse (token: Token): Token {
    const use = uses.get(token.id)
    return use ? { ...token, usedAt: use.at, usedFrom: use.from } : token
  }

  function isValid ({ id, expiresAt, createdWith, root: itsRoot }: Token) {
    return !revoked.has(id) && expiresAt > now() && itsRoot === root && (createdWith === null || isKnown(createdWith))
  }

  function isKnown (id: number) {
    const token = remembered.get(id) ?? attempt(() => store.get(id))
    if (!token || !isValid(token)) return false
    remembered.set(id, token)
    return true
  }
}

/** @throws {DeckError} history-unavailable */
function useStore<T> (work: () => T): T {
  return orUnavailable(work, 'The database of the tokens cannot be used now')
}

/** Returns what marks the tokens that are valid below an admin token. `owner`: that token, which the mark does not tell */
export function rootOf (owner: string): string {
  return hashOf(`root of tokens ${owner}`)
}

function hashOf (secret: string) {
  return createHash('sha256').update(secret).digest('base64url')
}
