import { test } from 'node:test'

/** Why `npm test` leaves a case out. `npm run test:all` has it, and so has its file if it is run without test/run.js. */
export const rareOnly = process.env.TEST_WITHOUT_RARE !== undefined && 'rare: npm run test:all'

/**
 * A test of a rare combination.
 * @param {string} title @param {(t: import('node:test').TestContext) => unknown} body
 */
export function rareTest (title, body) {
  return test(title, { skip: rareOnly }, /** @type {import('node:test').TestFn} */ (body))
}
