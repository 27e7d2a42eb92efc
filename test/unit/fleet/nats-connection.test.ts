import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNatsConnection } from '../../../server/fleet/nats-connection.ts'
import { startNats, withoutNats } from '../../support/nats.ts'
import { until } from '../../support/until.ts'

test('what waits for an answer is told as soon as the connection is lost, and not when its time is up', {
  skip: withoutNats
}, async (t) => {
  const nats = await startNats(t)
  const connection = createNatsConnection({ options: { servers: [nats.url], name: 'x', tls: {} }, member: 'one' })
  t.after(connection.close)
  connection.start()
  await until(() => connection.state.isConnected, 'NATS')
  const startedAt = performance.now()
  const asked = connection.attempt(({ connection }) => {
    // Somebody hears it, and says nothing.
    connection.subscribe('quiet')
    return connection.request('quiet', '', { timeout: 60_000 })
  })
  await nats.kill()
  assert.deepEqual(await asked, { is: 'away', reason: 'connection closed' })
  assert.ok(performance.now() - startedAt < 30_000)
  await nats.start()
  await until(() => connection.state.isConnected, 'NATS to be back')
  assert.deepEqual(await connection.attempt(async () => 'well'), { is: 'done', value: 'well' })
})
