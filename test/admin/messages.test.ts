import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.ts'

test('a message may have any name that is not reserved, and data up to a limit', async (t) => {
  const { api } = await startAdmin(t)
  const send = (body: string | object) =>
    api('post', '/api/v1/messages').set('Content-Type', 'application/json').send(body)
  await send({ type: 'a', data: 'x'.repeat(65_536) }).expect(413)
  await send(`{"type": "a", "data": ${'['.repeat(30_000)}${']'.repeat(30_000)}}`).expect(({ status }) =>
    assert.ok([202, 422].includes(status), String(status))
  )
  for (const type of ['shutdowns', ' shutdown', 'NODE', 'x'.repeat(100)]) await send({ type, data: null }).expect(202)
})
