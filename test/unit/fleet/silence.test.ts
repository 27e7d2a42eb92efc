import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSilenceLog } from '../../../server/fleet/silence-log.ts'
import { createSilenceWatch } from '../../../server/fleet/silence-watch.ts'
import { fake } from '../../support/fake.ts'
import type { Presence } from '../../../server/fleet/presence.ts'
import type { SeenEvent } from '../../support/event-log.ts'

const BEAT_MS = 5000
const SILENT_MS = 15_000
const SHOP = { app: 'shop', state: 'running', release: 'r12', code: null, workers: { ready: 3, desired: 4 },
  health: { tone: 'ok', text: 'well' }, vitals: { requestsPerSecond: null, latencyP99Ms: null }, openCrashes: 0,
  rollout: null, turnOf: null, seen: { rollout: 0, revision: 0 }, url: null }

/**
 * A host `web-1` that looks at others every five seconds, by a clock that the test moves; `stop` stops the reports of
 * one.
 */
function openFleet (names = ['web-1', 'web-2', 'web-3']) {
  let at = 1_000_000
  const hosts: Map<string, { heardAt: number, isStopped: boolean, boot: string, apps: typeof SHOP[] }> = new Map(
    names.map((name) => [name, { heardAt: at, isStopped: false, boot: `boot of ${name}`, apps: [SHOP] }])
  )
  const nats = { state: { isConnected: true, since: '', server: null, problem: null } }
  const presence = { problem: null as string | null, isHearing: true, glances: 0, all, async glance () {
    presence.glances++
    return all()
  } }
  /** oldest first */
  const events: (SeenEvent & { detail: { isReporter: boolean } })[] = []
  const history = { page: () => ({ items: events.toReversed() }) }
  let watch = newWatch()

  return {
    hosts,
    nats,
    presence,
    events,
    get silent () {
      return watch.list().map(({ host }) => host.member)
    },
    get types () {
      return events.map(({ type, detail }) => `${type.replace('fleet.host-', '')} ${detail.member}`)
    },
    hostOf: (name: string) => hosts.get(name) as NonNullable<ReturnType<typeof hosts.get>>,
    restart () {
      watch = newWatch()
    },
    /** Time passes, in which nothing runs here. */
    sleep (ms: number) {
      at += ms
    },
    async pass (ms: number) {
      for (const until = at + ms; at < until;) {
        at += BEAT_MS
        for (const host of hosts.values()) if (!host.isStopped) host.heardAt = at
        await watch.look()
      }
    }
  }

  function newWatch () {
    const now = () => at
    const log = createSilenceLog({ app: 'shop', member: 'web-1', history, now, publish: (event) => {
      events.push({ id: events.length + 1, at: '', ...event } as typeof events[number])
    } })
    return createSilenceWatch({ nats, presence: presence as object as Presence, onLook: log, now,
      timers: fake({ setInterval () {}, clearInterval () {} }) })
  }

  async function all () {
    const members = [...hosts].map(([member, { heardAt, isStopped: _, ...rest }]) => ({ member, host: member,
      isOwn: member === 'web-1', ageMs: at - heardAt, isSilent: member !== 'web-1' && at - heardAt > SILENT_MS,
      ...rest })
    )
    return { members, isComplete: true }
  }
}

test('a host that falls silent is told once, with what ran there, and so is its return', async () => {
  const fleet = openFleet()
  await fleet.pass(60_000)
  assert.deepEqual(fleet.types, [])
  fleet.hostOf('web-3').isStopped = true
  await fleet.pass(180_000)
  assert.deepEqual(fleet.types, ['silent web-3'])
  assert.equal(fleet.events[0].message,
    'web-3 is silent: no report for 20 s. When last heard, it ran shop r12 (3 of 4 workers ready)')
  assert.deepEqual(fleet.silent, ['web-3'])
  Object.assign(fleet.hostOf('web-3'), { isStopped: false, boot: 'another' })
  await fleet.pass(60_000)
  assert.deepEqual(fleet.types, ['silent web-3', 'back web-3'])
  assert.match(fleet.events[1].message, /^web-3 is back after 3 min 05 s; clusterdeck was restarted there$/)
})

test('a host that reports now and then stays silent, and the more often it was silent the longer it has to report', async () => {
  const fleet = openFleet()
  await fleet.pass(60_000)
  const host = fleet.hostOf('web-2')
  for (let turn = 0; turn < 5; turn++) {
    host.isStopped = true
    await fleet.pass(25_000)
    host.isStopped = false
    await fleet.pass(20_000)
  }
  assert.deepEqual(fleet.types, ['silent web-2'])
  for (let turn = 0; turn < 20; turn++) {
    host.isStopped = false
    await fleet.pass(70_000)
    host.isStopped = true
    await fleet.pass(25_000)
  }
  assert.ok(fleet.types.length <= 6, `${fleet.types.length} events of 20 silences`)
})

test('a host that is cut off, cannot report, or was asleep itself says of nobody that he is silent', async () => {
  const fleet = openFleet()
  await fleet.pass(60_000)
  for (const host of fleet.hosts.values()) host.isStopped = true
  fleet.nats.state.isConnected = false
  await fleet.pass(120_000)
  fleet.nats.state.isConnected = true
  fleet.presence.problem = 'JetStream does not answer within 3 s'
  await fleet.pass(60_000)
  fleet.presence.problem = null
  fleet.presence.isHearing = false
  await fleet.pass(60_000)
  fleet.presence.isHearing = true
  fleet.sleep(8 * 60 * 60_000)
  // They find NATS again too, one after the other.
  await fleet.pass(20_000)
  for (const host of fleet.hosts.values()) host.isStopped = false
  await fleet.pass(60_000)
  assert.deepEqual(fleet.types, [])
  fleet.nats.state.isConnected = false
  fleet.hostOf('web-3').isStopped = true
  await fleet.pass(60_000)
  fleet.nats.state.isConnected = true
  await fleet.pass(60_000)
  assert.deepEqual(fleet.types, ['silent web-3'], 'who is not back by then is silent')
})

test('a host that stops as it should is not told, and one that is taken off the list ends its silence', async () => {
  const fleet = openFleet()
  await fleet.pass(60_000)
  fleet.hosts.delete('web-2')
  fleet.hostOf('web-3').isStopped = true
  await fleet.pass(60_000)
  fleet.hosts.delete('web-3')
  await fleet.pass(10_000)
  assert.deepEqual(fleet.types, ['silent web-3', 'left web-3'])
})

test('a master that begins in the middle of a silence does not tell it again, but its end', async () => {
  const fleet = openFleet()
  await fleet.pass(60_000)
  fleet.hostOf('web-3').isStopped = true
  await fleet.pass(60_000)
  fleet.restart()
  await fleet.pass(60_000)
  assert.deepEqual(fleet.types, ['silent web-3'])
  fleet.hostOf('web-3').isStopped = false
  fleet.restart()
  await fleet.pass(60_000)
  assert.deepEqual(fleet.types, ['silent web-3', 'back web-3'])
})

test('one host tells it outside, and none tells what is older than itself', async () => {
  const fleet = openFleet(['web-0', 'web-1', 'web-2', 'web-3'])
  await fleet.pass(60_000)
  fleet.hostOf('web-3').isStopped = true
  await fleet.pass(60_000)
  assert.equal(fleet.events[0].detail.isReporter, false, 'web-0 tells it')
  fleet.hostOf('web-0').isStopped = true
  await fleet.pass(60_000)
  assert.equal(fleet.events[1].detail.isReporter, true)
  const late = openFleet()
  late.hostOf('web-3').isStopped = true
  late.sleep(60 * 60_000)
  late.restart()
  await late.pass(60_000)
  assert.deepEqual([late.types, late.events[0].detail.isReporter], [['silent web-3'], false])
})

test('in a large fleet nobody listens all the time', async () => {
  const fleet = openFleet(['web-1', ...Array.from({ length: 199 }, (_, index) => `web-${index + 2}`)])
  await fleet.pass(60_000)
  fleet.hostOf('web-3').isStopped = true
  await fleet.pass(360_000)
  assert.deepEqual(fleet.types, ['silent web-3'])
  assert.ok(fleet.presence.glances <= 4, String(fleet.presence.glances))
})
