import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_MEMBERS } from '../../../server/fleet/document.ts'
import { createPresence } from '../../../server/fleet/presence.ts'
import { fake } from '../../support/fake.ts'
import type { Connection, Open } from '../../../server/fleet/nats-connection.ts'

const BEAT_MS = 5000
const SHOP = { app: 'shop', state: 'running' as const, release: null, code: null, workers: { ready: 1, desired: 1 },
  health: { tone: 'ok' as const, text: 'well' }, vitals: { requestsPerSecond: null, latencyP99Ms: null },
  openCrashes: 0, unwritten: null, rollout: null, turnOf: null, seen: { rollout: 0, revision: 0 }, url: null }
const WORD = { member: 'web-1', home: 'home', host: 'one', version: '1', labels: {}, url: null, accept: 'read' as const,
  apps: [SHOP] }
const NO_TIMERS = { setInterval () {}, clearInterval () {}, setTimeout () {}, clearTimeout () {} }

/** A bucket with one key, and decks that write to it: each beats when the test says so. */
function open () {
  let at = 0
  let revision = 0
  let stored: { boot: string } | null = null
  const entryOf = (value: unknown) => ({ key: 'web-1', operation: 'PUT' as const, revision, length: 1,
    json: () => value, created: new Date(at), isUpdate: false, delta: 0 })
  const opened = fake<Open>({
    members: { get: async () => stored && entryOf(stored), watch: async () =>
      Object.assign((async function* () {
        if (stored) yield { ...entryOf(stored), created: new Date(at) }
      })(), { stop () {} }) }
  })
  const nats = fake<Connection>({ state: { isConnected: true }, use () {},
    attempt: async (work) => ({ is: 'done', value: await work(opened) }),
    call: async (work) => ({ is: 'done', value: await work(opened) }), async write (_, __, value, before) {
    if (before !== (stored ? revision : 0)) return { is: 'refused' }
    stored = value as { boot: string }
    return { is: 'written', revision: ++revision }
  } })
  return { get stored () {
    return stored!
  }, start (fields: Record<string, string>) {
    let problem: string | null = null
    let beat: () => void = () => {}
    createPresence({ nats, describe: () => fake({ ...WORD, ...fields }), onName: (found) => {
      problem = found
    }, now: () => at, timers: fake({ ...NO_TIMERS, setInterval (fn) {
      beat = fn
    } }) })
    return { get problem () {
      return problem
    }, async beat () {
      beat()
      await new Promise((resolve) => setImmediate(resolve))
    } }
  }, pass () {
    at += BEAT_MS
  } }
}

test('of two decks with one data folder, one a copy, one gives way', async () => {
  const bucket = open()
  const [one, copy] = [bucket.start({ boot: 'a' }), bucket.start({ boot: 'b', host: 'two' })]
  for (let beats = 0; beats < 6; beats++) {
    await one.beat()
    await copy.beat()
    bucket.pass()
  }
  assert.equal(one.problem, null)
  assert.match(String(copy.problem),
    /^the name web-1 is taken by one \(shop\) with a copy of this data folder: give this host another by fleet\.member/)
  assert.equal(bucket.stored.boot, 'a')
})

test('a master that follows another one on its data folder has its name at once', async () => {
  const bucket = open()
  const [before, next] = [bucket.start({ boot: 'a' }), bucket.start({ boot: 'b' })]
  await before.beat()
  for (let beats = 0; beats < 8; beats++) {
    bucket.pass()
    await next.beat()
    assert.deepEqual([next.problem, bucket.stored.boot], [null, 'b'])
  }
})

test('whoever leaves while a word of it is on its way leaves all the same, and says nothing after it', async () => {
  const done: string[] = []
  let arrive = () => {}
  const opened = fake<Open>({ members: { delete: async (name: string, how) => {
    done.push(`delete ${name} at ${how?.previousSeq}`)
  } } })
  const nats = fake<Connection>({ state: { isConnected: true }, use () {}, attempt: async () => ({ is: 'away' }),
    call: async (work) => ({ is: 'done', value: await work(opened) }), write: () =>
      new Promise((resolve) => {
        done.push('write')
        arrive = () => resolve({ is: 'written', revision: 7 })
      }) })
  let beat: () => void = () => {}
  const timers = fake<typeof globalThis>({ ...NO_TIMERS, setInterval (fn) {
    beat = fn
  } })
  const presence = createPresence({ nats, describe: () => fake(WORD), timers })
  beat()
  beat()
  const leaving = presence.close()
  arrive()
  await leaving
  beat()
  assert.deepEqual(done, ['write', 'delete web-1 at 7'])
})

test('members that nobody could have are not kept', async () => {
  const words = (async function* () {
    for (let index = 0; index < 3000; index++)
      yield { key: `evil-${index}`, operation: 'PUT', length: 1,
        json: () => ({ ...WORD, member: `evil-${index}`, boot: 'b' }), created: new Date(0), isUpdate: index > 100,
        delta: 1 }
    await new Promise(() => {})
  })()
  const nats = fake<Connection>({ state: { isConnected: true }, use () {},
    attempt: async () => ({ is: 'done', value: Object.assign(words, { stop () {} }) }) })
  const presence = createPresence({ nats, describe: () => fake({ ...WORD, boot: 'a' }), timers: fake(NO_TIMERS) })
  presence.list()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(presence.list().length, MAX_MEMBERS + 1)
})

test('a host that is silent can be forgotten, and one that reports, or this one, cannot', async () => {
  let at = 0
  const deleted: unknown[] = []
  const words = (async function* () {
    yield { key: 'web-2', operation: 'PUT' as const, length: 1, json: () => ({ ...WORD, member: 'web-2', boot: 'b' }),
      created: new Date(0), isUpdate: false, delta: 0 }
    await new Promise(() => {})
  })()
  const opened = fake<Open>({
    members: { watch: async () => Object.assign(words, { stop () {} }), get: async () => ({ revision: 7 }),
      delete: async (name: string, how) => {
        deleted.push([name, how])
      } }
  })
  const done = async (work: (open: Open) => Promise<unknown>) => ({ is: 'done' as const, value: await work(opened) })
  const nats = fake<Connection>({ state: { isConnected: true, problem: null }, use () {}, attempt: done, call: done })
  const presence = createPresence({ nats, describe: () => fake({ ...WORD, boot: 'a' }), now: () => at,
    timers: fake(NO_TIMERS) })
  await presence.all()
  await assert.rejects(presence.forget('web-2'), { code: 'not-possible',
    message: /^web-2: expected a host that is silent, but it has reported 0 s ago/ })
  at += 60_000
  await assert.rejects(presence.forget('web-1'), { code: 'not-possible', message: /this is the host that you ask/ })
  await assert.rejects(presence.forget('web-3'), { code: 'not-found' })
  assert.deepEqual([await presence.forget('web-2'), deleted, presence.find('web-2')], [60_000, [['web-2', {
    previousSeq: 7
  }]], null])
})
