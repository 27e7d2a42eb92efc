import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_MEMBERS } from '../../../server/fleet/document.js'
import { createPresence } from '../../../server/fleet/presence.js'

const BEAT_MS = 5000
const SHOP = { app: 'shop', state: 'running', release: null, code: null, workers: { ready: 1, desired: 1 }, health: { tone: 'ok', text: 'well' }, vitals: { requestsPerSecond: null, latencyP99Ms: null }, openCrashes: 0, rollout: null, turnOf: null, seen: { rollout: 0, revision: 0 }, url: null }
const WORD = { member: 'web-1', home: 'home', host: 'one', version: '1', labels: {}, url: null, accept: 'read', apps: [SHOP] }

/** A bucket with one key, and decks that write to it: each beats when the test says so. */
function open () {
  let at = 0
  let revision = 0
  /** @type {any} */
  let stored = null
  const entryOf = (/** @type {any} */ value) => ({ key: 'web-1', operation: 'PUT', revision, length: 1, json: () => value, created: new Date(at), isUpdate: false, delta: 0 })
  const members = {
    get: async () => stored && entryOf(stored),
    watch: async () => Object.assign((async function * () { if (stored) yield { ...entryOf(stored), created: new Date(at) } })(), { stop () {} })
  }
  const nats = /** @type {any} */ ({
    state: { isConnected: true },
    use () {},
    attempt: async (/** @type {any} */ work) => ({ is: 'done', value: await work({ members }) }),
    call: async (/** @type {any} */ work) => ({ is: 'done', value: await work({ members }) }),
    async write (/** @type {string} */ _, /** @type {string} */ __, /** @type {any} */ value, /** @type {number} */ before) {
      if (before !== (stored ? revision : 0)) return { is: 'refused' }
      stored = value
      return { is: 'written', revision: ++revision }
    }
  })
  return {
    get stored () { return stored },

    /** @param {Record<string, string>} fields */
    start (fields) {
      /** @type {string | null} */
      let problem = null
      /** @type {() => void} */
      let beat = () => {}
      const timers = /** @type {any} */ ({ setInterval (/** @type {() => void} */ fn) { beat = fn }, clearInterval () {}, setTimeout () {}, clearTimeout () {} })
      createPresence({ nats, describe: () => /** @type {any} */ ({ ...WORD, ...fields }), onName: (found) => { problem = found }, now: () => at, timers })
      return {
        get problem () { return problem },
        async beat () {
          beat()
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
    },

    pass () { at += BEAT_MS }
  }
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
  assert.match(String(copy.problem), /^the name web-1 is taken by one \(shop\) with a copy of this data folder: give this host another by fleet\.member/)
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
  /** @type {string[]} */
  const done = []
  let arrive = () => {}
  const nats = /** @type {any} */ ({
    state: { isConnected: true },
    use () {},
    attempt: async () => ({ is: 'away' }),
    call: async (/** @type {any} */ work) => ({ is: 'done', value: await work({ members: { delete: async (/** @type {string} */ name, /** @type {{ previousSeq: number }} */ { previousSeq }) => { done.push(`delete ${name} at ${previousSeq}`) } } }) }),
    write: () => new Promise((resolve) => {
      done.push('write')
      arrive = () => resolve({ is: 'written', revision: 7 })
    })
  })
  /** @type {() => void} */
  let beat = () => {}
  const timers = /** @type {any} */ ({ setInterval (/** @type {() => void} */ fn) { beat = fn }, clearInterval () {}, setTimeout () {}, clearTimeout () {} })
  const presence = createPresence({ nats, describe: () => /** @type {any} */ (WORD), timers })
  beat()
  beat()
  const leaving = presence.close()
  arrive()
  await leaving
  beat()
  assert.deepEqual(done, ['write', 'delete web-1 at 7'])
})

test('members that nobody could have are not kept', async () => {
  const words = (async function * () {
    for (let index = 0; index < 3000; index++) yield { key: `evil-${index}`, operation: 'PUT', length: 1, json: () => ({ ...WORD, member: `evil-${index}`, boot: 'b' }), created: new Date(0), isUpdate: index > 100, delta: 1 }
    await new Promise(() => {})
  })()
  const nats = /** @type {any} */ ({ state: { isConnected: true }, use () {}, attempt: async () => ({ is: 'done', value: Object.assign(words, { stop () {} }) }) })
  const presence = createPresence({ nats, describe: () => /** @type {any} */ ({ ...WORD, boot: 'a' }), timers: /** @type {any} */ ({ setInterval () {}, clearInterval () {}, setTimeout () {}, clearTimeout () {} }) })
  presence.list()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(presence.list().length, MAX_MEMBERS + 1)
})

test('a host that is silent can be forgotten, and one that reports, or this one, cannot', async () => {
  let at = 0
  /** @type {unknown[]} */
  const deleted = []
  const words = (async function * () {
    yield { key: 'web-2', operation: 'PUT', length: 1, json: () => ({ ...WORD, member: 'web-2', boot: 'b' }), created: new Date(0), isUpdate: false, delta: 0 }
    await new Promise(() => {})
  })()
  const members = { watch: async () => Object.assign(words, { stop () {} }), get: async () => ({ revision: 7 }), delete: async (/** @type {string} */ name, /** @type {object} */ how) => { deleted.push([name, how]) } }
  const done = async (/** @type {any} */ work) => ({ is: 'done', value: await work({ members }) })
  const nats = /** @type {any} */ ({ state: { isConnected: true, problem: null }, use () {}, attempt: done, call: done })
  const presence = createPresence({ nats, describe: () => /** @type {any} */ ({ ...WORD, boot: 'a' }), now: () => at, timers: /** @type {any} */ ({ setInterval () {}, clearInterval () {}, setTimeout () {}, clearTimeout () {} }) })
  await presence.all()
  await assert.rejects(presence.forget('web-2'), { code: 'not-possible', message: /^web-2: expected a host that is silent, but it has reported 0 s ago/ })
  at += 60_000
  await assert.rejects(presence.forget('web-1'), { code: 'not-possible', message: /this is the host that you ask/ })
  await assert.rejects(presence.forget('web-3'), { code: 'not-found' })
  assert.deepEqual([await presence.forget('web-2'), deleted, presence.find('web-2')], [60_000, [['web-2', { previousSeq: 7 }]], null])
})
