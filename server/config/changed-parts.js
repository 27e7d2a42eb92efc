/**
 * How a release differs from the one before.
 * @typedef {NonNullable<import('../lifecycle/state.js').Release['changed']>} Changed
 */

/** Parts that can differ between two releases, with their names for people. @type {readonly [Exclude<keyof Changed, 'from' | 'environment'>, string][]} */
const PARTS = Object.freeze([
  ['commit', 'commit'],
  ['package', 'package.json'],
  ['lockFile', 'lock file'],
  ['arguments', 'arguments'],
  ['mode', 'mode'],
  ['folder', 'folder'],
  ['entry', 'entry']
])

/** Names the parts that differ, for people; the variables are not among them. @param {Changed} changed @returns {string[]} */
export function changedParts (changed) {
  return PARTS.filter(([part]) => changed[part]).map(([, name]) => name)
}
