import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { openHistory } from '../../db/history.ts'
import { createNatsConnection } from '../../server/fleet/nats-connection.ts'
import { createFeed, type Page, type Wanted } from '../../server/fleet/feed.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startMember, type Member } from '../support/fleet.ts'
import { openStream, recordedIn, type Stored } from '../support/fleet-events.ts'
import { createLink, startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import type { Deck } from '../support/deck.ts'

const skip = withoutNats

/** @returns of its own history, oldest first */
async function ownIds (member: Member): Promise<number[]> {
  return (await member.history('limit=1000')).map(({ id }) => id).reverse()
}

function idsOf (stored: Stored[], member: string) {
  return stored.filter((each) => each.member === member).map(({ id }) => id)
}

async function makeEvents (member: Member, count: number) {
  for (let n = 0; n < count; n++)
    assert.equal((await member.api('/messages', { method: 'POST', body: JSON.stringify({ type: 'hello' }) })).status,
      202)
}

test(
  'what happens while NATS is away is in the stream afterwards, once and in order, and a member that is gone has had its last words',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [one, two] = await Promise.all(['one', 'two'].map((name) => startMember(t, { name, servers: nats.url })))
    const stream = await openStream(t, nats)
    await stream.until((stored) => stored.some(({ member, type }) => member === 'one' && type === 'worker.ready'),
      'the start of a member')

    await nats.kill()
    await one.untilFleet(({ nats: connection }) => !connection.isConnected, 'NATS to be missed')
    await makeEvents(one, 20)
    await nats.start()
    await one.untilFleet(({ nats: connection, outbox }) => connection.isConnected && outbox.waiting === 0, 'NATS')
    await one.stop()

    const stored = await stream.until(
      (all) => all.some(({ member, type }) => member === 'one' && type === 'master.stopped'),
      'the last words'
    )
    const history = openHistory({ file: path.join(one.dataDir, 'history.db') })
    t.after(() => history.close())
    assert.deepEqual(idsOf(stored, 'one'), recordedIn(history).map(({ id }) => id))
    assert.equal(stored.filter(({ member, type }) => member === 'one' && type === 'message.sent').length, 20)
    await two.untilFleet(({ nats: connection }) => connection.isConnected, 'NATS')
    const { body: told } = await two.api('/events?member=one&limit=1')
    assert.deepEqual(told.items.map(({ member, type }) => [member, type]), [['one', 'master.stopped']])
    const { stdout } = await runCliHere(['history', '--all-hosts', '--member', 'one', '--type',
      'master.started,master.stopped', '--url', two.adminUrl, '--token', two.token])
    assert.match(stdout, /^TIME +MEMBER +TYPE.*\n\S+ +one +master\.stopped .*\n\S+ +one +master\.started /)
    const late = await runCliHere(['history', '--all-hosts', '--member', 'one', '--type', 'message.sent', '--url',
      two.adminUrl, '--token', two.token])
    const times = recordedIn(history).filter(({ type }) => type === 'message.sent').map(({ at }) => at)
    assert.deepEqual(late.stdout.trim().split('\n').slice(1).map((line) => line.split(' ')[0]), times.reverse(),
      'when it happened, not when it came')
    const page =
      await (await fetch(`${two.adminUrl}/history?member=one`, { headers: { authorization: `Bearer ${two.token}` } }))
        .text()
    assert.match(page, /<bdi>one<\/bdi>[^]*Master stopped/)
    await two.untilFleet(({ outbox }) => outbox.waiting === 0, 'the other member')
    assert.deepEqual(idsOf(await stream.all(), 'two'), await ownIds(two))
  }
)

test('a master that is killed while its events go out loses none and tells none twice', { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const link = await createLink(t, { to: nats.port })
    const member = await startMember(t, { name: 'one', servers: link.url, isApart: true }) as Member & Deck
    const stream = await openStream(t, nats)
    await stream.until((stored) => stored.some(({ type }) => type === 'worker.ready'), 'the start')

    link.slow(10)
    await makeEvents(member, 60)
    const before = await stream.all()
    await member.loseMaster()
    link.slow(0)
    await member.untilFleet(({ outbox }) => outbox.waiting === 0, 'all to be told')

    const stored = await stream.all()
    assert.deepEqual(idsOf(stored, 'one'), await ownIds(member))
    const late = stored.filter(({ id, type }) => type === 'message.sent' && id > before[before.length - 1].id)
    t.diagnostic(`${late.length} of 60 messages were not told yet when the master was killed`)
    assert.ok(late.length > 0, 'it was killed in the middle')
  })

test('each page of what the fleet has told is what it asks for, newest first, and no message of strangers is among it',
  { skip }, async (t) => {
  const nats = await startNats(t)
  const connection = createNatsConnection({ options: { servers: [nats.url], name: 'test', tls: {} }, member: 'one' })
  t.after(() => connection.close())
  const connected = new Promise((resolve) => connection.use(async () => resolve(undefined)))
  connection.start()
  await connected
  const stream = await openStream(t, nats)
  const all: Parameters<typeof messageOf>[0][] = []
  for (let n = 1; n <= 1500; n++) {
    const member = n % 100 === 0 ? 'rare' : `m${n % 3}`
    const [type, cause] = n % 7 === 0 ? ['worker.exited', n % 2 ? 'crash' : 'deploy'] : ['worker.ready', null]
    all.push({ member, type, cause, id: n })
    await stream.put(`${member}.event.shop.abc.${type}`, JSON.stringify(messageOf({ member, id: n, type, cause })))
    if (n % 250 === 0) await putNonsense(stream)
  }
  const feed = createFeed({ nats: connection })
  all.reverse()

  for (const [wanted, isMeant] of [[{ limit: 200 }, () => true], [{ limit: 7, member: 'rare' },
    ({ member }) => member === 'rare'], [{ limit: 100, member: 'm1' }, ({ member }) => member === 'm1'], [{ limit: 60,
    types: ['worker.exited:crash'] }, ({ cause }) => cause === 'crash'], [{ limit: 200, types: ['worker.*'] },
    () => true], [{ limit: 50, member: 'rare', types: ['worker.exited'] },
    ({ member, type }) => member === 'rare' && type === 'worker.exited'], [{ limit: 50, member: 'm2',
    types: ['master.started', 'worker.exited:deploy'] }, ({ member, cause }) => member === 'm2' && cause === 'deploy'],
    [{ limit: 50, member: 'nobody' }, () => false], [{ limit: 200, app: 'shop', types: ['worker.exited'] },
    ({ type }) => type === 'worker.exited'], [{ limit: 50, app: 'mail' }, () => false], [{ limit: 100, q: 'EXIT',
    member: 'm1' }, ({ type, member }) => type === 'worker.exited' && member === 'm1'], [{ limit: 100,
    cause: 'deploy' }, ({ cause }) => cause === 'deploy']] as [Wanted,
      (each: Parameters<typeof messageOf>[0]) => boolean][])
  {
    const found = await readAll(feed, wanted)
    assert.deepEqual(found.map(({ event: { id } }) => id), all.filter(isMeant).map(({ id }) => id),
      JSON.stringify(wanted))
  }

  const whole = await readAll(feed, { limit: 200 })
  const timeOf = ({ at }: { at: string }) => Date.parse(at)
  const [until, since] = [300, 900].map((index) => timeOf(whole[index]))
  for (const limit of [50, 200]) {
    assert.deepEqual(await readAll(feed, { limit, since, until }), whole.filter((item) =>
      timeOf(item) >= since && timeOf(item) < until
    ))
  }
  assert.deepEqual(await readAll(feed, { limit: 50, since: timeOf(whole[0]) + 1 }), [])
  assert.deepEqual(await readAll(feed, { limit: 50, until: timeOf(whole.slice(-1)[0]) }), [])
})

async function readAll (feed: ReturnType<typeof createFeed>, wanted: Wanted) {
  const found = []
  for (let before: Page['next'] = null;;) {
    const page = await feed.read({ ...wanted, before })
    assert.equal(page.is, 'done', JSON.stringify(page))
    const { items, next } = (page as { value: Page }).value
    assert.ok(items.length <= wanted.limit)
    found.push(...items)
    if (next === null) return found
    before = next
  }
}

function messageOf ({ member, id, type, cause }: { member: string, id: number, type: string, cause: string | null }) {
  const nothing = { slot: null, worker: null, pid: null, release: null, rollout: null, actor: null, code: null,
    signal: null, uptimeMs: null, message: null, detail: null }
  return { source: 'abc', member, app: 'shop', host: 'here',
    event: { id, at: '2026-01-01T00:00:00.000Z', type, cause, ...nothing } }
}

async function putNonsense (stream: Awaited<ReturnType<typeof openStream>>) {
  const good = messageOf({ member: 'm1', id: 1, type: 'worker.exited', cause: 'crash' })
  for (const [subject, data] of [['m1.event.shop.abc.worker.exited', 'no JSON'], ['m1.event.shop.abc.worker.exited',
    'null'], ['m1.event.shop.abc.worker.exited', JSON.stringify({ ...good, member: 'm2' })], [
    'm1.event.shop.abc.worker.ready',
    JSON.stringify(good)
  ], ['m1.event.shop.abd.worker.exited', JSON.stringify(good)], ['m1.event.mail.abc.worker.exited',
    JSON.stringify(good)], ['m1.event.shop.abc.worker.exited',
    JSON.stringify({ ...good, event: { ...good.event, at: 'yesterday' } })], ['m1.event.shop.abc.worker.exited',
    JSON.stringify({ ...good, event: { ...good.event, message: 'x'.repeat(2001) } })], [
    'm1.event.shop.abc.worker.exited',
    JSON.stringify({ ...good, event: { ...good.event, slot: '1' } })
  ], ['m1.event.x', JSON.stringify(good)]]) await stream.put(subject, data)
}
