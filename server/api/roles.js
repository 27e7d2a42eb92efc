/** @typedef {'viewer' | 'operator' | 'admin'} Role */

/** Each role may also do what the roles before it may. @type {readonly Role[]} */
export const ROLES = Object.freeze(['viewer', 'operator', 'admin'])

/** @param {Role} role @param {Role} needed */
export function roleAllows (role, needed) {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/**
 * Identifies a token, or all browsers of one person, so that limits count per holder.
 * @param {Pick<import('../admin/guard.js').Auth, 'via' | 'token' | 'role' | 'actor'>} auth
 */
export function holderOf ({ via, token, role, actor }) {
  return `${via} ${token} ${role} ${actor}`
}
