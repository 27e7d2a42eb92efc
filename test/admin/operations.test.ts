import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { requestOf as requestOfCommand } from '../../public/command-text.ts'
import { callOf, onMember, type Route } from '../../server/api/form.ts'
import { tagOf } from '../../server/api/preconditions.ts'
import { ROLES, type Role } from '../../server/api/roles.ts'
import { startAdmin, startHostAdmin, type Admin, type HostAdmin } from '../support/admin.ts'
import { createContract } from '../support/api-contract.ts'
import { aMember, createFakeHostFleet } from '../support/fake-fleet.ts'
import { HOST_OPERATIONS, OPERATIONS } from '../support/operations.ts'
import { present } from '../support/present.ts'
import { until } from '../support/until.ts'
import { APP_ROWS } from './operations/app-rows.ts'
import { HOST_ROWS } from './operations/host-rows.ts'
import { fieldsOf, requestOf, startNeighbour, WAYS, type Door, type Order, type Said,
  type Way } from './operations/ways.ts'
import type { ErrorCode } from '../../server/errors.ts'
import type { Params, Row, Rows } from './operations/row.ts'

type Neighbour = Awaited<ReturnType<typeof startNeighbour>>
type Subject = Admin | HostAdmin
/** Whose operations these are. `asked`: what it was asked for; `isOfHost`: agents and other hosts ask for none of them */
type Kind<A extends Subject> = { operations: Map<string, Route>, rows: Rows<A>, start: (t: TestContext) => Promise<A>,
  asked: (admin: A) => unknown[], isOfHost: boolean }
/** Of one way, at a port of its own. `order`: with what has been made for the row */
type Asking<A extends Subject> = { way: Way, row: Row<A>, admin: A, order: Order, asked: () => unknown[],
  ask: (role: Role | null, changes?: Partial<Order>) => Promise<Said> }
type Outcome = { said: Said, did: unknown, told: unknown }

const OF_APP: Kind<Admin> = { operations: OPERATIONS, rows: APP_ROWS, start: startAdmin, isOfHost: false,
  asked: ({ deck }) => deck.dispatched }
const OF_HOST: Kind<HostAdmin> = { operations: HOST_OPERATIONS, rows: HOST_ROWS, isOfHost: true,
  start: (t) => startHostAdmin(t, { fleet: () => createFakeHostFleet([aMember({ member: 'web-1' })]) }),
  asked: ({ apps }) => apps.orders }

/**
 * What the answers to different senders differ in, beside the times: what has signed in whom counts among the events,
 * after which runs are numbered.
 */
const OF_SENDER = new Set(['client', 'event', 'isGuessAccepted', 'lastEventId', 'run', 'token'])
const MASKS: [RegExp, string][] = [[/ada-\w+(@web-1)?/g, 'ada'], [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time'], [
  /http:\/\/[^"]*code=[\w-]+/g,
  'a link'
], [/\/api\/v1\/fleet\/members\/web-2\/api/g, '/api/v1']]

/** What a member of a fleet may ask another one for. */
const PASSED_ON = new Set(['GET', 'POST', 'PUT'])

for (const kind of [OF_APP, OF_HOST]) {
  test(`every operation of ${kind.isOfHost ? 'a host' : 'an app'} has a row here, but for those of its fleet`, () => {
    const own = [...kind.operations].filter(([, { path }]) => !/^\/api\/v1\/fleet(\/|$)/.test(path))
    assert.deepEqual(own.map(([name]) => name).sort(), Object.keys(kind.rows).sort())
  })
}

test('every operation of an app is done, refused and recorded alike, whoever asks by whatever way', (t) =>
  checkRows(t, OF_APP))
test('every operation of a host is done, refused and recorded alike by a script and by a form, and answers as its document says', (t) =>
  checkRows(t, OF_HOST))

async function checkRows<A extends Subject> (t: TestContext, kind: Kind<A>) {
  const neighbour = await startNeighbour(t)
  // What a fake deck tells of its workers is not whole.
  const contract = kind.isOfHost
    ? createContract((await (await kind.start(t)).api('get', '/api/v1/openapi.json')).body)
    : null
  for (const [name, rows] of Object.entries(kind.rows)) {
    const route = present(kind.operations.get(name))
    await t.test(name, async (t) => {
      for (const row of [rows].flat()) {
        const { role, byToken } = route.operation
        assert.deepEqual([role, byToken !== undefined], [row.role, Boolean(row.isForToken)])
        const make = async () => {
          const admin = await kind.start(t)
          return { admin, path: { ...row.path, ...await row.given?.(admin) } }
        }
        // Whoever only reads changes nothing for the next way.
        const shared = route.method === 'GET' ? await make() : null
        const prepare = async (way: Way) =>
          askingOf(kind, { ...shared ?? await make(), way, route, row, neighbour, contract })
        await (row.isStream ? checkStream(prepare) : checkWays(prepare, kind, route, row))
      }
    })
  }
}

async function checkWays<A extends Subject> (prepare: (way: Way) => Promise<Asking<A>>, { isOfHost }: Kind<A>,
  route: Route, row: Row<A>)
{
  let first: Outcome | undefined
  for (const way of WAYS.filter(({ isFor, isOfApp }) => isFor(route) && !(isOfHost && isOfApp))) {
    const asking = await prepare(way)
    const closed = way.isFromAfar && row.role === 'admin'
      ? (PASSED_ON.has(route.method) || way.isByForm ? 'forbidden' : 'method-not-allowed')
      : null
    await checkRefusals(asking, closed)
    if (closed) continue
    const outcome = await checkDone(asking)
    first ??= outcome
    compare(first, outcome, way)
    if (row.late) await checkLate(await prepare(way))
  }
  if (route.operation.form) checkCommand(route, row, isOfHost)
}

test('a form asks for nothing that no form is for', async (t) => {
  const { post } = await startAdmin(t)
  const closed = [...OPERATIONS.values()].filter(({ operation: { form } }) => !form).map(({ operation: { name } }) =>
    name
  )
  assert.ok(closed.length > 50)
  for (const name of [...closed, 'constructor']) assert.equal((await post(name, '')).status, 404, name)
})

function askingOf<A extends Subject> ({ asked }: Kind<A>,
  { admin, path, way, route, row, neighbour, contract }: { admin: A, path: Params, way: Way, route: Route, row: Row<A>,
    neighbour: Neighbour, contract: ReturnType<typeof createContract> | null }): Asking<A>
{
  const { query = {}, body, fields, seen } = row
  const order = { route, path, query, body, fields, tag: seen?.tag, seen: seen?.field(admin) }
  neighbour.leadTo(admin.admin)
  const door = way.isFromAfar ? neighbour : admin
  return { way, row, admin, order, asked: () => asked(admin), async ask (role, changes) {
    const token = role === null ? '' : await tokenAt(door, role)
    const said = await way.ask({ door, token }, { ...order, ...changes })
    const [path] = requestOf({ ...order, ...changes }, token).path.split('?')
    if (way.name === 'the API') contract?.check({ method: route.method, path, body: null, ...said })
    return said
  } }
}

async function checkRefusals<A extends Subject> ({ way, row, admin, order, asked, ask }: Asking<A>,
  closed: ErrorCode | null)
{
  const { code, says, ...bad } = row.bad ?? unknownName(order)
  const refuse = async (said: Promise<Said>, code: ErrorCode, says: string) => {
    const { isDone, code: received, detail } = await said
    assert.deepEqual([isDone, received], [false, way.codes?.[code] ?? code], `${way.name}: ${detail}`)
    assert.ok(detail?.startsWith(says), `${way.name}: expected ${says}…, received ${detail}`)
  }
  const [count, before] = [asked().length, admin.history.lastEventId()]
  const lesser = row.role && ROLES[ROLES.indexOf(row.role) - 1]
  if (lesser) await refuse(ask(lesser), closed ?? 'forbidden', '')
  if (closed) await refuse(ask(row.role), closed, closed === 'forbidden' ? 'This needs the role admin' : '')
  // A form leaves out what the operation does not take.
  else if (row.bad || !way.isByForm) await refuse(ask(row.role, bad), code, says)
  assert.equal(asked().length, count, way.name)
  const told = admin.history.page({ limit: 50 }).items.filter(({ id, type }) =>
    id > before && !/^(access|token)\./.test(type)
  )
  assert.deepEqual(told, [], way.name)
}

async function checkDone<A extends Subject> ({ way, row, admin, order, asked, ask }: Asking<A>): Promise<Outcome> {
  const { does, tells = [], answer, location } = row
  const { method, path } = order.route
  const [count, before] = [asked().length, admin.history.lastEventId()]
  const newest = (type: string[]) =>
    admin.history.page({ type, limit: 50 }).items.filter(({ id }) => id > before).reverse()
  const outcome = () => ({ did: plain(asked().slice(count)), told: tells.length > 0 ? newest(tells) : [] })
  const key = method === 'POST' && way === WAYS[0] ? { headers: { 'idempotency-key': 'once' } } : {}
  const said = await ask(row.role, key)
  assert.ok(said.isDone, `${way.name}: ${said.status} ${said.detail}`)
  row.after?.(admin)
  const { did, told } = outcome()
  assert.equal(asked().length - count, does ? 1 : 0, way.name)
  assert.partialDeepStrictEqual(did, does ? [does] : [], way.name)
  assert.deepEqual(told.map(({ type, actor }) => [type, plain(actor)]), tells.map((type) => [type, 'ada']), way.name)
  if (way.name === 'the API' || way.name === 'another host') {
    if (typeof answer === 'string') assert.ok(String(said.body).includes(answer), String(said.body))
    else assert.partialDeepStrictEqual(plain(said.body), answer ?? {}, way.name)
    assert.equal(plain(said.headers.location), location?.replace('{id}', Object(said.body).id))
  }
  if (method !== 'GET' && path.startsWith('/api/v1/')) {
    const sender = way.isFromAfar ? /^ada-\w+@web-1$/ : /^ada-\w+$/
    await until(() => newest(['access.used']).some(({ actor }) => sender.test(String(actor))), 'the record of the use')
  }
  if (key.headers) {
    const again = await ask(row.role, key)
    assert.deepEqual([again.body, again.headers['idempotency-replayed'], outcome()], [said.body, 'true', { did, told }])
  }
  return { said, did, told: plain(told.map(({ type, message, detail }) => [type, message, detail])) }
}

/** An agent is told less, and a form nothing but where it leads. */
function compare (first: Outcome, { said, did, told }: Outcome, { name, isByForm }: Way) {
  assert.deepEqual({ did, told }, { did: first.did, told: first.told }, name)
  if (isByForm) return
  const [body, whole] = [said, first.said].map((each) => withoutChance(plain(each.body)))
  if (name === 'an agent') assert.partialDeepStrictEqual(whole, body, name)
  else assert.deepEqual(body, whole, name)
}

/** A run has the number of an event, and the try of a delivery takes its time. */
function withoutChance (body: unknown) {
  const { hasTerminal, attempt } = Object(body)
  return { ...Object(body), ...(hasTerminal !== undefined && { id: 0 }), ...(attempt > 0 && { durationMs: 0 }) }
}

/** What somebody else has changed since is told, and counts once it was seen. */
async function checkLate<A extends Subject> ({ way, row, admin, ask }: Asking<A>) {
  const { read, by: [method, path, body], seen, why } = present(row.late)
  const bob = await admin.tokenFor('bob', 'admin')
  const { headers: { etag } } = await admin.api('get', `/api/v1${read}`).expect(200)
  const late = await ask(row.role, { tag: etag, seen: seen(admin),
    meanwhile: async () => await admin.stranger()[method](`/api/v1${path}`).set(bob.headers).send(body).expect(200) })
  assert.deepEqual([late.isDone, late.code], [false, 'precondition-failed'], way.name)
  assert.ok(late.detail?.startsWith(`${why}. If-Match: expected "`), late.detail)
  const now = seen(admin)
  if (way.isByForm) assert.deepEqual([late.status, late.change, late.now], [412, why, now])
  const { isDone, detail } = await ask(row.role, { tag: tagOf(now), seen: now })
  assert.ok(isDone, `${way.name}: ${detail}`)
}

/** The command that a dialog shows asks for the same. */
function checkCommand<A> (route: Route, row: Row<A>, isOfHost: boolean) {
  const order = { route, path: { id: 1, alert: '1', ...row.path }, query: {}, body: row.body }
  // What has lists has no dialog that shows a command.
  if (Object.values(row.body ?? {}).some(Array.isArray)) return
  const fields = { member: 'web-2', ...fieldsOf({ ...order, fields: row.fields }) }
  const { path, body = 'null' } = requestOf(order, '')
  for (const call of [callOf(route), ...(isOfHost ? [] : [onMember(callOf(route))])]) {
    const shown = requestOfCommand(call, fields)
    assert.deepEqual([plain(shown.path), Object.keys(shown.body ?? {}).length > 0 ? shown.body : null], [path,
      JSON.parse(body)])
  }
}

/** A stream has no end, and does not go to another host. */
async function checkStream<A extends Subject> (prepare: (way: Way) => Promise<Asking<A>>) {
  const [here, afar] = ['the API', 'another host'].map((name) => present(WAYS.find((way) => way.name === name)))
  const { admin, order } = await prepare(here)
  const { path, headers } = requestOf(order, await tokenAt(admin, 'viewer'))
  const stream = await fetch(admin.url + path, { headers })
  assert.deepEqual([stream.status, stream.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8'])
  await stream.body?.cancel()
  const { code, detail } = await (await prepare(afar)).ask('viewer', { headers: { accept: 'text/event-stream' } })
  assert.deepEqual([code, detail], ['not-possible',
    'A stream cannot be forwarded to another deck: request pages instead'])
}

function unknownName ({ route: { method } }: Order): NonNullable<Row['bad']> {
  return method === 'GET' || method === 'DELETE'
    ? { query: { surprise: '1' }, code: 'invalid-query', says: 'surprise: expected ' }
    : { body: { surprise: 1 }, code: 'invalid-body', says: 'surprise: expected ' }
}

/** ada has a token of each role at each door. */
const tokens: WeakMap<Door, Map<Role, Promise<{ token: string }>>> = new WeakMap()
async function tokenAt (door: Door, role: Role): Promise<string> {
  const known = tokens.get(door) ?? new Map()
  tokens.set(door, known)
  if (!known.has(role)) known.set(role, door.tokenFor(`ada-${role}`, role))
  return (await known.get(role)).token
}

/** @returns without what differs from sender to sender */
function plain<T> (value: T): T {
  const text = JSON.stringify(value,
    (key, each) => OF_SENDER.has(key) || (key === 'actor' && each === null) ? undefined : each)
  return text === undefined
    ? value
    : JSON.parse(MASKS.reduce((masked, [pattern, by]) => masked.replace(pattern, by), text))
}
