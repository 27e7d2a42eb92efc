import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createFleet } from '../../support/fleet-simulation.js'

const MEMBERS = ['a', 'b', 'c', 'd']
const RUNS = Number(process.env.FLEET_RUNS ?? 500)

const member = fc.constantFrom(...MEMBERS)
const step = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(fc.constant('deliver'), member) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('deliverLate'), member, fc.integer({ min: 1, max: 4 })) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('look'), member) },
  { weight: 6, arbitrary: fc.tuple(fc.constant('endOwn'), member, fc.boolean()) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('endOwn'), member, fc.constant(true)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('crash'), member) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('stop', 'goOn'), member) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('cut'), member, fc.boolean()) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('engine'), fc.boolean()) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('pass'), fc.constantFrom(10, 1000, 60_000, 600_000)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('operate'), fc.constantFrom('begin', 'begin', 'pause', 'resume', 'abort'), fc.record({ batch: fc.integer({ min: 1, max: 3 }), onFailure: fc.constantFrom('halt', 'roll-back') })) }
)

test('whatever happens in whatever order: nobody deploys twice, and nobody is in a turn beside another one that the batch forbids', () => {
  fc.assert(fc.property(fc.array(step, { minLength: 20, maxLength: 200 }), fc.infiniteStream(fc.integer({ min: 0, max: 9 })), (steps, chance) => {
    const fleet = createFleet({ members: MEMBERS, loses: () => chance.next().value === 0 })
    fleet.operate('begin')
    for (const [name, ...args] of steps) /** @type {any} */ (fleet)[name](...args)
    assert.deepEqual(fleet.broken, [])
  }), { numRuns: RUNS })
})
