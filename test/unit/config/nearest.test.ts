import assert from 'node:assert/strict'
import test from 'node:test'
import { didYouMean, nearestName } from '../../../server/config/nearest.ts'

const NAMES = ['workers', 'dispatch', 'admin.port', 'admin.host', 'ready.timeoutMs']

test('a typing error finds the name that was meant', () => {
  assert.equal(nearestName('wrokers', NAMES), 'workers')
  assert.equal(nearestName('worker', NAMES), 'workers')
  assert.equal(nearestName('dispach', NAMES), 'dispatch')
  assert.equal(nearestName('admin.prot', NAMES), 'admin.port')
})

test('another way of writing it finds it too', () => {
  assert.equal(nearestName('ADMIN_HOST', NAMES), 'admin.host')
  assert.equal(nearestName('readyTimeoutMs', NAMES), 'ready.timeoutMs')
})

test('what is far from everything finds nothing', () => {
  assert.equal(nearestName('zzzzzz', NAMES), null)
  assert.equal(nearestName('x', ['workers']), null)
  assert.equal(didYouMean('zzzzzz', NAMES), '')
})

test('the suggestion reads as the end of a message', () => {
  assert.equal(didYouMean('wrokers', NAMES), ' (did you mean "workers"?)')
})

test('a hostile name of any length costs little', () => {
  assert.equal(nearestName('w'.repeat(1_000_000), NAMES), null)
})
