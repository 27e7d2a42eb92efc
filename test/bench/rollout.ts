// How long a deploy of four workers takes, as a multiple of what its workers take to boot: `node test/bench/rollout.ts
// [rounds]` The app waits 400 ms before it listens, so that four boots at once fit on few cores.
import { startDeck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'

const ROUNDS = Number(process.argv[2] ?? 5)
const WORKERS = 4
const SOAK_MS = 300
/** The most that each way may take, of what it has to. */
const WAYS = [{ name: 'surge 1', strategy: { surge: 1 }, limit: 1.3, ideal: (bootMs: number) => WORKERS * bootMs }, {
  name: `surge 1, soak ${SOAK_MS} ms`,
  strategy: { surge: 1, minReadyMs: SOAK_MS },
  limit: 1.3,
  ideal: (bootMs: number) => WORKERS * (bootMs + SOAK_MS)
}, { name: 'surge 4', strategy: { surge: 4 }, limit: 1.5, ideal: (bootMs: number) => bootMs }] as const

const owner = createOwner()
const deck = await startDeck(owner, 'boots-slowly.js', { workers: WORKERS })
await deck.until({ ready: WORKERS })

for (const { name, strategy, limit, ideal } of WAYS) {
  const ratios = []
  for (let round = 0; round < ROUNDS; round++) {
    const bootMs = await bootOfOne()
    const { totalMs, drainMs } = await deploy(strategy)
    ratios.push((totalMs - drainMs) / ideal(bootMs))
    console.log(
      `${name}: ${totalMs} ms, of it ${drainMs} ms the drain of the last; one boot ${bootMs} ms; ratio ${
        ratios[round].toFixed(2)
      }`
    )
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]
  console.log(`${name}: median ratio ${median.toFixed(2)}, ${median <= limit ? 'within' : 'NOT within'} ${limit}\n`)
}
await owner.end()

/** @returns ms from the fork of one worker, with all else at rest, until it is ready */
async function bootOfOne (): Promise<number> {
  const { workers: [{ id }] } = await deck.status()
  const { body } = await deck.api(`/workers/${Number(id)}/restart`, { method: 'POST' })
  const events = await eventsOf(body.id)
  const [ready, forked] = events.filter(({ type }) => type === 'worker.ready' || type === 'worker.forked')
  return Date.parse(ready.at) - Date.parse(forked.at)
}

async function deploy (strategy: object) {
  const { body } = await deck.api('/rollouts', { method: 'POST', body: JSON.stringify({ kind: 'deploy', strategy }) })
  const [{ at, detail }, ...events] = await eventsOf(body.id)
  const lastDraining = events.find(({ type }) => type === 'worker.draining')
  return { totalMs: Date.parse(at) - Date.parse(String(detail?.startedAt)),
    drainMs: Date.parse(at) - Date.parse(String(lastDraining?.at)) }
}

/** @returns what belongs to it once it has succeeded, newest first */
async function eventsOf (rollout: number) {
  await deck.untilEvent((event) => event.type === 'rollout.succeeded' && event.rollout === rollout,
    `the end of rollout ${rollout}`)
  const events = await deck.history(`rollout=${rollout}&limit=1000`)
  return events.slice(events.findIndex(({ type }) => type === 'rollout.succeeded'))
}
