import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAddresses } from '../../server/cluster/addresses.js'

test('an address that all workers share is listed once, and stays while one of them lives', () => {
  const addresses = createAddresses()
  assert.equal(addresses.add(1, 'http://localhost:3000'), true)
  assert.equal(addresses.add(2, 'http://localhost:3000'), true)
  assert.equal(addresses.add(1, 'http://localhost:3000'), false)
  addresses.add(1, 'tcp://127.0.0.1:4001')
  assert.deepEqual(addresses.list(), ['http://localhost:3000', 'tcp://127.0.0.1:4001'])
  addresses.forget(1)
  assert.deepEqual(addresses.list(), ['http://localhost:3000'])
})

test('while no worker lives the last addresses stand', () => {
  const addresses = createAddresses()
  addresses.add(1, 'http://localhost:3000')
  addresses.forget(1)
  assert.deepEqual(addresses.list(), ['http://localhost:3000'])
})

test('a worker that listens without end fills nothing', () => {
  const addresses = createAddresses()
  for (let port = 1; port <= 1000; port++) addresses.add(1, `tcp://127.0.0.1:${port}`)
  assert.equal(addresses.list().length, 32)
})
