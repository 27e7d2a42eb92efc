import { oneLine } from '../system/one-line.ts'
import { tellHosts } from '../fleet/cli-hosts.ts'
import { streamAgain, type Message } from '../cli/api-client.ts'
import { checkedCount, membersMeant, misuse, queryOf } from '../cli/usage.ts'
import type { Context, Options, TextOption } from '../cli/commands.ts'
import type { Outcome } from '../cli/app-command.ts'
import type { Prefixed } from '../cli/prefixed.ts'
import type { Hosts } from '../api/ask.ts'

const MAX_LINES = 1000
const DEFAULT_LINES = '100'

/** The master checks the values of these options. */
const FILTERS: readonly TextOption[] = ['q', 'level', 'since', 'until', 'around']
const PLACES: typeof FILTERS = ['slot', 'stream']

/** Stands for an unknown time, and is as wide as one. */
const NO_TIME = '-'.padEnd('2026-01-31T12:00:00.000Z'.length)

export type Entry = { slot: number, stream: string, text: string, arrivedAt?: string | null, place?: string,
  member?: string }
/** `seenAt`: for a line without a time of its own; null for an older line */
type Show = (entry: Entry, seenAt: string | null) => void

export async function logsCommand (context: Context) {
  const { api, options, keep, tell } = context
  if (options.follow && options.member !== undefined)
    throw misuse('--follow', 'without --member', 'both: output does not stream from one deck to another')
  if (options.follow && options.allHosts) throw misuse('--follow', 'without --all-hosts', 'both')
  const filter = FILTERS.find((name) => options[name] !== undefined)
  if (options.follow && filter) throw misuse(`--${filter}`, 'without --follow', 'both')
  const lines = checkedCount('--lines', options.lines ?? DEFAULT_LINES, { min: options.follow ? 0 : 1, max: MAX_LINES })
  const query = queryOf(options, [...PLACES, ...FILTERS], { lines, ...membersMeant(options) })
  const lineOf = createLine(context)
  const show: Show = (entry, seenAt) => context.print(lineOf(entry, seenAt))
  if (options.follow) return await followLogs(context, query, show)
  const { items, next, hosts } = await api.get<{ items: Entry[], next: string | null, hosts?: Hosts }>(`/logs?${query}`)
  if (hosts) tellHosts(hosts, { tell, cutText: 'searched only the newest part of its files' })
  if (keep) keep(items)
  else for (const entry of items) show(entry, null)
  if (next !== null && filter && items.length < lines && !hosts)
    tell('only the newest part was searched; continue with an earlier --until')
  else if (items.length === 0 && (filter || hosts)) tell('no line matches')
}

/**
 * Follows the output until it is interrupted, or no master comes any more. The next master continues after the last
 * lines that this one has sent.
 */
async function followLogs ({ api, tell }: Context, query: URLSearchParams, show: Show) {
  let isFirst = true
  const open = (lastEventId: string | undefined) => batchesOf(api.stream(`/logs/stream?${query}`, { lastEventId }))
  for await (const { messages } of streamAgain(open, { hasAnswered: false })) {
    // The first lines of all were written before this command began.
    const seenAt = isFirst ? null : new Date().toISOString()
    isFirst = false
    for (const message of messages) tellLine(message, seenAt)
  }

  function tellLine ({ event, data }: Message, seenAt: string | null) {
    if (event === 'message') show(data as Entry, seenAt)
    if (event === 'dropped') tell(skippedText(Object(data)))
  }
}

/**
 * Collects messages up to the id that they belong to. Where the stream ends in between, the next master sends them
 * again.
 */
export async function* batchesOf (stream: AsyncIterable<Message>): AsyncGenerator<{ messages: Message[], id: string }> {
  let messages: Message[] = []
  for await (const message of stream) {
    if (message.data !== undefined) messages.push(message)
    if (message.id === undefined) continue
    yield { messages, id: message.id }
    messages = []
  }
}

export function skippedText ({ bytes, slot, stream }: { bytes: number, slot: number, stream: string }) {
  return `${Number(bytes)} bytes of slot ${Number(slot)}, ${
    oneLine(String(stream))
  }, skipped: output is faster than the reader`
}

/** The lines of several apps, in the order in which they have arrived. @returns they are printed here */
export function printLogsOfAll (outcomes: Outcome[],
  { prefixed, options }: { prefixed: Prefixed, options: Options }): string
{
  const lineOf = createLine({ options, isTerminal: true })
  const timed = outcomes.flatMap(({ target: { name }, result }) => {
    // A line whose time is unknown stays behind those before it.
    let at = ''
    return (result as Entry[] ?? []).map((entry) => {
      at = entry.arrivedAt ?? at
      return { name, entry, at }
    })
  })
  timed.sort((one, other) => one.at < other.at ? -1 : one.at > other.at ? 1 : 0)
  for (const { name, entry } of timed) prefixed.print(name, lineOf(entry, null))
  return ''
}

function createLine (
  { options, isTerminal }: Pick<Context, 'options' | 'isTerminal'>
): (...shown: Parameters<Show>) => string {
  const { json, timestamps } = options
  if (json)
    return ({ arrivedAt, ...entry }, seenAt) =>
      JSON.stringify(timestamps ? { arrivedAt: arrivedAt ?? seenAt, ...entry } : entry)
  const isOne = options.slot !== undefined && options.stream !== undefined
  return ({ slot, stream, text, arrivedAt, member }, seenAt) => {
    // A file or a pipe gets the bytes as the app has written them.
    const shown = isTerminal ? oneLine(text) : text
    const line = isOne ? shown : placedLine({ slot, stream, text: shown })
    const ofHost = member === undefined ? line : `${oneLine(member)} ${line}`
    return timestamps || member !== undefined ? `${oneLine(arrivedAt ?? seenAt ?? NO_TIME)} ${ofHost}` : line
  }
}

export function placedLine ({ slot, stream, text }: Pick<Entry, 'slot' | 'stream' | 'text'>): string {
  return `${Number(slot)} ${stream === 'stderr' ? 'stderr' : 'stdout'} | ${text}`
}
