import assert from 'node:assert/strict'
import { test } from 'node:test'
import { satisfies } from '../../../server/doctor/node-version.ts'

for (const [range, version, expected] of [['>=18', [20, 1, 0], true], ['>= 18.17 < 21', [20, 1, 0], true], [
  '>=18.17 <20',
  [20, 1, 0],
  false
], ['^20.9.0', [20, 8, 9], false], ['^18 || ^20', [20, 1, 0], true], ['20.x', [20, 1, 0], true], ['~20.1', [20, 2, 0],
  false], ['20', [22, 0, 0], false], ['<20', [20, 0, 0], false], ['<=20', [20, 5, 0], true], ['>20', [20, 5, 0], false],
  ['*', [20, 5, 0], true], ['18 - 20', [20, 5, 0], null], ['lts/*', [20, 5, 0], null]] as [string, number[],
    boolean | null][])
{
  test(`Node ${version.join('.')} ${expected === null ? 'is not held against' : expected ? 'is' : 'is not'} ${range}`, () => {
    assert.equal(satisfies(version, range), expected)
  })
}
