/** @typedef {typeof ROLES[number]} Role */

/** Who may do what: each may do what those before it may. */
export const ROLES = Object.freeze(/** @type {const} */ (['viewer', 'operator', 'admin']))

/** @param {Role} role @param {Role} needed */
export function allows (role, needed) {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/**
 * One token, or the browsers of one person: what each may use up is counted by it.
 * @param {Pick<import('../admin/guard.js').Auth, 'via' | 'token' | 'role' | 'actor'>} auth
 */
export function holderOf ({ via, token, role, actor }) {
  return `${via} ${token} ${role} ${actor}`
}
