import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createNatsConnection } from '../../server/fleet/nats-connection.ts'
import { startMember, type Member } from '../support/fleet.ts'
import { createLink, startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'

const skip = withoutNats

/** Ways in which a NATS server is of no use. */
const SPOILED: Record<string, (t: TestContext) => Promise<{ url: string, spoil: () => unknown, isThere: boolean }>> = {
  'is frozen: it holds its connections and answers nothing': async (t) => {
    const nats = await startNats(t)
    return { url: nats.url, spoil: () => nats.signal('SIGSTOP'), isThere: true }
  },
  dies: async (t) => {
    const nats = await startNats(t)
    return { url: nats.url, spoil: nats.kill, isThere: true }
  },
  'never was': async (t) => {
    const link = await createLink(t, { to: 1 })
    return { url: link.url, spoil: () => {}, isThere: false }
  },
  'speaks nonsense': async (t) => {
    const link = await createLink(t, { to: 1 })
    link.babble('INFO {"server_id":"x","max_payload":-1,"headers":"yes"}\r\n+OK\r\nMSG a b c d\r\n\0\0\0')
    return { url: link.url, spoil: () => {}, isThere: false }
  }
}

for (const [name, prepare] of Object.entries(SPOILED)) {
  test(`a NATS server that ${name}: whatever keeps the app alive goes on without it`, {
    skip: skip || (name !== 'dies' && rareOnly)
  }, async (t) => {
    const { url, spoil, isThere } = await prepare(t)
    const member = await startMember(t, { name: 'web-1', servers: url, workers: 2,
      flags: ['--releases-mode', 'folder'] })
    if (isThere) await member.untilFleet(({ nats: connection }) => connection.isConnected, 'NATS')
    await spoil()

    const { workers: [{ pid, slot }] } = await member.until({ ready: 2 })
    process.kill(pid, 'SIGKILL')
    await member.untilEvent(({ type, slot: of }) => type === 'worker.restarted' && of === slot, 'the next worker')
    await member.until({ ready: 2 })
    member.put('v2')
    const deploy = await finished(member, { kind: 'deploy' })
    assert.deepEqual([deploy.state, deploy.reason], ['succeeded', null])
    assert.equal(await member.version(), 'v2')
    member.put('v3', { isBad: true })
    assert.equal((await finished(member, { kind: 'deploy' })).state, 'failed')
    assert.equal((await finished(member, { kind: 'restart' })).state, 'succeeded')
    assert.equal((await member.api('/scale', { method: 'PUT', body: '{"workers":3}' })).status, 200)
    await member.until({ ready: 3 })

    const startedAt = performance.now()
    const { body: fleet } = await member.api('/fleet')
    assert.deepEqual(fleet.members.map((each) => each.member), ['web-1'])
    assert.equal((await member.api('/fleet/rollout', { method: 'POST', body: '{"kind":"restart"}' })).status, 503)
    assert.ok(performance.now() - startedAt < 30_000, 'who asks for the fleet is told, and not kept waiting')

    const stoppedAt = performance.now()
    assert.equal((await member.stop()).code, 0)
    assert.ok(performance.now() - stoppedAt < 30_000, `stopping took ${Math.round(performance.now() - stoppedAt)} ms`)
  })
}

async function finished (member: Member, wanted: object) {
  const { status, body } = await member.api('/rollouts', { method: 'POST', body: JSON.stringify(wanted) })
  assert.equal(status, 202, JSON.stringify(body))
  return await member.rolloutEnd(body)
}

test('a bucket that somebody removes is made again, on the same connection', { skip }, async (t) => {
  const nats = await startNats(t)
  const connection = createNatsConnection({ options: { servers: [nats.url], name: 'test', tls: {} }, member: 'one' })
  t.after(connection.close)
  connection.start()
  await until(() => connection.state.isConnected, 'NATS')
  const { since } = connection.state
  await connection.attempt(({ manager }) => manager.streams.delete('KV_clusterdeck_test_members'))
  assert.equal((await connection.write('members', 'one', {}, 0)).is, 'away')
  await until(async () => (await connection.write('members', 'one', {}, 0)).is === 'written', 'the bucket')
  assert.equal(connection.state.since, since)

  const look = () => connection.attempt(({ manager, names }) => manager.streams.info(names.events))
  await connection.attempt(({ manager, names }) => manager.streams.delete(names.events))
  await until(async () => (await look()).is === 'done', 'the stream of events')
})

test('a connection that is lost while it is set up is known to be lost', { skip: skip || rareOnly }, async (t) => {
  const nats = await startNats(t)
  const connection = createNatsConnection({ options: { servers: [nats.url], name: 'test', tls: {} }, member: 'one' })
  t.after(connection.close)
  let uses = 0
  connection.use(async () => {
    if (++uses > 1) return
    await nats.kill()
    await new Promise((resolve) => setTimeout(resolve, 500))
  })
  connection.start()
  await until(() => uses === 1 && !connection.state.isConnected, 'it to be missed')
  await nats.start()
  await until(() => connection.state.isConnected && uses === 2, 'it to be back')
})

test('one that is closed while it connects leaves no connection behind', { skip: skip || rareOnly }, async (t) => {
  const nats = await startNats(t)
  const link = await createLink(t, { to: nats.port, delayMs: 100 })
  const connection = createNatsConnection({ options: { servers: [link.url], name: 'test', tls: {} }, member: 'one' })
  connection.start()
  await until(() => link.sockets === 2, 'it to connect')
  await connection.close()
  await until(() => link.sockets === 0, 'the connection to end')
  assert.equal(connection.state.isConnected, false)
})

test('where one server refuses it, another one is asked', { skip: skip || rareOnly }, async (t) => {
  const [closed, open] = await Promise.all([startNats(t, { config: () => 'authorization { token: other }' }),
    startNats(t)])
  // Whoever greets first.
  const slow = await createLink(t, { to: open.port, delayMs: 100 })
  const connection = createNatsConnection({ options: { servers: [closed.url, slow.url], name: 'test', tls: {} },
    member: 'one' })
  t.after(connection.close)
  connection.start()
  await until(() => connection.state.isConnected, 'the other one')
})

test('where TLS is asked for, a server without it hears nothing, least of all the token', { skip }, async (t) => {
  const nats = await startNats(t, { config: () => 'authorization { token: secret }' })
  for (const { scheme, isIn } of [{ scheme: 'nats', isIn: true }, { scheme: 'tls', isIn: false }]) {
    const connection = createNatsConnection({
      options: { servers: [`${scheme}://127.0.0.1:${nats.port}`], name: 'test', token: 'secret', tls: {} },
      member: 'one'
    })
    t.after(connection.close)
    connection.start()
    await until(() => connection.state.isConnected || connection.state.problem !== 'not connected yet', 'an outcome')
    assert.deepEqual([connection.state.isConnected, connection.state.problem], [isIn,
      isIn ? null : 'server does not support \'tls\''])
  }
})
