import { createHash, randomBytes as cryptoRandomBytes } from 'node:crypto'
import { LINK_TTL_MS } from '../api/roles.js'

/**
 * One-time sign-in links. They live in memory alone: a restart of the master ends them.
 * @typedef {ReturnType<typeof createLinks>} Links
 */

const MAX_LINKS = 100

/**
 * @param {object} [parts]
 * @param {() => number} [parts.now]
 * @param {(size: number) => Buffer} [parts.randomBytes]
 */
export function createLinks ({ now = Date.now, randomBytes = cryptoRandomBytes } = {}) {
  // Keyed by hash, so that the time of a lookup reveals nothing about the codes.
  /** @type {Map<string, { expiresAt: number, isUsed: boolean, person: import('../api/roles.js').Person | undefined, from: string | null }>} */
  const links = new Map()

  return {
    /**
     * @param {import('../api/roles.js').Person} [person] whom it signs in; default: the holder of the admin token
     * @param {string | null} [from] the deck whose dashboard they come from
     * @returns {{ code: string, expiresAt: number }}
     */
    create (person, from = null) {
      const code = randomBytes(32).toString('base64url')
      const expiresAt = now() + LINK_TTL_MS
      links.set(hashOf(code), { expiresAt, isUsed: false, person, from })
      forgetSurplus()
      return { code, expiresAt }
    },

    /**
     * Uses the link, which works only once.
     * @param {string} code
     * @returns {{
     *   outcome: 'valid' | 'used' | 'unknown',
     *   person?: import('../api/roles.js').Person,
     *   from?: string | null
     * }} an expired link is `unknown`, too
     */
    redeem (code) {
      const link = links.get(hashOf(code))
      if (!link || link.expiresAt <= now()) return { outcome: 'unknown' }
      if (link.isUsed) return { outcome: 'used' }
      link.isUsed = true
      return { outcome: 'valid', person: link.person, from: link.from }
    }
  }

  // Expired links go first, then the oldest one.
  function forgetSurplus () {
    for (const [hash, link] of links) if (link.expiresAt <= now()) links.delete(hash)
    const [oldest] = links.keys()
    if (links.size > MAX_LINKS) links.delete(oldest)
  }
}

function hashOf (/** @type {string} */ code) {
  return createHash('sha256').update(code).digest('base64url')
}
