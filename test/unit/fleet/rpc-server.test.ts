import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRpcServer, type Serve } from '../../../server/fleet/rpc-server.ts'
import { fake } from '../../support/fake.ts'
import type { Connection, Open } from '../../../server/fleet/nats-connection.ts'

const QUESTION = { home: 'here', app: 'shop', method: 'GET', path: '/status', headers: {}, actor: 'ada', role: 'admin',
  client: 'cli', from: 'web-1' }
const SERVED = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }

type Served = Awaited<ReturnType<Serve>>
type Subscribed = { subject: string, queue: string, callback: (error: null, message: object) => void }

async function setUp (
  { now = () => 0, accept = 'operate', maxPayload = 1024 * 1024, serve = async () => SERVED }: { now?: () => number,
    accept?: 'nothing' | 'read' | 'operate', maxPayload?: number, serve?: Serve } = {}
) {
  let subscribed = null as Subscribed | null
  const opened = fake<Open>({ connection: { info: { max_payload: maxPayload }, subscribe: (subject, options) => {
    subscribed = { subject, ...options } as Subscribed
    return { unsubscribe () {
      subscribed = null
    } }
  } }, names: { subject: 'clusterdeck.test' } })
  const nats = fake<Connection>({ use: (use) => void use(opened) })
  const answering = createRpcServer({ nats, member: 'web-2', home: 'here', accept, serve, now })
  return {
    answering,
    subscribed,
    isListening: () => subscribed !== null,
    /** @returns the first answer; never settles without one */
    ask: (question: unknown, reply: string = '_INBOX.a.b'): Promise<Served> =>
      new Promise((resolve) => {
        subscribed!.callback(null, { reply, data: Buffer.from(JSON.stringify(question)),
          respond: (text: string) => resolve(JSON.parse(text)) })
      })
  }
}

test('who asks is known by the deck that they ask by, and is no more than is accepted', async () => {
  const askers: unknown[] = []
  const { ask, subscribed } = await setUp({ serve: async (_order, asker) => {
    askers.push(asker)
    return SERVED
  } })
  assert.deepEqual(await ask(QUESTION), SERVED)
  assert.deepEqual([subscribed?.subject, subscribed?.queue], ['clusterdeck.test.web-2.api', 'here'])
  assert.deepEqual(askers, [{ name: 'ada@web-1', actor: 'ada@web-1', role: 'operator', client: 'cli', from: 'web-1',
    bound: 'fleet.accept of web-2 is "operate"' }])
})

test('what is not a question for this deck is not acted on, and is written nowhere but to an inbox', async () => {
  let served = 0
  const { ask } = await setUp({ serve: async () => {
    served++
    return SERVED
  } })
  const silent = [ask({ ...QUESTION, home: 'there' }),
    ...['', '$KV.bucket.key', '$JS.API.STREAM.DELETE.x', 'clusterdeck.test.web-2.api', '_INBOX.*', '_INBOX.a b'].map((
      reply
    ) => ask(QUESTION, reply))]
  assert.equal((await ask({ ...QUESTION, extra: 1 })).status, 400)
  assert.equal(await Promise.race([...silent, ask(QUESTION).then(() => 'none')]), 'none')
  assert.equal(served, 1)
})

test('whose name is that of another deck hears no question for it', async () => {
  const { answering, isListening, ask } = await setUp()
  answering.named(false)
  assert.equal(isListening(), false)
  answering.named(true)
  assert.equal((await ask(QUESTION)).status, 200)
})

test('so many questions at once, and no more', async () => {
  const ends: (() => void)[] = []
  const { ask } = await setUp({ serve: () => new Promise((resolve) => ends.push(() => resolve(SERVED))) })
  const running = Array.from({ length: 64 }, () => ask(QUESTION))
  assert.equal((await ask(QUESTION)).status, 429)
  for (const end of ends.splice(0)) end()
  assert.deepEqual(new Set((await Promise.all(running)).map(({ status }) => status)), new Set([200]))
  const next = ask(QUESTION)
  ends.pop()?.()
  assert.equal((await next).status, 200)
})

test('a flood is not read: so many questions a second, and no more', async () => {
  let time = 0
  const { ask } = await setUp({ now: () => time })
  for (let n = 0; n < 100; n++) assert.equal((await ask(QUESTION)).status, 200)
  const lost = ask(QUESTION)
  time = 999
  const lostToo = ask(QUESTION)
  time = 1000
  assert.equal(await Promise.race([lost, lostToo, ask(QUESTION).then(({ status }) => status)]), 200)
})

test('an answer that is larger than a message may be, or no text, is said to be', async () => {
  const large = await setUp({ maxPayload: 10_000, serve: async () => ({ ...SERVED, body: '"'.repeat(4000) }) })
  const { status, body } = await large.ask(QUESTION)
  assert.deepEqual([status, JSON.parse(body).detail], [413,
    'the answer of a member: expected at most 5904 bytes, received 8070. Ask for less by a limit or a filter'])
  const file = await setUp({
    serve: async () => ({ ...SERVED, headers: { 'content-type': 'application/octet-stream' } })
  })
  assert.equal((await file.ask(QUESTION)).status, 406)
})

test('what fails inside says nothing of it, and what runs at the end is ended', async () => {
  const broken = await setUp({ serve: async () => {
    throw new Error('SELECT * FROM tokens')
  } })
  const { status, body } = await broken.ask(QUESTION)
  assert.deepEqual([status, body.includes('SELECT')], [500, false])
  const { ask, answering } = await setUp({
    serve: (_order, _asker, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  const asked = ask(QUESTION)
  answering.close()
  assert.equal(JSON.parse((await asked).body).code, 'stopping')
})
