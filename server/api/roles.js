import { OWNER } from '../config/actor-names.js'

/**
 * Who sends a request, as far as the guard knows them.
 * @typedef {'viewer' | 'operator' | 'admin'} Role
 * @typedef {{
 *   name: string | null,
 *   role: Role,
 *   token: number | null,
 *   until: number | null,
 *   apps?: readonly string[] | null
 * }} Person `name`: null for the holder of the admin token; `token`: the id of their token; `until`: when their sign-in ends, ms since the epoch;
 *   `apps`: the only apps of a host for which the role counts; null: it counts for all
 * @typedef {Person & {
 *   actor: string,
 *   via: 'session' | 'token' | 'fleet' | 'agent',
 *   client: 'dashboard' | 'cli' | 'api' | 'agent',
 *   from?: string,
 *   bound?: string
 * }} Auth `actor`: their name in the history; `client`: their program; `from`: the member of the fleet that asks for them, or the address of their agent; `bound`: what limits their role
 */

/** Each role may also do what the roles before it may. @type {readonly Role[]} */
export const ROLES = Object.freeze(['viewer', 'operator', 'admin'])
/** How long a sign-in link can be opened. */
export const LINK_TTL_MS = 15 * 60_000

/** @param {Role} role @param {Role} needed */
export function roleAllows (role, needed) {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** @param {Pick<Person, 'apps'>} person @param {string} app @returns {boolean} whether the role of this person is for that app */
export function mayUse ({ apps }, app) {
  return !apps || apps.includes(app)
}

/** @param {Pick<Person, 'name'>} [person] @returns {string} what the history calls them; default: the holder of the token of the data folder */
export function actorOf ({ name } = { name: null }) {
  return name ?? OWNER
}

/** @param {Pick<Person, 'role' | 'apps'>} person @returns {string} `operator`, or `operator of shop` */
export function roleText ({ role, apps }) {
  return apps ? `${role} of ${apps.join(', ')}` : role
}

/**
 * Identifies a token, or all browsers of one person, so that limits count per holder.
 * @param {Pick<Auth, 'via' | 'token' | 'role' | 'actor'>} auth
 */
export function holderOf ({ via, token, role, actor }) {
  return `${via} ${token} ${role} ${actor}`
}
