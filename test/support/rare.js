import { test } from 'node:test'
import { isLane } from './no-hang.js'

/** Why a case is not in `npm test`: it costs much, and one of its kind is there. `npm run test:all` has it, as has its file alone. */
export const rareOnly = isLane && process.env.TEST_ALL === undefined ? 'rare: npm run test:all' : false

/**
 * A test of a rare combination.
 * @param {string} title @param {(t: import('node:test').TestContext) => unknown} body
 */
export function rareTest (title, body) {
  return test(title, { skip: rareOnly }, /** @type {import('node:test').TestFn} */ (body))
}
