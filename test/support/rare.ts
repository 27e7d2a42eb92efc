import { test, type TestContext, type TestFn } from 'node:test'

/**
 * Why `npm test` leaves a case out. `npm run test:all` has it, and so has its file if it is run without test/run.ts.
 */
export const rareOnly = process.env.TEST_WITHOUT_RARE !== undefined && 'rare: npm run test:all'

/** A test of a rare combination. */
export function rareTest (title: string, body: (t: TestContext) => unknown) {
  return test(title, { skip: rareOnly }, body as TestFn)
}
