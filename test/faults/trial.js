import { findFalseHistory } from './history.js'
import { openSite } from './site.js'
import { judge } from './verdict.js'
import { until } from '../support/until.js'

/**
 * What became of one fault under some loads.
 * @typedef {object} Row
 * @property {string} fault
 * @property {Record<string, import('./verdict.js').Cell>} cells by the name of the load
 * @property {string[]} problems that are of no load alone
 * @property {number} seconds
 */

/**
 * Lets it happen once to a deck of its own, under loads.
 * @param {import('../support/deck.js').TestOwner} t  it ends with this
 * @param {import('./faults.js').Fault} fault
 * @param {readonly import('./loads.js').Load[]} loads
 * @param {import('./loads.js').Sizes} sizes
 * @returns {Promise<Row>}
 */
export async function tryFault (t, fault, loads, sizes) {
  const startedAt = performance.now()
  const site = await openSite(t, fault.options)
  const running = loads.map((load) => site.startLoad(load, sizes))
  /** @type {string[]} */
  const problems = []
  await untilUnderWay(site, loads)
  await fault.act(site).catch((error) => problems.push(`${error.message}${error.cause ? ` (${error.cause.code ?? error.cause.message})` : ''}`))
  // What is asked after it is answered too.
  const tallies = await Promise.all(running.map((clients) => fault.isLast ? clients.stop() : clients.finish()))
  problems.push(...await site.close())
  if (!fault.isFinal && problems.length === 0) problems.push(...findFalseHistory(site.deck.folder, site.deeds))
  const ledger = site.ledger()
  const cells = Object.fromEntries(tallies.map((tally) => [tally.name, judge(tally, ledger, site.damage)]))
  return { fault: fault.name, cells, problems, seconds: (performance.now() - startedAt) / 1000 }
}

/** @param {import('./site.js').Site} site @param {readonly import('./loads.js').Load[]} loads */
async function untilUnderWay (site, loads) {
  await until(() => {
    const begun = [...site.ledger().begun.keys()]
    return loads.every(({ name, clients }) => begun.filter((id) => id.startsWith(`${name}-`)).length >= clients)
  }, 'all clients to have asked')
}
