import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMember, type Member } from '../support/fleet.ts'
import { begin } from '../support/fleet-rollouts.ts'
import { openFreshConnections } from '../support/load.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import type { Fleet, FleetRollout } from '../../server/fleet/api-answers.ts'

const skip = withoutNats

async function ended (member: Member, id: number, state: string): Promise<FleetRollout> {
  const { rollout } = await member.untilFleet(
    ({ rollout: seen }) => seen?.id === id && ['succeeded', 'failed', 'held', 'rolled-back'].includes(seen.state),
    'the end of the rollout'
  )
  assert.equal(rollout.state, state, rollout.reason)
  return rollout
}

test(
  'a deploy goes over the decks of one app, one after the other, and no request fails; those of other apps are left alone',
  { skip },
  async (t) => {
    const nats = await startNats(t)
    const [one, two] = [{ servers: nats.url, labels: { host: 'one' } }, { servers: nats.url, labels: { host: 'two' } }]
    const members = await Promise.all([startMember(t, { ...one, name: 'one-shop', app: 'shop', workers: 2 }),
      startMember(t, { ...one, name: 'one-blog', app: 'blog' }),
      startMember(t, { ...two, name: 'two-shop', app: 'shop', workers: 2 }),
      startMember(t, { ...two, name: 'two-mail', app: 'mail' }),
      startMember(t, { servers: nats.url, labels: { host: 'three' }, name: 'three-shop', app: 'shop' })])
    const [first] = members
    for (const [member, count] of [[first, 3], [members[1], 1], [members[3], 1]] as const) {
      await member.untilFleet(({ nats: { isConnected }, members: seen }: Fleet) =>
        isConnected && seen.filter((each) => !each.isSilent).length === count, `${count} members`)
    }
    const traffics = await Promise.all(members.map(async (member) =>
      openFreshConnections(t, await member.appUrl(), { perSecond: 10 })
    ))
    for (const member of members)
      member.put('v2')

    const { id } = await begin(first, { order: 'host' })
    const rollout = await ended(members[2], id, 'succeeded')

    const results = await Promise.all(traffics.map((traffic) =>
      traffic.stop()
    ))
    assert.deepEqual(results.flatMap(({ failures }) => failures), [])
    assert.ok(results.every(({ total }) => total > 10), 'each was asked while it deployed')
    assert.deepEqual(await Promise.all(members.map((member) => member.version())), ['v2', 'v1', 'v2', 'v1', 'v2'])
    assert.deepEqual(rollout.batches, [['one-shop'], ['three-shop'], ['two-shop']])
    assert.deepEqual(rollout.timeline.map(({ type, member }) => `${type} ${member ?? ''}`.trim()), ['started',
      ...rollout.batches.flat().flatMap((name) => [`turn-started ${name}`, `turn-succeeded ${name}`]), 'succeeded'])
  }
)

test('a deck whose master is upgraded stays the same member, and takes its turn', { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [upgraded, other] = await Promise.all([startMember(t, { name: 'web-1', servers: nats.url, isApart: true }),
      startMember(t, { name: 'web-2', servers: nats.url })])
    const { members: [{ boot }] } = await other.untilFleet(({ members }) => members.length === 2, 'two members')
    assert.equal((await upgraded.api('/upgrade', { method: 'POST', body: '{}' })).status, 202)
    await upgraded.meetNext()
    await upgraded.untilStatus(({ readyWorkers, upgrade }) => readyWorkers === 1 && upgrade === null, 'the next master')
    const { problem } = await upgraded.untilFleet(({ nats }) => nats.isConnected, 'NATS')
    assert.equal(problem, null)
    await other.untilFleet(({ members }) => members.length === 2 && members[0].boot !== boot && !members[0].isSilent,
      'the next master to be seen')
    for (const member of [upgraded, other]) member.put('v2')
    const { id } = await begin(other)
    await ended(other, id, 'succeeded')
    assert.deepEqual([await upgraded.version(), await other.version()], ['v2', 'v2'])
  })
