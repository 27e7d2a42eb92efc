import { oneLine } from '../system/one-line.ts'
import { eventsText } from './output.ts'
import { checkedCount, misuse, queryOf } from './usage.ts'
import type { Context, TextOption } from './commands.ts'
import type { Event } from '../api/events.ts'

const DEFAULT_LIMIT = 50
const PAGE_LIMIT = 1000
const FLEET_PAGE_LIMIT = 200
/** The master checks the values of these options. */
const FILTERS: readonly TextOption[] = ['type', 'cause', 'slot', 'worker', 'release', 'rollout', 'since', 'until', 'q']
export const FLEET_FILTERS: typeof FILTERS = ['type', 'cause', 'q', 'since', 'until']

export async function historyCommand (context: Context) {
  const { options, answer, master } = context
  if (options.host && !master.below) throw misuse('--host', 'without an app', 'both')
  if (options.csv && options.json) throw misuse('--csv', 'without --json', 'both')
  if (options.csv) return await writeCsv(context)
  const found = await readEvents<Event>('/events', FILTERS, context, { own: options.host })
  answer(found, () => found.items.length === 0 ? 'no events' : eventsText(found.items))
}

/** Prints the events of all decks of the fleet, or of one. */
export async function fleetHistory (context: Context, member?: string) {
  const found = await readEvents<{ member: string, event: Event }>('/fleet/events', FLEET_FILTERS, context, { member })
  context.answer(found,
    () =>
      found.items.length === 0
        ? 'no events'
        : eventsText(found.items.map((item) => ({ ...item.event, member: item.member }))))
}

/** Reads as many as are wanted, page by page. */
async function readEvents<Item> (path: string, filters: readonly TextOption[], { api, options }: Context,
  more: Record<string, string | true | undefined>): Promise<{ items: Item[], next: string | null }>
{
  const wanted = checkedLimit(options.limit ?? String(DEFAULT_LIMIT))
  const items: Item[] = []
  let next: string | null = null
  do {
    const limit = Math.min(wanted - items.length, filters === FLEET_FILTERS ? FLEET_PAGE_LIMIT : PAGE_LIMIT)
    const page: { items: Item[], next: string | null } = await api.get(
      `${path}?${queryOf(options, filters, { ...more, limit, cursor: next })}`
    )
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < wanted)
  return { items, next }
}

/** Writes all that matches, unless a limit is given. */
async function writeCsv ({ api, options, write, isTerminal }: Context) {
  const limit = options.limit === undefined ? undefined : checkedLimit(options.limit)
  const query = queryOf(options, FILTERS, { own: options.host, limit })
  const file = api.readText(`/events?${query}`, 'text/csv')
  for await (const text of isTerminal ? linesForTerminal(file) : file) await write(text)
}

/** Yields a line at a time, without control characters. */
async function* linesForTerminal (texts: AsyncIterable<string>) {
  let rest = ''
  for await (const text of texts) {
    const lines = (rest + text).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) yield `${oneLine(line)}\n`
  }
}

function checkedLimit (limit: string): number {
  return checkedCount('--limit', limit, { max: PAGE_LIMIT })
}
