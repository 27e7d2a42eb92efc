import { randomBytes } from 'node:crypto'

/**
 * Changes that were previewed and may be confirmed: each once, by who has previewed it, for some minutes. They are gone
 * with the master, whose successor asks for a new preview.
 */
export type Confirmations = ReturnType<typeof createConfirmations>
/** `fixed`: what of the preview of a deploy or a rollback has to be the same still */
export type Order = { what: string, method: string, path: string, body?: object, headers: Record<string, string>,
  fixed?: string }
type Kept = { order: Order, holder: string, base: string, until: number, done: Promise<unknown> | null }

const VALID_MS = 15 * 60_000
/** For each holder and app, so that nobody's previews take the place of somebody else's. */
const MAX_KEPT = 50

export function createConfirmations ({ now }: { now: () => number }) {
  /** by token, oldest first */
  const kept: Map<string, Kept> = new Map()

  return {
    validMs: VALID_MS,

    /** @returns the token */
    keep (change: Omit<Kept, 'until' | 'done'>): string {
      for (const [token, { until }] of kept) if (until <= now()) kept.delete(token)
      const own = [...kept].filter(([, { holder, base }]) => holder === change.holder && base === change.base)
      if (own.length >= MAX_KEPT) kept.delete(own[0][0])
      const token = randomBytes(12).toString('base64url')
      kept.set(token, { ...change, until: now() + VALID_MS, done: null })
      return token
    },

    /** Null: unknown, too old, or somebody else's */
    find (token: string, holder: string): Kept | null {
      const found = kept.get(token)
      return found && found.holder === holder && found.until > now() ? found : null
    }
  }
}
