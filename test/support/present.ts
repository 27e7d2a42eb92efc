import assert from 'node:assert/strict'

/** What the test knows to be there. */
export function present<T> (value: T): NonNullable<T> {
  assert.ok(value !== null && value !== undefined)
  return value
}
