import { allows } from '../api/roles.js'

/**
 * What somebody may do beside looking: a page has no controls for anything else.
 * @typedef {{ operate: boolean, administer: boolean, switchDecks: boolean, name: string | null, role: import('../api/roles.js').Role }} Powers `switchDecks`: whoever holds the token of
 *   the data folder, which this user alone can read, as those of the other decks
 */

/** @param {import('../admin/guard.js').Auth | null | undefined} auth @returns {Powers} */
export function powersOf (auth) {
  const role = auth?.role ?? 'viewer'
  return { operate: allows(role, 'operator'), administer: allows(role, 'admin'), switchDecks: role === 'admin' && auth?.name === null && auth.token === null, name: auth?.name ?? null, role }
}
