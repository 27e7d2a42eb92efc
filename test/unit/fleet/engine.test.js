import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEngine } from '../../../server/fleet/engine.js'
import { startNats, withoutNats } from '../../support/nats.js'
import { until } from '../../support/until.js'

test('what waits for an answer is told as soon as the connection is lost, and not when its time is up', { skip: withoutNats }, async (t) => {
  const nats = await startNats(t)
  const engine = createEngine({ options: { servers: [nats.url], name: 'x', tls: {} }, member: 'one' })
  t.after(engine.close)
  engine.start()
  await until(() => engine.state.isConnected, 'the engine')
  const startedAt = performance.now()
  const asked = engine.attempt(({ connection }) => {
    // Somebody hears it, and says nothing.
    connection.subscribe('quiet')
    return connection.request('quiet', '', { timeout: 60_000 })
  })
  await nats.kill()
  assert.deepEqual(await asked, { is: 'away', reason: 'connection closed' })
  assert.ok(performance.now() - startedAt < 30_000)
  await nats.start()
  await until(() => engine.state.isConnected, 'the engine to be back')
  assert.deepEqual(await engine.attempt(async () => 'well'), { is: 'done', value: 'well' })
})
