// Random faults at random moments under mixed load: `npm run soak -- --minutes 20 --seed 1`
// The same seed gives the same faults in the same order. What is not as it should be at the end is told, and ends it
// with 1.
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { createOwner } from '../support/owner.ts'
import { FAULTS, type Fault } from './faults.ts'
import { findGrowth, measureFootprint } from './footprint.ts'
import { findFalseHistory } from './history.ts'
import { LOADS } from './loads.ts'
import { isRowClean, summarize } from './report.ts'
import { openSite } from './site.ts'
import { MINUTE_MS, readSoakOptions } from './soak-options.ts'
import { judge } from './verdict.ts'

type Step = { fault: Fault, afterMs: number, alongside: 'restart' | 'deploy' | null, headStartMs: number }

/** Enough for any number of minutes that somebody would wait. */
const STEPS = 10_000
/** Short enough for many faults: a drain waits for its longest answer. */
const SIZES = { slowMs: 1000, bodyBytes: 2_000_000, events: 8 }
/** The clients leave time for everything else: what is asked is spread over the faults. */
const SLOWER = 4
/** What a deck takes once nothing has happened for a while. */
const QUIET_MS = 30_000
const SETTLE_MS = 8000

const { minutes, seed, only } = readSoakOptions()
const steps = fc.sample(arbitraryStep(), { seed, numRuns: STEPS })
const owner = createOwner()
const site = await openSite(owner)
const clients = LOADS.map((load) => site.startLoad({ ...load, pauseMs: load.pauseMs * SLOWER }, SIZES))
await wait(SETTLE_MS)
const before = measureFootprint(site)
const startedAt = performance.now()
const problems: string[] = []
let count = 0
while (performance.now() - startedAt < minutes * MINUTE_MS && problems.length === 0) {
  const step = steps[count++]
  const begunAt = performance.now()
  await take(step).catch((error) => problems.push(`${describe(step)}: ${error.message}`))
  if (problems.length > 0) console.log(problems.join('\n'))
  console.log(
    `${Math.round((performance.now() - startedAt) / 1000)} s, step ${count}: ${describe(step)} (${
      ((performance.now() - begunAt) / 1000).toFixed(1)
    } s)`
  )
}
if (problems.length === 0) problems.push(...await findLastingGrowth())
const tallies = await Promise.all(clients.map((each) => each.finish()))
problems.push(...await site.close(), ...findFalseHistory(site.deck.folder, site.deeds))
const ledger = site.ledger()
const cells = Object.fromEntries(tallies.map((tally) => [tally.name, judge(tally, ledger, site.damage)]))
for (const [name, { requests, failed, excusable, hung, twice }] of Object.entries(cells)) {
  console.log(`${name}: ${requests} requests, ${failed} failed (${excusable} excusable), ${hung} hung, ${twice} twice`)
}
const row = { fault: `seed ${seed}`, cells, problems, seconds: (performance.now() - startedAt) / 1000 }
console.log(
  `seed ${seed}, ${count} steps, ${
    JSON.stringify({ ...site.deeds, lostMasters: site.deeds.lostMasters.length,
      lostWorkers: site.deeds.lostWorkers.length })
  }\n${summarize(row)}`
)
await owner.end()
process.exitCode = isRowClean(row) ? 0 : 1

function arbitraryStep () {
  const most = (ms: number) => fc.constantFrom(...Array.from({ length: 51 }, (_, part) => part * ms / 50))
  const fault = fc.constantFrom(
    ...FAULTS.filter(({ isFinal, skip, title }) => !isFinal && !skip && title.includes(only))
  )
  return fc.record({ fault, afterMs: most(3000), alongside: fc.constantFrom('restart', 'deploy', null),
    headStartMs: most(600) })
}

function rolloutOf ({ fault, alongside }: Step) {
  return fault.isSudden ? alongside : null
}

function describe (step: Step) {
  const kind = rolloutOf(step)
  return `${step.fault.title}${kind ? `, ${step.headStartMs} ms after a ${kind} has begun` : ''}`
}

async function take (step: Step) {
  const { fault, afterMs, headStartMs } = step
  await wait(afterMs)
  const kind = rolloutOf(step)
  if (kind === null) return await fault.act(site)
  const earlier = site.deeds.lostWorkers.length
  const id = await site.beginRollout(kind)
  await wait(headStartMs)
  await fault.act(site)
  await site.untilRolledOut(id)
  await site.untilReady()
  // Who dies may have been on its way out.
  for (const death of site.deeds.lostWorkers.slice(earlier)) death.cause = null
}

/** What goes by itself once it is quiet, as connections that nobody uses, has not grown. */
async function findLastingGrowth () {
  const until = performance.now() + QUIET_MS
  for (;;) {
    await wait(SETTLE_MS)
    const growth = findGrowth(before, measureFootprint(site))
    if (growth.length === 0 || performance.now() > until) return growth
  }
}
