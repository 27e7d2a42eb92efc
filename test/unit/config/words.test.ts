import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDuration } from '../../../server/config/duration.ts'
import { RELEASE_ID, releaseNumber } from '../../../server/config/release-id.ts'

test('durations are read in the units of people', () => {
  assert.deepEqual(['0s', '250ms', '2.3s', '30s', '1.5m', '2h', '1d'].map(parseDuration), [0, 250, 2300, 30_000, 90_000,
    7_200_000, 86_400_000])
  for (const text of ['', '30', 's', '-1s', '1 s', '1e3s', '1.s', '1.2345s', `${'9'.repeat(10)}s`])
    assert.equal(parseDuration(text), null, text)
})

test('a release id is r and a number, and nothing else', () => {
  assert.deepEqual(['r1', 'r12', 'r999999999'].map(releaseNumber), [1, 12, 999_999_999])
  for (const text of ['', 'r', 'r0', 'r01', 'R1', 'r1 ', ' r1', 'r1\n', 'r1234567890', '../r1']) {
    assert.equal(RELEASE_ID.test(text), false, text)
    assert.equal(releaseNumber(text), 0, text)
  }
})
