import assert from 'node:assert/strict'
import { test } from 'node:test'
import { satisfies } from '../../../server/doctor/node-version.ts'
import { rows } from '../../support/rows.ts'

test('a version is held against the ranges that packages name, and against no other', () => {
  for (const [range, version, expected] of rows(`
    >=18           → 20.1.0 → true
    >= 18.17 < 21  → 20.1.0 → true
    >=18.17 <20    → 20.1.0 → false
    ^20.9.0        → 20.8.9 → false
    ^18 || ^20     → 20.1.0 → true
    20.x           → 20.1.0 → true
    ~20.1          → 20.2.0 → false
    20             → 22.0.0 → false
    <20            → 20.0.0 → false
    <=20           → 20.5.0 → true
    >20            → 20.5.0 → false
    *              → 20.5.0 → true
    18 - 20        → 20.5.0 → null
    lts/*          → 20.5.0 → null
  `, '→')) assert.equal(String(satisfies(version.split('.').map(Number), range)), expected, range)
})
