// What presence in a fleet costs, and what a rollout costs beyond its turns: scale.ts starts it, as the CPU time of a
// process of its own is that of the members alone. They are those of the product, each with a deck that has no workers;
// NATS is real.
//   node test/bench/scale/fleet.ts MEMBERS
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { tempFolder } from '../../support/folder.ts'
import { joinIdleDeck } from '../../support/idle-deck.ts'
import { startNats } from '../../support/nats.ts'
import { createOwner } from '../../support/owner.ts'
import { cpuMs } from '../../support/process-figures.ts'
import { until } from '../../support/until.ts'

const TURN_MS = 20
const REST_S = 20
/** Longer than any member listens for others after its start. */
const SETTLES_MS = 65_000
const PATIENT = { everyMs: 50, patienceMs: 300_000 }

const members = Number(process.argv[2])
const owner = createOwner()
const nats = await startNats(owner, { config: () => 'max_connections: 2000\nhttp: "127.0.0.1:-1"' })
const root = tempFolder()
const fleets = Array.from({ length: members },
  (_, index) =>
    joinIdleDeck({ servers: [nats.url], name: 'bench', member: `member-${index + 1}` }, {
      folder: path.join(root, `${index}`),
      turnMs: TURN_MS
    }))
const [one] = fleets
await until(async () => (await one.look()).members.filter(({ isSilent }) => !isSilent).length === members,
  'all members', PATIENT)
await wait(SETTLES_MS)
const rest = await costOf(() => wait(1000 * REST_S))
const startedAt = performance.now()
const rolled = await costOf(async () => {
  await one.begin({ kind: 'restart' }, 'bench')
  await until(() => one.status().rollout?.state === 'succeeded', 'the end of the rollout', PATIENT)
})
const tookMs = performance.now() - startedAt
const ofAll = members * REST_S
console.log(
  JSON.stringify({ 'CPU ms of each host in a second, at rest': rest.ownMs / ofAll,
    'CPU ms of NATS in a second, for each host': rest.natsMs / ofAll,
    'bytes from NATS in a second, for each host': rest.bytes / ofAll,
    'ms of a turn of a rollout, beyond the turn itself': tookMs / members - TURN_MS,
    'CPU ms of all hosts for a turn': rolled.ownMs / members, 'CPU ms of NATS for a turn': rolled.natsMs / members,
    'kB from NATS for a turn': rolled.bytes / members / 1000,
    'kB of the document of a rollout': JSON.stringify(one.status().rollout).length / 1000 })
)
await Promise.all(fleets.map((fleet) => fleet.close()))
await owner.end()

async function costOf (work: () => Promise<unknown>) {
  const before = { natsMs: cpuMs([nats.pid]), own: process.cpuUsage(), bytes: await sentBytes() }
  await work()
  const own = process.cpuUsage(before.own)
  return { natsMs: cpuMs([nats.pid]) - before.natsMs, ownMs: (own.user + own.system) / 1000,
    bytes: await sentBytes() - before.bytes }
}

/** What the server has sent to all clients, as it says itself. */
async function sentBytes () {
  const [, port] = /Starting http monitor on 127\.0\.0\.1:(\d+)/.exec(nats.output) ?? []
  const answer = await fetch(`http://127.0.0.1:${port}/varz`)
  return (await answer.json() as { out_bytes: number }).out_bytes
}
