/**
 * A fleet of many members against a real server of NATS: what presence costs, and what a rollout costs beyond its
 * turns. The members are those of the product, in one process, with a deck that has no workers.
 *
 * node test/bench/fleet.ts [--members 500] [--turn 20] [--json]
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { tempFolder } from '../support/folder.ts'
import { joinIdleDeck } from '../support/idle-deck.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { createOwner } from '../support/owner.ts'

const CLOCK_TICKS = 100
const REST_MS = 20_000

const { values } = parseArgs({
  options: { members: { type: 'string', default: '500' }, turn: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false } }
})
const [count, turnMs] = [Number(values.members), Number(values.turn)]
if (withoutNats) throw new Error(withoutNats)

const owner = createOwner()
const nats = await startNats(owner, { config: () => 'max_connections: 2000\nhttp: "127.0.0.1:-1"' })
const root = tempFolder()
const fleets = Array.from({ length: count }, (_, index) => join(index))
const [one] = fleets
await until(async () => (await one.look()).members.filter(({ isSilent }) => !isSilent).length === count, 'all members')
console.log(`${count} members are there`)

// Longer than anybody keeps listening for.
await sleep(65_000)
const rest = await costOf(() => sleep(REST_MS))
console.log(
  `at rest, a second: ${perSecond(rest.serverMs, REST_MS)} ms of CPU of the server, ${
    (rest.ownMs / count / REST_MS * 1000).toFixed(3)
  } ms of each member; ${Math.round(rest.bytes / REST_MS)} kB from the server to all`
)

const look = await costOf(async () => {
  for (let left = REST_MS; left > 0; left -= 1000) {
    one.status()
    await sleep(1000)
  }
})
console.log(
  `while one of them is looked at, a second: ${perSecond(look.serverMs, REST_MS)} ms of the server, ${
    perSecond(look.ownMs - rest.ownMs, REST_MS)
  } ms more of that member`
)

const startedAt = performance.now()
const rolled = await costOf(async () => {
  await one.begin({ kind: 'restart' }, 'bench')
  await until(async () => one.status().rollout?.state === 'succeeded', 'the end of the rollout')
})
const tookMs = performance.now() - startedAt
console.log(
  `a rollout of ${count} turns of ${turnMs} ms: ${(tookMs / 1000).toFixed(1)} s, ${
    (tookMs / count - turnMs).toFixed(1)
  } ms a turn beyond the turn itself; ${(rolled.serverMs / count).toFixed(1)} ms of CPU of the server and ${
    (rolled.ownMs / count).toFixed(1)
  } ms of all members a turn; ${Math.round(rolled.bytes / count / 1024)} kB from the server a turn`
)
const { rollout } = one.status()
const documentBytes = JSON.stringify(rollout).length
console.log(`the document has ${Math.round(documentBytes / 1024)} kB`)
if (values.json) {
  const perHost = count * REST_MS / 1000
  console.log(
    JSON.stringify({ 'CPU ms of each host in a second, at rest': rest.ownMs / perHost,
      'CPU ms of NATS in a second, for each host': rest.serverMs / perHost,
      'bytes from NATS in a second, for each host': rest.bytes / perHost,
      'ms of a turn of a rollout, beyond the turn itself': tookMs / count - turnMs,
      'CPU ms of all hosts for a turn': rolled.ownMs / count, 'CPU ms of NATS for a turn': rolled.serverMs / count,
      'kB from NATS for a turn': rolled.bytes / count / 1000, 'kB of the document of a rollout': documentBytes / 1000 })
  )
}

await Promise.all(fleets.map((fleet) => fleet.close()))
await owner.end()

function join (index: number) {
  return joinIdleDeck({ servers: [nats.url], name: 'bench', member: `member-${index + 1}` }, {
    folder: path.join(root, `${index}`),
    turnMs
  })
}

async function costOf (work: () => Promise<unknown>) {
  const before = { serverMs: serverCpuMs(), own: process.cpuUsage(), bytes: await sentBytes() }
  await work()
  const own = process.cpuUsage(before.own)
  return { serverMs: serverCpuMs() - before.serverMs, ownMs: (own.user + own.system) / 1000,
    bytes: await sentBytes() - before.bytes }
}

function serverCpuMs () {
  const fields = readFileSync(`/proc/${nats.pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 1000 / CLOCK_TICKS
}

/** What the server has sent to all clients, as it says itself. */
async function sentBytes () {
  const [, port] = /Starting http monitor on 127\.0\.0\.1:(\d+)/.exec(nats.output) ?? []
  const answer = await fetch(`http://127.0.0.1:${port}/varz`)
  return (await answer.json() as { out_bytes: number }).out_bytes
}

function perSecond (ms: number, overMs: number) {
  return (ms / overMs * 1000).toFixed(1)
}

async function sleep (ms: number) {
  await new Promise((resolve) => setTimeout(resolve, ms))
}

async function until (isSo: () => Promise<boolean>, what: string) {
  const deadline = performance.now() + 300_000
  while (!await isSo()) {
    if (performance.now() > deadline) throw new Error(`waited for ${what}`)
    await sleep(50)
  }
}
