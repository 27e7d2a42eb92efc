/** @typedef {typeof ROLES[number]} Role */

/** Who may do what: each may do what those before it may. */
export const ROLES = Object.freeze(/** @type {const} */ (['viewer', 'operator', 'admin']))

/** @param {Role} role @param {Role} needed */
export function allows (role, needed) {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}
