import { oneLine } from '../system/one-line.ts'
import { eventsText } from '../cli/output.ts'
import { checkedCount, membersMeant, misuse, queryOf } from '../cli/usage.ts'
import type { Context, TextOption } from '../cli/commands.ts'
import type { Event } from './api.ts'

const DEFAULT_LIMIT = 50
const PAGE_LIMIT = 1000
/** The master checks the values of these options. */
const FILTERS: readonly TextOption[] = ['type', 'cause', 'slot', 'worker', 'release', 'rollout', 'since', 'until', 'q']

export async function historyCommand (context: Context) {
  const { options, answer, master } = context
  if (options.host && !master.below) throw misuse('--host', 'without an app', 'both')
  if (options.allHosts && master.below) throw misuse('--all-hosts', 'the folder or the name of an app', 'none')
  if (options.csv && options.json) throw misuse('--csv', 'without --json', 'both')
  if (options.csv && options.allHosts) throw misuse('--csv', 'without --all-hosts', 'both')
  if (options.csv) return await writeCsv(context)
  const found = await readEvents(context)
  answer(found, () => found.items.length === 0 ? 'no events' : eventsText(found.items))
}

async function readEvents ({ api, options }: Context): Promise<{ items: Event[], next: string | null }> {
  const wanted = checkedLimit(options.limit ?? String(DEFAULT_LIMIT))
  const items: Event[] = []
  let next: string | null = null
  do {
    const limit = Math.min(wanted - items.length, PAGE_LIMIT)
    const query = queryOf(options, FILTERS, { own: options.host, ...membersMeant(options), limit, cursor: next })
    const page: { items: Event[], next: string | null } = await api.get(`/events?${query}`)
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < wanted)
  return { items, next }
}

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

/** @throws {DeckError} usage */
function checkedLimit (limit: string): number {
  return checkedCount('--limit', limit, { max: PAGE_LIMIT })
}
