import assert from 'node:assert/strict'
import test from 'node:test'
import { didYouMean, nearest } from '../../../server/config/nearest.js'

const NAMES = ['workers', 'dispatch', 'admin.port', 'admin.host', 'ready.timeoutMs']

test('a typing error finds the name that was meant', () => {
  assert.equal(nearest('wrokers', NAMES), 'workers')
  assert.equal(nearest('worker', NAMES), 'workers')
  assert.equal(nearest('dispach', NAMES), 'dispatch')
  assert.equal(nearest('admin.prot', NAMES), 'admin.port')
})

test('another way of writing it finds it too', () => {
  assert.equal(nearest('ADMIN_HOST', NAMES), 'admin.host')
  assert.equal(nearest('readyTimeoutMs', NAMES), 'ready.timeoutMs')
})

test('what is far from everything finds nothing', () => {
  assert.equal(nearest('zzzzzz', NAMES), null)
  assert.equal(nearest('x', ['workers']), null)
  assert.equal(didYouMean('zzzzzz', NAMES), '')
})

test('the suggestion reads as the end of a message', () => {
  assert.equal(didYouMean('wrokers', NAMES), ' (did you mean "workers"?)')
})

test('a hostile name of any length costs little', () => {
  assert.equal(nearest('w'.repeat(1_000_000), NAMES), null)
})
