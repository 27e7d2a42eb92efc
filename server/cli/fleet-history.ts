import { checkedLimit } from './history.ts'
import { fleetEventsText, jsonText } from './output.ts'
import type { Context } from './commands.ts'
import type { Event } from '../api/events.ts'

const DEFAULT_LIMIT = 50
const PAGE_LIMIT = 200

/** Prints the events of all decks of the fleet, or of one. */
export async function fleetHistory ({ api, options, print }: Context, member?: string) {
  const wanted = checkedLimit(options.limit ?? String(DEFAULT_LIMIT))
  const { type, cause, q, since, until } = options
  const filters = Object.fromEntries(
    Object.entries({ member, type, cause, q, since, until }).filter(([, value]) => value !== undefined)
  )
  const items: { member: string, event: Event }[] = []
  let next: string | null = null
  do {
    const limit = String(Math.min(wanted - items.length, PAGE_LIMIT))
    const query = new URLSearchParams({ ...filters, limit, ...(next === null ? {} : { cursor: next }) })
    const page = await api.get<{ items: typeof items, next: string | null }>(`/fleet/events?${query}`)
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < wanted)
  print(options.json ? jsonText({ items, next }) : items.length === 0 ? 'no events' : fleetEventsText(items))
}
