import { checkedLimit } from './history.js'
import { fleetEventsText } from './output.js'

const DEFAULT_LIMIT = 50
const PAGE_LIMIT = 200

/** What has happened on all decks of the fleet, or on one. @param {import('./commands.js').Context} context @param {string} [member] */
export async function fleetHistory ({ api, options, print }, member) {
  const wanted = checkedLimit(options.limit ?? String(DEFAULT_LIMIT))
  const filters = { ...(member !== undefined && { member }), ...(options.type !== undefined && { type: options.type }) }
  /** @type {any[]} */
  const items = []
  /** @type {string | null} */
  let next = null
  do {
    const query = new URLSearchParams({ ...filters, limit: String(Math.min(wanted - items.length, PAGE_LIMIT)), ...(next === null ? {} : { cursor: next }) })
    const page = await api.get(`/fleet/events?${query}`)
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < wanted)
  print(options.json ? JSON.stringify({ items, next }, null, 2) : items.length === 0 ? 'no events' : fleetEventsText(items))
}
