import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeckError } from '../../../server/errors.ts'
import { createOtherDecks } from '../../../server/system/other-decks.ts'
import { idOf } from '../../../server/system/other-deck.ts'
import { registered } from '../../support/registered.ts'
import type { RunningDeck } from '../../../server/system/running-decks.ts'

const GONE = { pid: 2 ** 30, startTime: null }
const STATUS = { state: 'running', readyWorkers: 1, desiredWorkers: 1 }

function setUp (
  { decks = [registered()], status = async () => STATUS }: { decks?: RunningDeck[],
    status?: (deck: RunningDeck) => Promise<object> } = {}
) {
  const clock = { now: 0 }
  const asked = [] as string[]
  const reads = { count: 0 }
  const ask: Parameters<typeof createOtherDecks>[0]['ask'] = { status: async (deck) => {
    asked.push(deck.name)
    return status(deck)
  }, signInLink: async (deck, order) => ({ code: 'code', url: `${deck.adminUrl} ${order.from}` }) }
  const list = () => {
    reads.count++
    return decks
  }
  return {
    others: createOtherDecks({ isOwn: ({ dataDir }) => dataDir === '/srv/shop/data', list, ask, now: () => clock.now }),
    clock,
    asked,
    reads,
    decks
  }
}

test('lists the others without asking them, and reads the folder now and then alone', () => {
  const mail = registered()
  const { others, clock, asked, reads } = setUp({
    decks: [registered({ dataDir: '/srv/shop/data', name: 'shop' }), mail]
  })
  for (let n = 0; n < 10; n++) assert.deepEqual(others.list(), [{ id: idOf(mail), name: 'mail', cwd: '/srv/mail' }])
  assert.equal(reads.count, 1)
  clock.now += 2000
  others.list()
  assert.equal(reads.count, 2)
  assert.deepEqual(asked, [])
})

test('asks each once for all who look at about the same time, and again later', async () => {
  const { others, clock, asked } = setUp({ decks: [registered(), registered({ name: 'blog' })] })
  const [first, second] = await Promise.all([others.health(), others.health()])
  assert.equal(first, second)
  assert.deepEqual(asked, ['mail', 'blog'])
  assert.deepEqual(first.map(({ name, presence, status, publicUrl }) => ({ name, presence, status, publicUrl })),
    ['mail', 'blog'].map((name) => ({ name, presence: 'answers', status: STATUS, publicUrl: null })))
  clock.now += 1999
  await others.health()
  assert.equal(asked.length, 2)
  clock.now += 1
  await others.health()
  assert.equal(asked.length, 4)
})

test('one that does not answer keeps no other from being seen, and one without a master or elsewhere is not asked', async () => {
  const decks = [registered({ name: 'hung' }), registered({ name: 'restarts', master: GONE }),
    registered({ name: 'lan', adminUrl: 'http://10.0.0.7:9777' }), registered()]
  const { others, asked } = setUp({ decks, status: async ({ name }) => {
    if (name === 'hung') throw new DeckError('no-master', 'silence')
    return STATUS
  } })
  assert.deepEqual((await others.health()).map(({ name, presence }) => [name, presence]), [['hung', 'silent'], [
    'restarts',
    'restarting'
  ], ['lan', 'elsewhere'], ['mail', 'answers']])
  assert.deepEqual(asked, ['hung', 'mail'])
})

test('a folder that others could have written has no decks', async () => {
  const others = createOtherDecks({ isOwn: ({ dataDir }) => dataDir === '/srv/shop/data', list () {
    throw new DeckError('runtime-dir-unusable', 'open to others')
  } })
  assert.deepEqual(others.list(), [])
  assert.deepEqual(await others.health(), [])
})

test('a link leads to a deck that runs now, and to no other', async () => {
  const { others, decks } = setUp({ decks: [registered(), registered({ dataDir: '/srv/shop/data' })] })
  const [mail, own] = decks.map(idOf)
  const order = { ttlMs: 1000, from: 'shop' }
  assert.deepEqual(await others.signInLink(mail, order), { code: 'code', url: 'http://127.0.0.1:1 shop' })
  assert.deepEqual(others.get(mail), { id: mail, name: 'mail', adminUrl: 'http://127.0.0.1:1', publicUrl: null })
  await assert.rejects(others.signInLink(own, order), { code: 'not-found' })
  decks.length = 0
  await assert.rejects(others.signInLink(mail, order), { code: 'not-found' })
  assert.throws(() => others.get(mail), { code: 'not-found' })
})
