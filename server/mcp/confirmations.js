import { randomBytes } from 'node:crypto'

/**
 * Changes that were previewed and may be confirmed: each once, by who has previewed it, for some minutes. They are gone with the master, whose
 * successor asks for a new preview.
 * @typedef {ReturnType<typeof createConfirmations>} Confirmations
 * @typedef {{ what: string, method: string, path: string, body?: unknown, headers: Record<string, string> }} Order
 * @typedef {{ order: Order, holder: string, base: string, until: number, done: Promise<unknown> | null }} Kept
 */

const VALID_MS = 15 * 60_000
const MAX_KEPT = 200

/** @param {{ now: () => number }} parts */
export function createConfirmations ({ now }) {
  /** @type {Map<string, Kept>} by token, oldest first */
  const kept = new Map()

  return {
    validMs: VALID_MS,

    /** @param {Omit<Kept, 'until' | 'done'>} change @returns {string} the token */
    keep (change) {
      for (const [token, { until }] of kept) if (until <= now() || kept.size >= MAX_KEPT) kept.delete(token)
      const token = randomBytes(12).toString('base64url')
      kept.set(token, { ...change, until: now() + VALID_MS, done: null })
      return token
    },

    /** @param {string} token @param {string} holder @returns {Kept | null} null: unknown, too old, or somebody else's */
    find (token, holder) {
      const found = kept.get(token)
      return found && found.holder === holder && found.until > now() ? found : null
    }
  }
}
