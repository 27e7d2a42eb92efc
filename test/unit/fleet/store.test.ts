import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { before, test, type TestContext } from 'node:test'
import { createNatsConnection } from '../../../server/fleet/nats-connection.ts'
import { createStore } from '../../../server/fleet/store.ts'
import { startNats, withoutNats, type Nats } from '../../support/nats.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'

const skip = withoutNats
const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const BY: { actor: string, named: string[] } = { actor: 'ada', named: [] }

let nats: Nats
const ends: (() => unknown)[] = []
before(async () => {
  if (!skip) nats = await startNats(fake({ after: (end: () => unknown) => ends.push(end) }))
})
test.after(async () => {
  for (const end of ends) await end()
})

let fleets = 0

/** A fleet of its own. */
async function start (t: TestContext, options: Partial<Parameters<typeof createStore>[0]> = {}) {
  const name = `f${++fleets}`
  const natsConnection = createNatsConnection({ options: { servers: [nats.url], name, tls: {} }, member: 'one' })
  const store = createStore({ nats: natsConnection, fleet: name, app: 'shop',
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 20))), ...options })
  natsConnection.start()
  t.after(() => natsConnection.close())
  await until(() => natsConnection.state.isConnected, 'NATS')
  const connection = await connect({ servers: nats.url })
  t.after(() => connection.close())
  const js = jetstream(connection)
  const manager = await js.jetstreamManager()
  const bucket = `clusterdeck_${name}_releases`
  return { natsConnection, store, js, manager, bucket,
    put: (bytes: Buffer, by = BY) => store.put(digestOf(bytes), chunks(bytes), by), async subjects () {
    const { state } = await manager.streams.info(`OBJ_${bucket}`, { subjects_filter: `$O.${bucket}.C.>` })
    return Object.keys(state.subjects ?? {})
  } }
}

async function* chunks (bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
}

test('gives back what it was given, piece by piece, and stores it once', { skip }, async (t) => {
  const { store, put, subjects } = await start(t)
  const bytes = randomBytes(3 * 1024 ** 2 + 7)
  const pushed = await put(bytes)
  assert.deepEqual({ ...pushed, pushedAt: '' }, { digest: digestOf(bytes), bytes: bytes.length, pushedAt: '',
    actor: 'ada', isNew: true })
  assert.ok(bytes.equals(await buffer(store.read(digestOf(bytes)))))
  assert.equal((await put(bytes)).isNew, false)
  assert.equal((await subjects()).length, 1)
  assert.deepEqual(await store.list(), [{ digest: digestOf(bytes), bytes: bytes.length, pushedAt: pushed.pushedAt,
    actor: 'ada' }])
})

test('two that push the same at the same time both succeed, and one copy is left', { skip }, async (t) => {
  const { store, put, subjects } = await start(t)
  const bytes = randomBytes(2 * 1024 ** 2)
  const both = await Promise.all([put(bytes), put(bytes)])
  assert.deepEqual(both.map(({ isNew }) => isNew).sort(), [false, true])
  assert.equal((await subjects()).length, 1)
  assert.ok(bytes.equals(await buffer(store.read(digestOf(bytes)))))
})

test('keeps the last five, and what a rollout names', { skip }, async (t) => {
  const { store, put, subjects } = await start(t)
  const all = Array.from({ length: 8 }, () => randomBytes(100))
  const by = { actor: 'ada', named: [digestOf(all[0])] }
  for (const bytes of all) await put(bytes, by)
  assert.deepEqual((await store.list()).map(({ digest }) => digest), [...all.slice(-5).reverse(), all[0]].map(digestOf))
  assert.equal((await subjects()).length, 6)
})

test('removes pieces that nobody has finished, once they are old', { skip }, async (t) => {
  const young = await start(t)
  await young.put(randomBytes(10))
  await young.js.publish(`$O.${young.bucket}.C.abandoned`, 'x')
  await young.put(randomBytes(10))
  assert.equal((await young.subjects()).length, 3)
  const old = createStore({ nats: young.natsConnection, fleet: young.bucket.split('_')[1], app: 'shop',
    abandonedMs: 0 })
  const bytes = randomBytes(10)
  await old.put(digestOf(bytes), chunks(bytes), BY)
  assert.deepEqual((await young.subjects()).filter((subject) => subject.endsWith('abandoned')), [])
  assert.equal((await young.subjects()).length, 3)
})

test('what a part is missing of is not there, and can be pushed again', { skip }, async (t) => {
  const { store, put, manager, bucket, subjects } = await start(t)
  const bytes = randomBytes(2 * 1024 ** 2)
  await put(bytes)
  await manager.streams.purge(`OBJ_${bucket}`, { filter: (await subjects())[0], keep: 1 })
  assert.equal(await store.has(digestOf(bytes)), false)
  assert.deepEqual(await store.list(), [])
  await assert.rejects(buffer(store.read(digestOf(bytes))), { code: 'not-found' })
  assert.equal((await put(bytes)).isNew, true)
  assert.ok(bytes.equals(await buffer(store.read(digestOf(bytes)))))
})

test('what is no object is not seen', { skip }, async (t) => {
  const { store, put, js, bucket } = await start(t)
  const bytes = randomBytes(10)
  await put(bytes)
  const digest = `sha256:${'a'.repeat(64)}`
  const whole = { name: digest, bucket, nuid: 'x', size: 1, chunks: 1, mtime: '2026-01-01T00:00:00Z' }
  for (const content of ['no JSON', '[]', 'null', JSON.stringify({ ...whole, name: '../../etc' }),
    JSON.stringify({ ...whole, nuid: '>' }), JSON.stringify({ ...whole, size: 2 ** 40 }),
    JSON.stringify({ ...whole, chunks: -1 }), JSON.stringify({ ...whole, deleted: true })])
  {
    await js.publish(`$O.${bucket}.M.${Buffer.from(digest).toString('base64url')}=`, content)
    await js.publish(`$O.${bucket}.M.strange`, content)
    assert.deepEqual((await store.list()).map((pushed) => pushed.digest), [digestOf(bytes)], content)
    assert.equal(await store.has(digest), false, content)
  }
})

test('goes on reading where the connection was lost, and gives up where nothing comes any more', { skip },
  async (t) => {
    let nowMs = 0
    const { store, put, manager, bucket, subjects } = await start(t, { now: () => nowMs })
    const bytes = randomBytes(3 * 1024 ** 2)
    await put(bytes)
    const reading = store.read(digestOf(bytes))
    const first = await reading.next()
    await nats.kill()
    const second = reading.next()
    await nats.start()
    assert.ok(
      bytes.subarray(0, first.value.length + (await second).value.length).equals(
        Buffer.concat([first.value, (await second).value])
      )
    )
    const purge = async () => manager.streams.purge(`OBJ_${bucket}`, { filter: (await subjects())[0] })
    await until(() => purge().then(() => true, () => false), 'the rest to be gone')
    const third = reading.next()
    nowMs = 60_001
    await assert.rejects(third, { code: 'fleet-away', message: /cannot be read: a part is missing/ })
  })

test('says that the fleet is out of reach', async () => {
  const natsConnection = createNatsConnection({ options: { servers: ['nats://127.0.0.1:1'], name: 'x', tls: {} },
    member: 'one' })
  const store = createStore({ nats: natsConnection, fleet: 'x', app: 'shop' })
  for (const asked of [store.list(), store.has('x'), store.put('x', chunks(Buffer.from('x')), BY),
    store.read('x').next()])
    await assert.rejects(asked, { code: 'fleet-away', message: /The fleet is out of reach: not connected yet/ })
})
