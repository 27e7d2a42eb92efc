import { findFalseHistory } from './history.ts'
import { openSite, type Site } from './site.ts'
import { judge, type Cell } from './verdict.ts'
import { until } from '../support/until.ts'
import type { TestOwner } from '../support/deck.ts'
import type { Fault } from './faults.ts'
import type { Load, Sizes } from './loads.ts'

/** What became of one fault under some loads. */
export type Row = {
  fault: string,
  /** by the name of the load */
  cells: Record<string, Cell>,
  /** that are of no load alone */
  problems: string[],
  seconds: number
}

/** Lets it happen once to a deck of its own, under loads. `t`: it ends with this. */
export async function tryFault (t: TestOwner, fault: Fault, loads: readonly Load[], sizes: Sizes): Promise<Row> {
  const startedAt = performance.now()
  const site = await openSite(t, fault.options)
  const running = loads.map((load) => site.startLoad(load, sizes))
  const problems: string[] = []
  await untilUnderWay(site, loads)
  await fault.act(site).catch((error) =>
    problems.push(`${error.message}${error.cause ? ` (${error.cause.code ?? error.cause.message})` : ''}`)
  )
  // What is asked after it is answered too.
  const tallies = await Promise.all(running.map((clients) => fault.isLast ? clients.stop() : clients.finish()))
  problems.push(...await site.close())
  if (!fault.isFinal && problems.length === 0) problems.push(...findFalseHistory(site.deck.folder, site.deeds))
  const ledger = site.ledger()
  const cells = Object.fromEntries(tallies.map((tally) => [tally.name, judge(tally, ledger, site.damage)]))
  return { fault: fault.name, cells, problems, seconds: (performance.now() - startedAt) / 1000 }
}

async function untilUnderWay (site: Site, loads: readonly Load[]) {
  await until(() => {
    const begun = [...site.ledger().begun.keys()]
    return loads.every(({ name, clients }) => begun.filter((id) => id.startsWith(`${name}-`)).length >= clients)
  }, 'all clients to have asked')
}
