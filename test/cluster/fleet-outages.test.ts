import { Kvm, type KvEntry } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startFleet, startMember } from '../support/fleet.ts'
import { askAll, begin, checkHistories, statesOf, untilOver, untilTurn } from '../support/fleet-rollouts.ts'
import { startNats, startNatsCluster, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'

// NATS fails in the middle of a rollout, or a server of it.

const skip = withoutNats
const NAMES = ['web-1', 'web-2', 'web-3']

test('NATS is killed in a turn: the turn goes on, no other begins until it is back, and then all do', { skip },
  async (t) => {
    const nats = await startNats(t)
    const members = await startFleet(t, NAMES, { servers: nats.url })
    const served = await askAll(t, members)
    members[0].hold()
    await begin(members[0])
    await untilTurn(members[0], 'web-1', 'running')
    await nats.kill()
    members[0].letGo()
    await members[0].untilStatus(({ rollout }) => rollout === null || rollout.done, 'its own rollout to end')
    const alone = await members[1].fleet()
    assert.equal(alone.nats.isConnected, false)
    assert.equal(alone.rollout.turns['web-1'].state, 'running', 'as it was last seen')
    assert.match((await members[2].api('/fleet/rollout/pause', { method: 'POST' })).body.detail ?? '', /out of reach/)
    assert.deepEqual((await members[1].api('/rollouts')).body.items, [])
    assert.equal((await members[1].api('/rollouts', { method: 'POST', body: '{"kind":"restart"}' })).status, 202,
      'local work goes on')
    await members[1].untilEvent(({ type }) => type === 'rollout.succeeded', 'its end')
    await nats.start()
    const rollout = await untilOver(members[2])
    assert.equal(rollout.state, 'succeeded', rollout.reason)
    await checkHistories(members)
    await served()
    assert.deepEqual((await members[0].history('type=fleet.away,fleet.connected')).map(({ type }) => type), [
      'fleet.connected',
      'fleet.away',
      'fleet.connected'
    ])
  })

test('the disk of NATS is wiped in a turn: nobody goes on with what it forgot, and a person can begin anew', {
  skip: skip || rareOnly
}, async (t) => {
  const nats = await startNats(t)
  const members = await startFleet(t, NAMES, { servers: nats.url })
  const served = await askAll(t, members)
  members[1].hold()
  const waiting = runCliHere(['fleet', 'deploy', '--wait', '--data-dir', members[0].dataDir])
  const { id } = await untilTurn(members[1], 'web-2', 'running')
  await nats.wipe()
  members[1].letGo()
  await members[1].untilEvent(({ type }) => type === 'rollout.succeeded', 'the end of its own rollout')
  await members[2].untilFleet(
    ({ nats, members: seen }: Fleet) =>
      nats.isConnected && seen.length === 3 && seen.every((each) => each.turnOf === null),
    'the fleet to be there again'
  )
  const { code, stderr } = await waiting
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`rollout ${id} of the fleet is lost: NATS no longer has it`))
  assert.deepEqual((await members[2].api('/rollouts')).body.items, [])
  await checkHistories(members)

  const next = await begin(members[2], { kind: 'restart' })
  assert.ok(next.id > id, 'a number that nobody has seen')
  const rollout = await untilOver(members[0])
  assert.deepEqual([rollout.id, rollout.state], [next.id, 'succeeded'])
  await served()
})

test(
  'a NATS server that is back from a backup of before a rollout: nobody is sent on or back beside who is in its turn there',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [one, two] = await startFleet(t, ['web-1', 'web-2'], { servers: nats.url,
      flags: ['--releases-mode', 'folder'] })
    const connection = await connect({ servers: nats.url })
    t.after(() => connection.close())
    const state = await new Kvm(connection).open('clusterdeck_test_state')
    await begin(one, { pauseMs: 60_000 })
    await untilTurn(one, 'web-1', 'succeeded')
    await one.api('/fleet/rollout/pause', { method: 'POST' })
    const backup = (await state.get('rollout.shop') as KvEntry).value
    await one.api('/fleet/rollout/abort', { method: 'POST' })
    assert.equal((await untilOver(two)).state, 'rolled-back')
    one.hold()
    await begin(one)
    await two.untilFleet(
      ({ rollout, members }) => rollout.turns['web-1'].state === 'running' && members[0].turnOf === rollout.uid,
      'the first turn'
    )
    await state.put('rollout.shop', backup)
    for (const order of ['resume', 'abort'] as const) {
      const { status, body } = await two.api(`/fleet/rollout/${order}`, { method: 'POST' })
      assert.deepEqual([status, body.detail], [409, 'Still in a turn of a rollout that NATS has lost: web-1'])
    }
    assert.equal((await two.api('/rollouts')).body.items.length, 0)
    one.letGo()
  }
)

test(
  'one of three servers is cut off with the member that knows no other: the others go on up to its turn, and it takes that when it is back',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNatsCluster(t)
    const members = await Promise.all(NAMES.map((name, index) => startMember(t, { name, servers: nats.urls[index] })))
    for (const member of members) await member.untilFleet(({ members: seen }) => seen.length === 3, 'three members')
    const served = await askAll(t, members)
    members[0].hold()
    await begin(members[0])
    await untilTurn(members[0], 'web-1', 'running')
    nats.cut(2)
    members[0].letGo()
    await untilTurn(members[1], 'web-2', 'succeeded')
    const { body, status } = await members[2].api('/fleet/rollout/abort', { method: 'POST' })
    assert.equal(status, 503, JSON.stringify(body))
    assert.deepEqual((await members[2].api('/rollouts')).body.items, [], 'who is cut off begins nothing')
    nats.mend(2)
    const rollout = await untilOver(members[1])
    assert.equal(rollout.state, 'succeeded', rollout.reason)
    await checkHistories(members)
    await served()
  }
)

test(
  'of three servers the one that leads the rollout, and then the one that leads the history, are killed in turns: the others go on, and nothing is lost',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNatsCluster(t)
    const members = await startFleet(t, NAMES, { servers: nats.urls.join(',') })
    const served = await askAll(t, members)
    const streams = ['KV_clusterdeck_test_state', 'clusterdeck_test_events']
    for (const member of members) member.hold()
    await begin(members[0])
    for (const [index, stream] of streams.entries()) {
      await untilTurn(members[2], NAMES[index], 'running')
      const leader = await nats.leaderOf(stream)
      await leader.kill()
      members[index].letGo()
      await untilTurn(members[2], NAMES[index], 'succeeded')
      await leader.start()
      for (const each of streams) await nats.untilWhole(each)
    }
    members[2].letGo()
    const rollout = await untilOver(members[1])
    assert.deepEqual([rollout.state, rollout.reason, statesOf(rollout)], ['succeeded', null, ['web-1 succeeded',
      'web-2 succeeded', 'web-3 succeeded']])
    await checkHistories(members)
    await served()
    let items: { member: string }[] = []
    await until(async () => {
      // While its servers agree on a leader there may be no answer.
      items = (await members[0].api('/events?member=*&type=rollout.succeeded')).body.items ?? []
      return items.length === 3
    }, 'the history of all')
    assert.deepEqual(items.map(({ member }) => member).sort(), NAMES)
  }
)
