import { roleAllows, type Auth, type Role } from '../api/roles.ts'

/**
 * What the viewer may do. A page shows controls only for that.
 * `switchDecks`: for sessions of the token
 * of the data folder alone, as only this user can read it, like the tokens of the other decks; `apps`: the only apps of
 * a host for which that holds; null: it holds for all; `byProxy`: a proxy has signed the viewer in, and out, if it can
 */
export type Powers = { operate: boolean, administer: boolean, switchDecks: boolean, name: string | null,
  token: number | null, role: Role, apps?: readonly string[] | null, byProxy?: { signOutUrl?: string } }

export function powersOf (auth: Auth | null | undefined): Powers {
  const role = auth?.role ?? 'viewer'
  return { operate: roleAllows(role, 'operator'), administer: roleAllows(role, 'admin'),
    switchDecks: role === 'admin' && auth?.name === null && auth.token === null && !auth.apps, name: auth?.name ?? null,
    token: auth?.token ?? null, role, ...(auth?.apps && { apps: auth.apps }),
    ...(auth?.via === 'proxy' && { byProxy: { signOutUrl: auth.signOutUrl } }) }
}
