import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRpcClient } from '../../../server/fleet/rpc-client.ts'
import { fake } from '../../support/fake.ts'
import type { Connection, Open } from '../../../server/fleet/nats-connection.ts'
import type { Serve } from '../../../server/fleet/rpc-server.ts'

const ADA = Object.freeze({ name: 'ada', actor: 'ada', role: 'admin' as const, client: 'cli' as const })
const ANSWER = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }
const STATUS = Object.freeze({ app: 'shop', method: 'GET' as const, path: '/status', headers: {} })

/** `parts`: of this deck, web-1, which knows web-2 and db-1 that is silent */
function setUp (
  { request = async () => ({ data: Buffer.from(JSON.stringify(ANSWER)) }), isConnected = true, serve = async () =>
    ANSWER }: { request?: (subject: string, text: string) => Promise<{ data: Buffer }>, isConnected?: boolean,
      serve?: Serve } = {}
) {
  const members = ['db-1', 'web-1', 'web-2'].map((member) => ({ member, home: `home of ${member}`,
    isOwn: member === 'web-1', isSilent: member === 'db-1', ageMs: 40_000, apps: [{ app: 'shop' }] })
  )
  const opened = fake<Open>({ connection: { request }, names: { subject: 'clusterdeck.test' } })
  const nats = fake<Connection>({ state: { isConnected, problem: isConnected ? null : 'the connection is lost' },
    attempt: async (work) => ({ is: 'done', value: await work(opened) }) })
  return createRpcClient({ nats,
    presence: fake({ list: () => members, find: (name: string) => members.find((each) => each.member === name) ?? null,
      all: async () => ({ members, isComplete: true }) }), member: 'web-1', serve })
}

test('a question says who asks, from where, with their role, and which data folder and which app are meant', async () => {
  const asked: [string, unknown][] = []
  const { ask } = setUp({ request: async (subject, text) => {
    asked.push([subject, JSON.parse(text)])
    return { data: Buffer.from(JSON.stringify(ANSWER)) }
  } })
  assert.deepEqual(
    await ask('web-2', { app: 'shop', method: 'PUT', path: '/scale', headers: { accept: 'application/json' },
      body: { workers: 2 } }, ADA),
    ANSWER
  )
  assert.deepEqual(asked, [['clusterdeck.test.web-2.api', { home: 'home of web-2', app: 'shop', method: 'PUT',
    path: '/scale', headers: { accept: 'application/json' }, body: { workers: 2 }, actor: 'ada', role: 'admin',
    client: 'cli', from: 'web-1' }]])
})

test('whoever cannot be asked, or answers nothing that is an answer, is told of plainly', async () => {
  const fails = (error: Error) => setUp({ request: () => Promise.reject(error) }).ask
  const says = (data: string) => setUp({ request: async () => ({ data: Buffer.from(data) }) }).ask
  const named = (name: string, more: object = {}) => Object.assign(new Error('x'), { name, ...more })
  for (const [what, ask, member, code, message] of [['an unknown one', setUp().ask, 'web-9', 'not-found',
    'The fleet has no member "web-9"'], ['one without the app',
    (member: string) => setUp().ask(member, { ...STATUS, app: 'mail' }, ADA), 'web-2', 'not-found',
    'web-2 has no app "mail"'], ['a silent one', setUp().ask, 'db-1', 'no-master', 'db-1 has been silent for 40 s'], [
    'without NATS',
    setUp({ isConnected: false }).ask,
    'web-2',
    'fleet-away',
    'cannot ask web-2: NATS is out of reach (the connection is lost)'
  ], ['one that has gone', fails(named('RequestError', { isNoResponders: () => true })), 'web-2', 'no-master',
    'web-2 is offline'], ['one that hangs', fails(named('TimeoutError')), 'web-2', 'timed-out',
    'web-2 did not answer within 10 s. It may have done it nevertheless'], ['a connection that ends',
    fails(named('ClosedConnectionError')), 'web-2', 'fleet-away', 'cannot ask web-2: x'], ['garbage', says('what?'),
    'web-2', 'no-master', 'web-2 sent an answer that this version cannot read'], ['a page',
    says(JSON.stringify({ ...ANSWER, headers: { 'content-type': 'text/html' } })), 'web-2', 'no-master',
    'web-2 sent an answer that this version cannot read']] as const)
  {
    await assert.rejects(ask(member, STATUS, ADA), { code, message }, what)
  }
})

test('this host asks itself without NATS, by the same rules', async () => {
  const served: unknown[] = []
  const { ask } = setUp({ isConnected: false, serve: async (order, asker) => {
    served.push([order.app, order.path, asker.actor, asker.role])
    return ANSWER
  } })
  await ask('web-1', STATUS, ADA)
  assert.deepEqual(served, [['shop', '/status', 'ada', 'operator']])
  await assert.rejects(ask('web-1', { ...STATUS, path: '/tokens' }, ADA), { code: 'forbidden' })
  await assert.rejects(ask('web-1', { ...STATUS, path: '/a/../b' }, ADA), { code: 'bad-request' })
})
