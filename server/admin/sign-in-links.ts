import { createHash, randomBytes as cryptoRandomBytes } from 'node:crypto'
import { LINK_TTL_MS, type Person } from '../api/roles.ts'

/** One-time sign-in links. They live in memory alone: a restart of the master ends them. */
export type Links = ReturnType<typeof createLinks>

const MAX_LINKS = 100

export function createLinks (
  { now = Date.now, randomBytes = cryptoRandomBytes }: { now?: () => number, randomBytes?: (size: number) => Buffer } =
    {}
) {
  // Keyed by hash, so that the time of a lookup reveals nothing about the codes.
  const links: Map<string, { expiresAt: number, isUsed: boolean, person: Person | undefined, from: string | null }> =
    new Map()

  return {
    /**
     * @param person whom it signs in; default: the holder of the admin token
     * @param from the deck whose dashboard they come from
     */
    create (person?: Person, from: string | null = null): { code: string, expiresAt: number } {
      const code = randomBytes(32).toString('base64url')
      const expiresAt = now() + LINK_TTL_MS
      links.set(hashOf(code), { expiresAt, isUsed: false, person, from })
      forgetSurplus()
      return { code, expiresAt }
    },

    /** Uses the link, which works only once. Returns an expired link is `unknown`, too. */
    redeem (code: string): { outcome: 'valid' | 'used' | 'unknown', person?: Person, from?: string | null } {
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

function hashOf (code: string) {
  return createHash('sha256').update(code).digest('base64url')
}
