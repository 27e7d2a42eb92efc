import assert from 'node:assert/strict'
import test from 'node:test'
import { didYouMean, nearestName } from '../../../server/config/nearest.ts'

const NAMES = ['workers', 'dispatch', 'admin.port', 'admin.host', 'ready.timeoutMs']

test('a typing error, or another way of writing, finds the name that was meant; what is far from all finds none', () => {
  const meant = { wrokers: 'workers', worker: 'workers', dispach: 'dispatch', 'admin.prot': 'admin.port',
    ADMIN_HOST: 'admin.host', readyTimeoutMs: 'ready.timeoutMs', zzzzzz: null, ['w'.repeat(1_000_000)]: null }
  for (const [typed, name] of Object.entries(meant)) assert.equal(nearestName(typed, NAMES), name, typed.slice(0, 20))
  assert.equal(nearestName('x', ['workers']), null)
  assert.deepEqual([didYouMean('wrokers', NAMES), didYouMean('zzzzzz', NAMES)], [' (did you mean "workers"?)', ''])
})
