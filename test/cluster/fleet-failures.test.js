import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.js'
import { FIXTURES } from '../support/deck.js'
import { startFleet, startMember } from '../support/fleet.js'
import { tempFolder } from '../support/folder.js'
import { hammer } from '../support/load.js'
import { createLink, startNats, startNatsCluster, withoutNats } from '../support/nats.js'
import { until } from '../support/until.js'

/** @typedef {import('../support/fleet.js').Member} Member */

const skip = withoutNats
/** Time for a failure within a turn. */
const SLOW = ['--rollout-min-ready-ms', '1500']
const NAMES = ['web-1', 'web-2', 'web-3']
/** Each way. With 5000 it takes two minutes. */
const DELAY_MS = Number(process.env.FLEET_DELAY_MS ?? 1000)
const OVER = ['succeeded', 'failed', 'halted', 'rolled-back']

/** @param {Member} member @param {object} [wanted] @returns {Promise<any>} */
async function begin (member, wanted = {}) {
  const { status, body } = await member.api('/fleet/rollout', { method: 'POST', body: JSON.stringify({ kind: 'deploy', ...wanted }) })
  assert.equal(status, 202, JSON.stringify(body))
  return body
}

/** @param {Member} member @param {string} name @param {string} state */
async function untilTurn (member, name, state) {
  const { rollout } = await member.untilFleet(({ rollout: seen }) => seen?.turns[name].state === state, `the turn of ${name} to be ${state}`)
  return rollout
}

/** @param {Member} member */
async function untilOver (member) {
  const { rollout } = await member.untilFleet(({ rollout: seen, engine }) => engine.isConnected && seen && OVER.includes(seen.state), 'the rollout to be over')
  return rollout
}

/** @param {any} rollout @returns {string[]} */
function statesOf ({ turns }) {
  return Object.entries(turns).map(([name, { state }]) => `${name} ${state}`)
}

/**
 * Whatever happened: nobody has deployed twice, and nobody beside another one. All machines here have one clock, so that what
 * each has done is in order.
 * @param {Member[]} members
 */
async function checkHistories (members) {
  const own = await Promise.all(members.map(async (member) => (await member.api('/rollouts')).body.items.filter((/** @type {any} */ { note }) => /of the fleet/.test(note)).map((/** @type {any} */ each) => ({ name: member.name, ...each }))))
  const deploys = own.flat().filter(({ kind }) => kind === 'deploy')
  assert.deepEqual(deploys.map(({ name }) => name).sort(), [...new Set(deploys.map(({ name }) => name))].sort(), 'no host deploys twice')
  const inOrder = own.flat().map(({ name, startedAt, finishedAt }) => ({ name, from: Date.parse(startedAt), to: Date.parse(finishedAt ?? startedAt) })).sort((one, other) => one.from - other.from)
  for (const [index, { name, from }] of inOrder.entries()) assert.ok(index === 0 || from >= inOrder[index - 1].to, `${name} began beside ${inOrder[index - 1]?.name}`)
}

/** @param {import('node:test').TestContext} t @param {Member[]} members */
async function askAll (t, members) {
  const loads = await Promise.all(members.map(async (member) => hammer(t, await member.appUrl(), { connections: 2 })))
  return async () => assert.deepEqual((await Promise.all(loads.map((load) => load.stop()))).flatMap(({ failures }) => failures), [], 'every app serves')
}

test('the engine is killed in a turn: the turn goes on, no other begins until it is back, and then all do', { skip }, async (t) => {
  const nats = await startNats(t)
  const members = await startFleet(t, NAMES, { servers: nats.url, flags: SLOW })
  const served = await askAll(t, members)
  await begin(members[0])
  await untilTurn(members[0], 'web-1', 'running')
  await nats.kill()
  await members[0].untilStatus(({ rollout }) => rollout === null || rollout.done, 'its own rollout to end')
  const alone = await members[1].fleet()
  assert.equal(alone.engine.isConnected, false)
  assert.equal(alone.rollout.turns['web-1'].state, 'running', 'as it was last seen')
  assert.match((await members[2].api('/fleet/rollout/pause', { method: 'POST' })).body.detail, /out of reach/)
  assert.deepEqual((await members[1].api('/rollouts')).body.items, [])
  assert.equal((await members[1].api('/rollouts', { method: 'POST', body: '{"kind":"restart"}' })).status, 202, 'local work goes on')
  await members[1].untilEvent(({ type }) => type === 'rollout.succeeded', 'its end')
  await nats.start()
  const rollout = await untilOver(members[2])
  assert.equal(rollout.state, 'succeeded', rollout.reason)
  await checkHistories(members)
  await served()
  assert.deepEqual((await members[0].history('type=fleet.away,fleet.connected')).map(({ type }) => type), ['fleet.connected', 'fleet.away', 'fleet.connected'])
})

test('the disk of the engine is wiped in a turn: nobody goes on with what it forgot, and a person can begin anew', { skip }, async (t) => {
  const nats = await startNats(t)
  const members = await startFleet(t, NAMES, { servers: nats.url, flags: SLOW })
  const served = await askAll(t, members)
  const waiting = runCliHere(['fleet', 'deploy', '--wait', '--data-dir', members[0].dataDir])
  const { id } = await untilTurn(members[1], 'web-2', 'running')
  await nats.wipe()
  await members[1].untilEvent(({ type }) => type === 'rollout.succeeded', 'the end of its own rollout')
  await members[2].untilFleet(({ engine, members: seen }) => engine.isConnected && seen.length === 3 && seen.every((/** @type {any} */ each) => each.turnOf === null), 'the fleet to be there again')
  const { code, stderr } = await waiting
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`rollout ${id} of the fleet is lost: the engine knows it no more`))
  assert.deepEqual((await members[2].api('/rollouts')).body.items, [])
  await checkHistories(members)

  const next = await begin(members[2], { kind: 'restart' })
  assert.ok(next.id > id, 'a number that nobody has seen')
  const rollout = await untilOver(members[0])
  assert.deepEqual([rollout.id, rollout.state], [next.id, 'succeeded'])
  await served()
})

test('one of three servers is cut off with the member that knows no other: the others go on up to its turn, and it takes that when it is back', { skip }, async (t) => {
  const nats = await startNatsCluster(t)
  const members = await Promise.all(NAMES.map((name, index) => startMember(t, { name, servers: nats.urls[index], flags: SLOW })))
  for (const member of members) await member.untilFleet(({ members: seen }) => seen.length === 3, 'three members')
  const served = await askAll(t, members)
  await begin(members[0])
  await untilTurn(members[0], 'web-1', 'running')
  nats.cut(2)
  await untilTurn(members[1], 'web-2', 'succeeded')
  const { body, status } = await members[2].api('/fleet/rollout/abort', { method: 'POST' })
  assert.equal(status, 503, JSON.stringify(body))
  assert.deepEqual((await members[2].api('/rollouts')).body.items, [], 'who is cut off begins nothing')
  nats.mend(2)
  const rollout = await untilOver(members[1])
  assert.equal(rollout.state, 'succeeded', rollout.reason)
  await checkHistories(members)
  await served()
})

test('of three servers the one that leads the rollout, and then the one that leads the history, are killed in turns: the others go on, and nothing is lost', { skip }, async (t) => {
  const nats = await startNatsCluster(t)
  const members = await startFleet(t, NAMES, { servers: nats.urls.join(','), flags: SLOW })
  const served = await askAll(t, members)
  // Time for the one that was killed to be back.
  await begin(members[0], { pauseMs: 4000 })
  for (const [index, stream] of ['KV_clusterdeck_test_state', 'clusterdeck_test_events'].entries()) {
    await untilTurn(members[2], NAMES[index], 'running')
    const leader = await nats.leaderOf(stream)
    await leader.kill()
    await untilTurn(members[2], NAMES[index], 'succeeded')
    await leader.start()
  }
  const rollout = await untilOver(members[1])
  assert.deepEqual([rollout.state, rollout.reason, statesOf(rollout)], ['succeeded', null, ['web-1 succeeded', 'web-2 succeeded', 'web-3 succeeded']])
  await checkHistories(members)
  await served()
  await until(async () => {
    const { body } = await members[0].api('/fleet/events?type=rollout.succeeded')
    return body.items?.length === 3
  }, 'the history of all')
  const { items } = (await members[0].api('/fleet/events?type=rollout.succeeded')).body
  assert.deepEqual(items.map((/** @type {any} */ { member }) => member).sort(), NAMES)
})

test('who has stopped for good in its turn is given up by the abort of what was halted, and keeps nobody from the next one', { skip }, async (t) => {
  const nats = await startNats(t)
  const link = await createLink(t, { to: nats.port })
  const options = { servers: nats.url, flags: ['--releases-mode', 'snapshot', '--rollout-min-ready-ms', '1000'] }
  const [[first, second], gone] = await Promise.all([startFleet(t, ['web-1', 'web-2'], options), startMember(t, { ...options, name: 'web-3', servers: link.url })])
  await first.untilFleet(({ members }) => members.length === 3, 'three members')
  await begin(first, { deadlineMs: 4000 })
  await untilTurn(first, 'web-3', 'running')
  link.cut()
  await gone.stop()
  const halted = await untilOver(second)
  assert.deepEqual([halted.state, statesOf(halted)], ['halted', ['web-1 succeeded', 'web-2 succeeded', 'web-3 running']])
  // As after 7 days.
  await nats.purge('KV_clusterdeck_test_members', '$KV.clusterdeck_test_members.web-3')
  await nats.kill()
  await nats.start()
  for (const member of [first, second]) await member.untilFleet(({ engine, members }) => engine.isConnected && members.length === 2, 'the third one to be forgotten')
  assert.equal((await first.api('/fleet/rollout/abort', { method: 'POST' })).status, 200)
  const { rollout } = await second.untilFleet(({ rollout: seen }) => seen.state === 'rolled-back', 'all to be back')
  assert.deepEqual(statesOf(rollout), ['web-1 reverted', 'web-2 reverted', 'web-3 failed'])
  assert.match(rollout.turns['web-3'].reason, /given up by .*: it was silent/)
  await begin(second, { kind: 'restart' })
  assert.equal((await untilOver(first)).state, 'succeeded')
})

test('a member is killed in its turn, its keeper too: its turn is never taken over, and it says itself what became of it', { skip }, async (t) => {
  const nats = await startNats(t)
  const root = tempFolder()
  const [others, killed] = await Promise.all([startFleet(t, ['web-2', 'web-3'], { servers: nats.url, flags: SLOW }), startMember(t, { name: 'web-1', servers: nats.url, flags: SLOW, isApart: true, root })])
  const served = await askAll(t, others)
  await others[0].untilFleet(({ members: seen }) => seen.length === 3, 'three members')
  await begin(others[0], { deadlineMs: 4000 })
  await untilTurn(others[0], 'web-1', 'running')
  const { pid } = /** @type {any} */ (killed).child
  const { workers } = await killed.untilStatus(({ rollout }) => rollout !== null, 'its own rollout')
  for (const each of [pid, killed.masterPid, ...workers.map((/** @type {any} */ worker) => worker.pid)]) process.kill(each, 'SIGKILL')
  const halted = await untilOver(others[1])
  assert.equal(halted.state, 'halted')
  assert.match(halted.reason, /web-1 has been in its turn for more than 4\.0 s: nobody takes it over/)
  assert.deepEqual(statesOf(halted), ['web-1 running', 'web-2 pending', 'web-3 pending'])

  const back = await startMember(t, { name: 'web-1', servers: nats.url, flags: SLOW, isApart: true, root })
  const told = await untilTurn(others[1], 'web-1', 'failed')
  assert.equal(told.turns['web-1'].reason, 'its master ended')
  assert.equal(told.state, 'halted', 'a person decides')
  assert.equal((await others[1].api('/fleet/rollout/resume', { method: 'POST' })).status, 200)
  const rollout = await untilOver(others[0])
  assert.deepEqual([rollout.state, statesOf(rollout)], ['failed', ['web-1 failed', 'web-2 succeeded', 'web-3 succeeded']])
  await checkHistories([back, ...others])
  await served()
  assert.equal(await back.version(), 'v1')
})

test('a member is stopped for longer than its deadline and then goes on: its late result is told, and nothing else begins by it', { skip }, async (t) => {
  const nats = await startNats(t)
  const [others, stopped] = await Promise.all([startFleet(t, ['web-2', 'web-3'], { servers: nats.url, flags: SLOW }), startMember(t, { name: 'web-1', servers: nats.url, flags: SLOW, isApart: true })])
  await others[0].untilFleet(({ members: seen }) => seen.length === 3, 'three members')
  await begin(others[0], { deadlineMs: 3000 })
  await untilTurn(others[0], 'web-1', 'running')
  const { pid } = /** @type {any} */ (stopped).child
  for (const each of [pid, stopped.masterPid]) process.kill(each, 'SIGSTOP')
  t.after(() => { for (const each of [pid, stopped.masterPid]) try { process.kill(each, 'SIGCONT') } catch {} })
  const halted = await untilOver(others[1])
  assert.deepEqual([halted.state, statesOf(halted)], ['halted', ['web-1 running', 'web-2 pending', 'web-3 pending']])
  for (const each of [pid, stopped.masterPid]) process.kill(each, 'SIGCONT')
  const told = await untilTurn(others[1], 'web-1', 'succeeded')
  assert.deepEqual([told.state, told.turns['web-1'].isLate], ['halted', true])
  assert.match(told.timeline.at(-1).message, /late/)
  assert.deepEqual(statesOf(told).slice(1), ['web-2 pending', 'web-3 pending'])
  await checkHistories([stopped, ...others])
})

test('clocks of members that are hours apart, and messages that take a second, change nothing but the time that it takes', { skip }, async (t) => {
  const nats = await startNats(t)
  const slow = await createLink(t, { to: nats.port })
  const clock = path.join(tempFolder(), 'clock')
  writeFileSync(clock, String(-5 * 60 * 60_000))
  const members = await Promise.all([
    startMember(t, { name: 'web-1', servers: nats.url }),
    startMember(t, { name: 'web-2', servers: slow.url }),
    startMember(t, { name: 'web-3', servers: nats.url, isApart: true, env: { NODE_OPTIONS: `--require=${FIXTURES}sets-its-clock.cjs`, CLOCK: clock } })
  ])
  for (const member of members) await member.untilFleet(({ members: seen }) => seen.filter((/** @type {any} */ each) => !each.isSilent).length === 3, 'three members')
  slow.slow(DELAY_MS)
  await begin(members[2], { pauseMs: 500 })
  const rollout = await untilOver(members[0])
  assert.equal(rollout.state, 'succeeded', rollout.reason)
  await checkHistories(members.slice(0, 2))
  assert.equal((await members[2].api('/rollouts')).body.items.length, 1)
  await until(async () => (await members[1].fleet()).rollout?.state === 'succeeded', 'the slow one to hear of it')
})
