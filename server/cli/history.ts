import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { checkedCount } from './count.ts'
import { eventsText } from './output.ts'
import type { Context, Options, TextOption } from './commands.ts'
import type { Event } from '../api/events.ts'

const DEFAULT_LIMIT = 50
const PAGE_LIMIT = 1000
/** The master checks the values of these options. */
const FILTERS: readonly TextOption[] = ['type', 'cause', 'slot', 'worker', 'release', 'rollout', 'since', 'until', 'q']

export async function historyCommand (context: Context) {
  const { api, options, answer, master } = context
  if (options.host && !master.below)
    throw new DeckError('usage', '--host: expected without an app, received both')
  if (options.csv && options.json) throw new DeckError('usage', '--csv: expected without --json, received both')
  if (options.csv) return await writeCsv(context)
  const wanted = checkedLimit(options.limit ?? String(DEFAULT_LIMIT))
  const items: Event[] = []
  let next: string | null = null
  do {
    const query = new URLSearchParams({ limit: String(wanted - items.length), ...filtersOf(options),
      ...(next === null ? {} : { cursor: next }) })
    const page = await api.get<{ items: Event[], next: string | null }>(`/events?${query}`)
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < wanted)
  answer({ items, next }, () => items.length === 0 ? 'no events' : eventsText(items))
}

/** Writes all that matches, unless a limit is given. */
async function writeCsv ({ api, options, write, isTerminal }: Context) {
  const query = new URLSearchParams(filtersOf(options))
  if (options.limit !== undefined) query.set('limit', String(checkedLimit(options.limit)))
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

function filtersOf (options: Options): Record<string, string> {
  const filters = FILTERS.filter((name) => options[name] !== undefined).map((name) => [name, String(options[name])])
  return Object.fromEntries([...filters, ...(options.host ? [['own', 'true']] : [])])
}

/** @throws {DeckError} usage */
export function checkedLimit (limit: string): number {
  return checkedCount('--limit', limit, { max: PAGE_LIMIT })
}
