import { OWNER } from '../config/actor-names.ts'

/** Who sends a request, as far as the guard knows them. */
export type Role = 'viewer' | 'operator' | 'admin'
/**
 * `name`: null for the holder of the admin token; `token`: the id of their token; `until`: when their sign-in ends, ms
 * since the epoch;
 * `apps`: the only apps of a host for which the role counts; null: it counts for all
 */
export type Person = { name: string | null, role: Role, token: number | null, until: number | null,
  apps?: readonly string[] | null }
/**
 * `actor`: their name in the history; `client`: their program; `from`: the member of the fleet that asks for them, or
 * the address of their agent; `bound`: what limits their role; `signOutUrl`: of the proxy that has signed them in
 */
export type Auth =
  & Person
  & { actor: string, via: 'session' | 'proxy' | 'token' | 'fleet' | 'agent', from?: string,
    client: 'dashboard' | 'cli' | 'api' | 'agent', bound?: string, signOutUrl?: string }

/** Each role may also do what the roles before it may. */
export const ROLES: readonly Role[] = Object.freeze(['viewer', 'operator', 'admin'])
/** How long a sign-in link can be opened. */
export const LINK_TTL_MS = 15 * 60_000

export function roleAllows (role: Role, needed: Role) {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Whether a browser is signed in by what it sends along with every request, also with one that a foreign page makes. */
export function isByBrowser ({ via }: Pick<Auth, 'via'>) {
  return via === 'session' || via === 'proxy'
}

/** Tells whether the role of this person is for that app */
export function mayUse ({ apps }: Pick<Person, 'apps'>, app: string): boolean {
  return !apps || apps.includes(app)
}

/** @returns the names of the apps that this person may see */
export function visibleNames (apps: { states: () => readonly { name: string }[] },
  person: Pick<Person, 'apps'>): string[]
{
  return apps.states().map(({ name }) => name).filter((name) => mayUse(person, name))
}

/** @returns what the history calls them; default: the holder of the token of the data folder */
export function actorOf ({ name }: Pick<Person, 'name'> = { name: null }): string {
  return name ?? OWNER
}

/** @returns `operator`, or `operator of shop` */
export function roleText ({ role, apps }: Pick<Person, 'role' | 'apps'>): string {
  return apps ? `${role} of ${apps.join(', ')}` : role
}

/** Identifies a token, or all browsers of one person, so that limits count per holder. */
export function holderOf ({ via, token, role, actor }: Pick<Auth, 'via' | 'token' | 'role' | 'actor'>) {
  return `${via} ${token} ${role} ${actor}`
}

/** @returns who did it, to begin a sentence */
export function doerOf (event?: { actor: string | null } | null): string {
  if (!event?.actor) return 'Somebody'
  return event.actor === OWNER ? 'The owner\'s token' : event.actor
}

/** @returns which tokens one has made, what these have made, and so on */
export function madeWith<T extends { id: number, createdWith: number | null }> (id: number, all: T[]): T[] {
  const made = all.filter(({ createdWith }) => createdWith === id)
  return made.flatMap((each) => [each, ...madeWith(each.id, all)])
}
