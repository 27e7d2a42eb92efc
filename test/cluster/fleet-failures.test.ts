import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { attempt } from '../../server/errors.ts'
import { FIXTURES, type Deck } from '../support/deck.ts'
import { startFleet, startMember, type Member } from '../support/fleet.ts'
import { askAll, begin, checkHistories, statesOf, untilOver, untilTurn } from '../support/fleet-rollouts.ts'
import { tempFolder } from '../support/folder.ts'
import { createLink, startNats, withoutNats } from '../support/nats.ts'
import { present } from '../support/present.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'

// A host fails in the middle of a rollout, or its clock, or the way to it.

const skip = withoutNats
/** Each way. With 5000 it takes two minutes. */
const DELAY_MS = Number(process.env.FLEET_DELAY_MS ?? 1000)

test(
  'who has stopped for good in its turn is given up by the abort of what was held, and keeps nobody from the next one',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const link = await createLink(t, { to: nats.port })
    const options = { servers: nats.url, flags: ['--releases-mode', 'folder'] }
    const [[first, second], gone] = await Promise.all([startFleet(t, ['web-1', 'web-2'], options),
      startMember(t, { ...options, name: 'web-3', servers: link.url })])
    await first.untilFleet(({ members }) => members.length === 3, 'three members')
    gone.hold()
    await begin(first, { deadlineMs: 4000 })
    await untilTurn(first, 'web-3', 'running')
    link.cut()
    await gone.stop()
    const held = await untilOver(second)
    assert.deepEqual([held.state, statesOf(held)], ['held', ['web-1 succeeded', 'web-2 succeeded', 'web-3 running']])
    // As after 7 days.
    await nats.purge('KV_clusterdeck_test_members', '$KV.clusterdeck_test_members.web-3')
    await nats.kill('SIGTERM')
    await nats.start()
    for (const member of [first, second])
      await member.untilFleet(({ nats, members }) => nats.isConnected && members.length === 2,
        'the third one to be forgotten')
    assert.equal((await first.api('/fleet/rollout/abort', { method: 'POST' })).status, 200)
    assert.deepEqual((await first.untilHistory('type=fleet.rollout-aborted', 1)).map(({ actor }) => actor), [
      'the owner\'s token'
    ])
    const { rollout } = await second.untilFleet(({ rollout: seen }) => seen.state === 'rolled-back', 'all to be back')
    assert.deepEqual(statesOf(rollout), ['web-1 reverted', 'web-2 reverted', 'web-3 failed'])
    assert.match(rollout.turns['web-3'].reason, /given up by .*: it did not answer/)
    await begin(second, { kind: 'restart' })
    assert.equal((await untilOver(first)).state, 'succeeded')
  }
)

test(
  'a member is killed in its turn, its keeper too: its turn is never taken over, and it says itself what became of it',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const root = tempFolder()
    const [others, killed] = await Promise.all([startFleet(t, ['web-2', 'web-3'], { servers: nats.url }),
      startMember(t, { name: 'web-1', servers: nats.url, isApart: true, root })])
    const served = await askAll(t, others)
    await others[0].untilFleet(({ members: seen }) => seen.length === 3, 'three members')
    killed.hold()
    await begin(others[0], { deadlineMs: 4000 })
    await untilTurn(others[0], 'web-1', 'running')
    const pid = present((killed as Deck).child.pid)
    const { workers } = await killed.untilStatus(({ rollout }) => rollout !== null, 'its own rollout')
    for (const each of [pid, killed.masterPid, ...workers.map((worker) => present(worker.pid))])
      process.kill(each, 'SIGKILL')
    const held = await untilOver(others[1])
    assert.equal(held.state, 'held')
    assert.match(held.reason, /web-1 has not finished its turn within 4\.0 s/)
    assert.deepEqual(statesOf(held), ['web-1 running', 'web-2 pending', 'web-3 pending'])

    killed.letGo()
    const back = await startMember(t, { name: 'web-1', servers: nats.url, isApart: true, root })
    const told = await untilTurn(others[1], 'web-1', 'failed')
    assert.equal(told.turns['web-1'].reason, 'its master ended')
    assert.equal(told.state, 'held', 'a person decides')
    assert.equal((await others[1].api('/fleet/rollout/resume', { method: 'POST' })).status, 200)
    const rollout = await untilOver(others[0])
    assert.deepEqual([rollout.state, statesOf(rollout)], ['failed', ['web-1 failed', 'web-2 succeeded',
      'web-3 succeeded']])
    await checkHistories([back, ...others])
    await served()
    assert.equal(await back.version(), 'v1')
  }
)

test(
  'a member is stopped for longer than its deadline and then goes on: its late result is told, and nothing else begins by it',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [others, stopped] = await Promise.all([startFleet(t, ['web-2', 'web-3'], { servers: nats.url }),
      startMember(t, { name: 'web-1', servers: nats.url, isApart: true })])
    await others[0].untilFleet(({ members: seen }) => seen.length === 3, 'three members')
    stopped.hold()
    await begin(others[0], { deadlineMs: 3000 })
    await untilTurn(others[0], 'web-1', 'running')
    const pid = present((stopped as Deck).child.pid)
    for (const each of [pid, stopped.masterPid]) process.kill(each, 'SIGSTOP')
    t.after(() => {
      for (const each of [pid, stopped.masterPid])
        attempt(() => process.kill(each, 'SIGCONT'))
    })
    const held = await untilOver(others[1])
    assert.deepEqual([held.state, statesOf(held)], ['held', ['web-1 running', 'web-2 pending', 'web-3 pending']])
    stopped.letGo()
    for (const each of [pid, stopped.masterPid]) process.kill(each, 'SIGCONT')
    const told = await untilTurn(others[1], 'web-1', 'succeeded')
    assert.deepEqual([told.state, told.turns['web-1'].isLate], ['held', true])
    assert.match(String(told.timeline.at(-1)?.message), /late/)
    assert.deepEqual(statesOf(told).slice(1), ['web-2 pending', 'web-3 pending'])
    await checkHistories([stopped, ...others])
  }
)

test(
  'clocks of members that are hours apart, and messages that take a second, change nothing but the time that it takes',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const slow = await createLink(t, { to: nats.port })
    const clock = path.join(tempFolder(), 'clock')
    writeFileSync(clock, String(-5 * 60 * 60_000))
    const members = await Promise.all([startMember(t, { name: 'web-1', servers: nats.url }),
      startMember(t, { name: 'web-2', servers: slow.url }),
      startMember(t, { name: 'web-3', servers: nats.url, isApart: true, env: { CLOCK: clock },
        launch: { execArgv: ['--require', `${FIXTURES}sets-its-clock.cjs`] } })])
    for (const member of members)
      await member.untilFleet(({ members: seen }: Fleet) => seen.filter((each) => !each.isSilent).length === 3,
        'three members')
    slow.slow(DELAY_MS)
    await begin(members[2], { pauseMs: 500 })
    const rollout = await untilOver(members[0])
    assert.equal(rollout.state, 'succeeded', rollout.reason)
    await checkHistories(members.slice(0, 2))
    assert.equal((await members[2].api('/rollouts')).body.items.length, 1)
    await until(async () => (await members[1].fleet()).rollout?.state === 'succeeded', 'the slow one to hear of it')
  }
)

test(
  'a host that dies is told as silent once in each history and once in that of the fleet, and so is its return; one that stops is not; one that is forgotten leaves the list until it reports again',
  { skip: skip || rareOnly, timeout: 300_000 },
  async (t) => {
    const nats = await startNats(t)
    const [root, rootOfGone] = [tempFolder(), tempFolder()]
    const startApart = (name: string, folder: string) =>
      startMember(t, { name, servers: nats.url, isApart: true, root: folder })
    const [[first, second, leaving], ...dying] = await Promise.all([
      startFleet(t, ['web-1', 'web-2', 'web-4'], { servers: nats.url }),
      startApart('web-3', root),
      startApart('web-5', rootOfGone)
    ])
    await first.untilFleet(({ members }) => members.length === 5, 'five members')
    const forget = async (name: string) => (await first.api(`/fleet/members/${name}`, { method: 'DELETE' })).status
    assert.deepEqual([await forget('web-5'), await forget('web-1'), await forget('nobody')], [409, 409, 404])
    for (const member of dying) {
      const pid = present((member as Deck).child.pid)
      const { workers } = await member.untilStatus(({ readyWorkers }) => readyWorkers === 1, 'it to serve')
      for (const each of [pid, member.masterPid, ...workers.map((worker) => present(worker.pid))]) process.kill(each,
          'SIGKILL')
    }
    await leaving.stop()
    const tellers = [first, second]
    const told = (member: Member) => member.history('type=fleet.host-silent,fleet.host-back,fleet.host-left')
    const untilTold = (count: number) =>
      until(async () => (await Promise.all(tellers.map(told))).every((events) => events.length === count),
        `${count} events each`, { patienceMs: 120_000, everyMs: 500 })
    await untilTold(2)
    const event = (await told(second)).find(({ message }) => message?.startsWith('web-3'))
    assert.match(String(event?.message),
      /^web-3 is silent: no report for \d\d s\. When last heard, it ran shop r1 \(1 of 1 worker ready\)$/)
    assert.equal(await forget('web-5'), 200)
    await untilTold(3)
    assert.equal((await told(second))[0].message, 'web-5 is no longer in the fleet')
    assert.match(String((await first.history('type=fleet.host-forgotten'))[0].message),
      /^web-5 was forgotten, after .* of silence$/)
    await startMember(t, { name: 'web-3', servers: nats.url, root })
    await untilTold(4)
    assert.match(String((await told(first))[0].message), /^web-3 is back after .*; clusterdeck was restarted there$/)
    const { body } = await first.api('/events?member=*&type=fleet.host-silent,fleet.host-back')
    assert.deepEqual(body.items.map(({ member, type }) => [member, type]), [['web-1', 'fleet.host-back'], ['web-1',
      'fleet.host-silent'], ['web-1', 'fleet.host-silent']])
    await startMember(t, { name: 'web-5', servers: nats.url, root: rootOfGone })
    await first.untilFleet(
      ({ members }: Fleet) => members.some(({ member, isSilent }) => member === 'web-5' && !isSilent),
      'the forgotten one to be back'
    )
  }
)
