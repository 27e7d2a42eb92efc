import { roleAllows } from '../api/roles.js'

/**
 * What the viewer may do. A page shows controls only for that.
 * @typedef {{
 *   operate: boolean,
 *   administer: boolean,
 *   switchDecks: boolean,
 *   name: string | null,
 *   token: number | null,
 *   role: import('../api/roles.js').Role,
 *   apps?: readonly string[] | null
 * }} Powers `switchDecks`: for sessions of the token
 *   of the data folder alone, as only this user can read it, like the tokens of the other decks; `apps`: the only apps of a host for which that holds; null: it holds for all
 */

/** @param {import('../api/roles.js').Auth | null | undefined} auth @returns {Powers} */
export function powersOf (auth) {
  const role = auth?.role ?? 'viewer'
  return {
    operate: roleAllows(role, 'operator'),
    administer: roleAllows(role, 'admin'),
    switchDecks: role === 'admin' && auth?.name === null && auth.token === null && !auth.apps,
    name: auth?.name ?? null,
    token: auth?.token ?? null,
    role,
    ...(auth?.apps && { apps: auth.apps })
  }
}
