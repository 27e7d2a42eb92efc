import { allows } from '../api/roles.js'

/**
 * What somebody may do beside looking: a page has no controls for anything else.
 * @typedef {{ operate: boolean, administer: boolean, name: string | null, role: import('../api/roles.js').Role }} Powers
 */

/** @param {import('../admin/guard.js').Auth | null | undefined} auth @returns {Powers} */
export function powersOf (auth) {
  const role = auth?.role ?? 'viewer'
  return { operate: allows(role, 'operator'), administer: allows(role, 'admin'), name: auth?.name ?? null, role }
}
