import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.js'

test('serves the status to whoever holds the token', async (t) => {
  const admin = await startAdmin(t)
  const { body } = await admin.api('get', '/api/v1/status').expect(200)
  assert.equal(body.state, 'running')
})
