import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startFleet, startMember, type Member } from '../support/fleet.ts'
import { tempFolder } from '../support/folder.ts'
import { hammer } from '../support/load.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import type { FleetRollout } from '../../server/fleet/api-answers.ts'

const skip = withoutNats
/** So that there is something to go back to, though the files are the same ones. */
const PINNED = ['--releases-mode', 'folder']
const NAMES = ['web-1', 'web-2', 'web-3']

function cli (member: Member, words: string): Promise<{ code: number, stdout: string, stderr: string }> {
  return runCliHere(['fleet', ...words.split(' '), '--data-dir', member.dataDir])
}

function statesOf ({ turns }: FleetRollout): Record<string, string> {
  return Object.fromEntries(Object.entries(turns).map(([name, { state }]) => [name, state]))
}

function storyOf ({ timeline }: FleetRollout): string[] {
  return timeline.map(({ type, member }) => `${type} ${member ?? ''}`.trim())
}

function versionsOf (members: Member[]) {
  return Promise.all(members.map((member) => member.version()))
}

/** `member`: own rollouts, newest first */
async function ownRollouts (member: Member) {
  return (await member.api('/rollouts')).body.items
}

test('a bad release: the first host goes back by itself, the rest never begin, and the command says why', { skip },
  async (t) => {
    const nats = await startNats(t)
    const members = await startFleet(t, NAMES, { servers: nats.url })
    const loads = await Promise.all(members.map(async (member) => hammer(t, await member.appUrl(), { connections: 4 })))
    for (const member of members) member.put('v2', { isBad: true })

    const { code, stdout, stderr } = await cli(members[2], 'deploy --wait')

    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /^web-1: failed in .*: .+$/m)
    assert.match(stderr, /rollout 1 of the fleet \(deploy\) is held: web-1: .+/)
    const { rollout } = await members[1].fleet()
    assert.deepEqual(statesOf(rollout), { 'web-1': 'failed', 'web-2': 'pending', 'web-3': 'pending' })
    const [own] = await ownRollouts(members[0])
    assert.equal(own.state, 'failed')
    assert.equal(rollout.reason, `web-1: ${own.reason}`, 'the reason is the host\'s own')
    assert.deepEqual(await Promise.all(members.slice(1).map(async (member) => (await ownRollouts(member)).length)), [0,
      0])
    assert.deepEqual((await Promise.all(loads.map((load) => load.stop()))).flatMap(({ failures }) => failures), [])
    assert.deepEqual(await versionsOf(members), ['v1', 'v1', 'v1'])

    // Mended, a person goes on with those that have not begun.
    for (const member of members) member.put('v3')
    const resumed = await cli(members[1], 'resume --wait')
    assert.equal(resumed.code, 1)
    assert.match(resumed.stderr, /is failed: 1 of 3 failed: web-1/)
    assert.deepEqual(await versionsOf(members), ['v1', 'v3', 'v3'])
  })

test(
  'operators: a pause lets the turn end and begins no other, a second rollout is a conflict that names the first, an abort in a turn takes it back',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const members = await startFleet(t, NAMES, { servers: nats.url, flags: PINNED })
    for (const member of members) member.put('v2')

    members[0].hold()
    assert.equal((await cli(members[0], 'deploy --note first')).code, 0)
    await members[1].untilFleet(({ rollout }) => rollout?.turns['web-1'].state === 'running', 'the first turn')
    const second = await cli(members[2], 'restart')
    assert.equal(second.code, 4)
    assert.match(second.stderr, /Rollout 1 of the fleet \(deploy by .+\) is running/)

    assert.equal((await cli(members[1], 'pause')).code, 0)
    members[0].letGo()
    const paused = await members[2].untilFleet(({ rollout }) => rollout.turns['web-1'].state === 'succeeded',
      'the end of the first turn')
    assert.deepEqual([paused.rollout.state, statesOf(paused.rollout)], ['paused', { 'web-1': 'succeeded',
      'web-2': 'pending', 'web-3': 'pending' }])

    members[1].hold()
    assert.equal((await cli(members[2], 'resume')).code, 0)
    await members[0].untilFleet(({ rollout }) => rollout.turns['web-2'].state === 'running', 'the second turn')
    const aborting = cli(members[0], 'abort --wait')
    await members[2].untilFleet(({ rollout }) => rollout.state === 'rolling-back', 'the abort')
    members[1].letGo()
    const aborted = await aborting
    assert.equal(aborted.code, 0, aborted.stderr)
    const { rollout } = await members[1].fleet()
    assert.deepEqual([rollout.state, statesOf(rollout)], ['rolled-back', { 'web-1': 'reverted', 'web-2': 'reverted',
      'web-3': 'skipped' }])
    assert.deepEqual(await versionsOf(members), ['v1', 'v1', 'v1'])
    assert.deepEqual((await ownRollouts(members[2])).length, 0)

    // And two at once: one of them is refused, whoever that is.
    const both = await Promise.all([cli(members[0], 'restart --wait'), cli(members[1], 'restart --wait')])
    assert.deepEqual(both.map(({ code }) => code).sort(), [0, 4])
  }
)

test('batches, a canary, an order by label, and hosts that are left out', { skip: skip || rareOnly }, async (t) => {
  const nats = await startNats(t)
  const zones = ['b', 'a', 'b', 'a']
  const members =
    (await Promise.all(
      zones.map((zone, index) => startFleet(t, [`web-${index + 1}`], { servers: nats.url, labels: { zone } }))
    )).flat()
  await members[0].untilFleet(({ members: seen }) => seen.length === 4, 'four members')

  const all = await cli(members[0], 'restart --batch 50% --order zone --canary web-3 --wait')
  assert.equal(all.code, 0, all.stderr)
  const { rollout } = await members[1].fleet()
  assert.deepEqual(rollout.batches, [['web-3'], ['web-2', 'web-4'], ['web-1']])
  const story = storyOf(rollout)
  assert.deepEqual(story.slice(0, 3), ['started', 'turn-started web-3', 'turn-succeeded web-3'])
  assert.deepEqual(story.slice(3, 5).sort(), ['turn-started web-2', 'turn-started web-4'],
    'those of a batch are in their turns at the same time')

  const some = await cli(members[0], 'restart --only zone=a --wait --json')
  assert.equal(some.code, 0, some.stderr)
  assert.deepEqual(JSON.parse(some.stdout).batches, [['web-2'], ['web-4']])
  assert.match((await cli(members[0], 'restart --only zone=c')).stderr,
    /only: expected labels of an online member, received zone=c/)
  assert.match((await cli(members[0], 'restart --batch 0%')).stderr, /batch: expected/)
  assert.match((await cli(members[0], 'restart --pause soon')).stderr, /--pause: expected/)
  assert.equal((await cli(members[0], 'explode')).code, 2)
  for (const words of ['restart web-1', 'deploy v2', 'pause web-1', 'restart --path app', 'restart --order zoen'])
    assert.equal((await cli(members[0], words)).code, 2, words)
  assert.match((await cli(members[0], 'restart web-1')).stderr,
    /^clusterdeck: fleet restart: expected nothing more, received "web-1"; for one member: clusterdeck restart --member web-1\n$/)
})

test('who does not let others operate it is not rolled out over, and says so', { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [open] = await startFleet(t, ['web-1'], { servers: nats.url })
    await startFleet(t, ['web-2'], { servers: nats.url, accept: 'read' })
    await open.untilFleet(({ members }) => members.length === 2, 'two members')
    const { code, stderr } = await cli(open, 'restart')
    assert.equal(code, 3, stderr)
    assert.match(stderr, /web-2: expected fleet\.accept "operate", received "read"/)
    assert.equal((await open.fleet()).rollout, null)
  })

test('a second deck of one name is told so, is no member, takes no turn and begins nothing', { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [first] = await startFleet(t, ['web-1'], { servers: nats.url })
    const second = await startMember(t, { name: 'web-1', servers: nats.url })
    const { problem } = await second.untilFleet(({ problem }) => problem !== null, 'the problem')
    assert.match(problem, /the name web-1 is taken by .*: give this host another by fleet\.member/)
    assert.equal((await first.fleet()).problem, null)
    assert.equal((await second.history('type=fleet.name-taken')).length, 1)

    const { code, stderr } = await cli(first, 'restart --wait')
    assert.equal(code, 0, stderr)
    await second.untilFleet(({ rollout }) => rollout?.state === 'succeeded', 'the second one to have seen it')
    assert.deepEqual((await second.api('/rollouts')).body.items, [])
    const refused = await cli(second, 'restart')
    assert.deepEqual([refused.code, refused.stderr.trim()], [1, `clusterdeck: ${problem}`])
  })

test(
  'a guard that takes back what a turn has brought fails that turn, and one that takes back what somebody has deployed since does not',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [guarded, other] = await startFleet(t, ['web-1', 'web-2'], { servers: nats.url,
      flags: [...PINNED, '--restart-min-delay-ms', '1', '--restart-intensity-restarts', '2'] })
    const fault = path.join(tempFolder(), 'fault')
    const putFaulty = () =>
      writeFileSync(path.join(guarded.appFolder, 'app.js'), `import { existsSync } from 'node:fs'
import http from 'node:http'
http.createServer((request, response) => response.end('faulty')).listen(0)
setInterval(() => { if (existsSync(${JSON.stringify(fault)})) throw new Error('too late') }, 20)
`)
    const inPause = async () => {
      const { status, body } = await other.api('/fleet/rollout', { method: 'POST',
        body: '{"kind":"deploy","pauseMs":3600000}' })
      assert.equal(status, 202, JSON.stringify(body))
      await other.untilFleet(({ rollout }) => rollout.id === body.id && rollout.turns['web-1'].state === 'succeeded',
        'the first turn')
    }
    const backFrom = async (release: string) => {
      writeFileSync(fault, '')
      await guarded.untilEvent(
        ({ type, actor, detail }) => type === 'rollout.succeeded' && actor === 'guard' && detail?.from === release,
        'the guard'
      )
      rmSync(fault)
    }

    putFaulty()
    await inPause()
    await backFrom('r2')
    const { rollout: failed } = await other.untilFleet(({ rollout }) => rollout.state === 'held',
      'the rollout to be held')
    assert.equal(failed.turns['web-1'].state, 'failed')
    assert.match(failed.reason, /^web-1: r2 kept crashing after rollout 1$/)
    assert.equal((await other.api('/fleet/rollout/abort', { method: 'POST' })).body.state, 'rolled-back')

    guarded.put('v2')
    await inPause()
    putFaulty()
    assert.equal((await guarded.rollout('deploy')).state, 'succeeded')
    await backFrom('r4')
    assert.equal(await guarded.version(), 'v2')
    const { rollout } = await other.fleet()
    assert.deepEqual([rollout.state, rollout.turns['web-1'].state, rollout.turns['web-2'].state], ['running',
      'succeeded', 'pending'])
  }
)

test(
  'a crash that only the new release has holds the rollout before the next host, and whoever resumes it is not held by it again',
  { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const [first, second] = await startFleet(t, ['web-1', 'web-2'], { servers: nats.url, flags: PINNED })
    const fault = path.join(tempFolder(), 'fault')
    const faulty = `import { existsSync, rmSync } from 'node:fs'
import http from 'node:http'
http.createServer((request, response) => response.end('faulty')).listen(0)
setInterval(() => {
  if (!existsSync(${JSON.stringify(fault)})) return
  rmSync(${JSON.stringify(fault)}, { force: true })
  throw new Error('no price for "lamp"')
}, 20)
`
    for (const { appFolder } of [first, second]) writeFileSync(path.join(appFolder, 'app.js'), faulty)
    const { body } = await second.api('/fleet/rollout', { method: 'POST', body: '{"kind":"deploy","pauseMs":3600000}' })
    await second.untilFleet(({ rollout }) => rollout.id === body.id && rollout.turns['web-1'].state === 'succeeded',
      'the first turn')
    writeFileSync(fault, '')
    const { rollout: held } = await second.untilFleet(({ rollout }) => rollout.state === 'held',
      'the rollout to be held')
    assert.match(held.reason, /^web-1: new crash in r2: Error: no price for "lamp"/)
    const { group } = held.turns['web-1'].crash
    assert.equal((await first.api(`/crashes/${group}`)).body.id, group)
    assert.deepEqual([held.turns['web-1'].state, held.turns['web-2'].state], ['succeeded', 'pending'])
    assert.equal((await second.api('/fleet/rollout/resume', { method: 'POST' })).body.state, 'running')
  }
)
