import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSilenceLog } from '../../../server/fleet/silence-log.ts'
import { createSilenceWatch } from '../../../server/fleet/silence-watch.ts'
import { fake } from '../../support/fake.ts'
import { playScenes } from '../../support/scenes.ts'
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

playScenes(`
a host that falls silent is told once, with what ran there, and so is its return
  60 s                                 → nothing
  web-3 stops; 180 s                   → silent web-3
                                       → says web-3 is silent: no report for 20 s. When last heard, it ran shop r12 (3 of 4 workers ready)
                                       → now web-3
  web-3 restarts; 60 s                 → silent web-3, back web-3
                                       → says web-3 is back after 3 min 05 s; clusterdeck was restarted there
a host that is cut off, cannot report, or was asleep itself says of nobody that he is silent
  60 s; all stop; the server goes; 120 s; the server comes    → nothing
  its reports fail; 60 s; its reports arrive; it hears nothing; 60 s; it hears; asleep for 28800 s  → nothing
  20 s; all report; 60 s               → nothing
who is not back once NATS is, is silent
  60 s; the server goes; web-3 stops; 60 s; the server comes; 60 s  → silent web-3
a host that stops as it should is not told, and one that is taken off the list ends its silence
  60 s; web-2 leaves; web-3 stops; 60 s; web-3 leaves; 10 s  → silent web-3, left web-3
a master that begins in the middle of a silence does not tell it again, but its end
  60 s; web-3 stops; 60 s; another master; 60 s   → silent web-3
  web-3 reports; another master; 60 s  → silent web-3, back web-3
a host that reports now and then stays silent, and the more often it was silent the longer it has to report
  60 s; 5 times web-2 silent for 25 s and back for 20 s   → silent web-2
  50 s; 20 times web-2 silent for 25 s and back for 70 s  → at most 6
`, { open: () => openFleet(),
  acts: { 'SECONDS s': (fleet, seconds) => fleet.pass(Number(seconds) * 1000),
    'all stop': (fleet) => fleet.hosts.forEach((host) => (host.isStopped = true)),
    'all report': (fleet) => fleet.hosts.forEach((host) => (host.isStopped = false)),
    'NAME stops': ({ hostOf }, name) => Object.assign(hostOf(name), { isStopped: true }),
    'NAME reports': ({ hostOf }, name) => Object.assign(hostOf(name), { isStopped: false }),
    'NAME restarts': ({ hostOf }, name) => Object.assign(hostOf(name), { isStopped: false, boot: 'another' }),
    'NAME leaves': ({ hosts }, name) => hosts.delete(name), 'another master': (fleet) => fleet.restart(),
    'the server goes': ({ nats }) => (nats.state.isConnected = false),
    'the server comes': ({ nats }) => (nats.state.isConnected = true),
    'its reports fail': ({ presence }) => (presence.problem = 'JetStream does not answer within 3 s'),
    'its reports arrive': ({ presence }) => (presence.problem = null),
    'it hears nothing': ({ presence }) => (presence.isHearing = false),
    'it hears': ({ presence }) => (presence.isHearing = true),
    'asleep for SECONDS s': (fleet, seconds) => fleet.sleep(Number(seconds) * 1000),
    async 'TIMES times NAME silent for OFF s and back for ON s' ({ hostOf, pass }, times, name, off, on) {
      for (let turn = 0; turn < Number(times); turn++) {
        for (const [isStopped, seconds] of [[true, off], [false, on]] as const) {
          hostOf(name).isStopped = isStopped
          await pass(Number(seconds) * 1000)
        }
      }
    } }, see (fleet, expected) {
  if (expected.startsWith('says')) return `says ${fleet.events.at(-1)?.message}`
  if (expected.startsWith('now')) return `now ${fleet.silent}`
  return expected.startsWith('at most') && fleet.types.length <= 6 ? expected : fleet.types.join(', ') || 'nothing'
} })

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
