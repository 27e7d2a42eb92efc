import { roleAllows, type Auth, type Role } from '../api/roles.ts'

/**
 * What the viewer may do. A page shows controls only for that.
 * `switchDecks`: for sessions of the token
 * of the data folder alone, as only this user can read it, like the tokens of the other decks; `apps`: the only apps of
 * a host for which that holds; null: it holds for all
 */
export type Powers = { operate: boolean, administer: boolean, switchDecks: boolean, name: string | null,
  token: number | null, role: Role, apps?: readonly string[] | null }

export function powersOf (auth: Auth | null | undefined): Powers {
  const role = auth?.role ?? 'viewer'
  return { operate: roleAllows(role, 'operator'), administer: roleAllows(role, 'admin'),
    switchDecks: role === 'admin' && auth?.name === null && auth.token === null && !auth.apps, name: auth?.name ?? null,
    token: auth?.token ?? null, role, ...(auth?.apps && { apps: auth.apps }) }
}
