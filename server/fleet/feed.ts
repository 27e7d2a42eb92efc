import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf, subjectsOf, typeOf, type Message } from './event-stream.ts'
import type { ConsumerConfig, JsMsg } from '@nats-io/jetstream'
import type { Connection, Open } from './nats-connection.ts'

// Reads the events of the fleet from the stream, newest first, those of members that are gone too. NATS reads a stream
// oldest first, so a page is searched in windows from its end; the share of matches so far decides how long the next
// window is. The work of one call is limited, so a page may have fewer items than were asked for.

/** `at`: when it came, by the clock of NATS */
export type Item =
  & { seq: number, at: string }
  & Pick<Message, 'member' | 'app' | 'host' | 'event'>
/** `next`: where the page after it begins, null: this is the last one */
export type Page = { items: Item[], next: number | null }
/**
 * `types`: `worker.exited`, `worker.exited:crash` or `worker.*`; `q`: part of a message, type or cause; `since`,
 * `until`: when they came, ms since the epoch; `before`: the `next` of the page before
 */
export type Wanted = Matching & { app?: string, member?: string, since?: number, until?: number, before?: number | null,
  limit: number }
/** of an event itself */
type Matching = { types?: readonly string[], q?: string, cause?: string, slot?: number, worker?: number,
  release?: string, rollout?: number }
/** sequences of the stream, both inclusive */
type Window = { newest: number, oldest: number }

const MAX_WINDOWS = 10
/** A window with more matches is read again as a shorter one. */
const MAX_MESSAGES = 2000
const FIRST_WINDOW = 250
const MAX_GROWTH = 8
const MESSAGES_PER_FETCH = 250
/** Parsing more at once would delay the master. */
const MESSAGES_PER_TURN = 50
const EXPIRES_MS = 3000
/** NATS removes a reader whose deck has gone after this time. */
const FORGET_MS = 10_000
const NS_PER_MS = 1_000_000
const READER: Partial<ConsumerConfig> = Object.freeze({ ack_policy: 'none', mem_storage: true, num_replicas: 1,
  inactive_threshold: FORGET_MS * NS_PER_MS })

export function createFeed ({ nats }: { nats: Pick<Connection, 'attempt'> }) {
  /** Calls run one after the other, since each window costs NATS a reader. */
  let before: Promise<unknown> = Promise.resolve()

  return { read (wanted: Wanted): Promise<{ is: 'done', value: Page } | { is: 'away', reason: string }> {
    const page = before.then(() => nats.attempt((open) => readPage(open, wanted)))
    before = page
    return page
  } }
}

async function readPage (open: Open,
  { app, member, since, until, before = null, limit, ...matching }: Wanted): Promise<Page>
{
  const { manager, names } = open
  const { state } = await manager.streams.info(names.events)
  const { types } = matching
  const subject = subjectsOf(names, { app, member, type: onlyType(types) })
  const isSparse = [app, member, ...Object.values(matching)].some((filter) => filter !== undefined)
  const items: Item[] = []
  const first = since === undefined ? state.first_seq : Math.max(state.first_seq, await firstSince(open, since))
  // A page that follows another begins before `until` anyhow.
  let newest = Math.min(state.last_seq, (before ?? Infinity) - 1,
    until === undefined || before !== null ? Infinity : await firstSince(open, until) - 1)
  let length = isSparse ? Math.max(FIRST_WINDOW, limit) : limit
  // Without a filter that NATS understands, all of a window comes here.
  let longest = app === undefined && member === undefined && onlyType(types) === undefined ? MAX_MESSAGES : Infinity
  for (let windows = 0; windows < MAX_WINDOWS && newest >= first && items.length < limit; windows++) {
    const window = { newest, oldest: Math.max(first, newest - length + 1) }
    const found = await readWindow(open, window, { subject, types })
    if (found === null) {
      length = longest = Math.ceil(length / MAX_GROWTH)
      continue
    }
    const lastRead = await takeNewest(found, { items, limit, toItem: (message) => itemOf(names, message, matching) })
    newest = (lastRead ?? window.oldest) - 1
    length = Math.min(nextLength({ length, found: found.length, missing: limit - items.length }), longest)
  }
  return { items, next: newest >= first ? newest + 1 : null }
}

/**
 * `time`: ms since the epoch. Returns the sequence of the first message that came then or later; Infinity: none did.
 */
async function firstSince ({ manager, js, names }: Open, time: number): Promise<number> {
  const info = await manager.consumers.add(names.events, { deliver_policy: 'by_start_time',
    opt_start_time: new Date(time).toISOString(), ...READER })
  try {
    if (info.num_pending === 0) return Infinity
    const message = await js.consumers.getConsumerFromInfo(info).next({ expires: EXPIRES_MS })
    return message?.seq ?? Infinity
  } finally {
    manager.consumers.delete(names.events, info.name).catch(() => {})
  }
}

/**
 * `found`: oldest first; `items`: where they go. Returns the sequence of the last one that was read, null: all
 * were.
 */
async function takeNewest (found: JsMsg[],
  { items, limit, toItem }: { items: Item[], limit: number, toItem: (message: JsMsg) => Item | null }
): Promise<number | null> {
  for (let index = found.length - 1; index >= 0; index--) {
    const item = toItem(found[index])
    if (item) items.push(item)
    if (items.length === limit) return found[index].seq
    if (index % MESSAGES_PER_TURN === 0) await nextTurn()
  }
  return null
}

function nextLength ({ length, found, missing }: { length: number, found: number, missing: number }) {
  const likely = found === 0 ? Infinity : Math.ceil(length * missing / found)
  return Math.min(Math.max(likely, FIRST_WINDOW), length * MAX_GROWTH)
}

/** @returns oldest first; null: the window has too many matches */
async function readWindow ({ manager, js, names }: Open, { newest, oldest }: Window,
  { subject, types }: { subject: string, types?: readonly string[] }): Promise<JsMsg[] | null>
{
  const info = await manager.consumers.add(names.events, { filter_subject: subject, deliver_policy: 'by_start_sequence',
    opt_start_seq: oldest, ...READER })
  try {
    const pending = Math.min(info.num_pending, newest - oldest + 1)
    const consumer = js.consumers.getConsumerFromInfo(info)
    const found: JsMsg[] = []
    for (let read = 0; read < pending;) {
      if (read >= MAX_MESSAGES) return null
      const length = Math.min(pending - read, MESSAGES_PER_FETCH)
      let count = 0
      let last = 0
      for await (const message of await consumer.fetch({ max_messages: length, expires: EXPIRES_MS })) {
        last = message.seq
        count++
        if (last > newest) break
        if (isOfType(typeOf(names, message.subject), types)) found.push(message)
      }
      // Fewer than asked for: NATS has discarded some since.
      if (count < length || last >= newest) break
      read += length
      await nextTurn()
    }
    return found
  } finally {
    // NATS removes it by itself after a while.
    manager.consumers.delete(names.events, info.name).catch(() => {})
  }
}

/** @returns the one type that NATS itself can filter by */
function onlyType (types?: readonly string[]): string | undefined {
  return types?.length === 1 && !types[0].includes(':') ? types[0] : undefined
}

function isOfType (type: string, types?: readonly string[]) {
  return types === undefined || types.some((wanted) => {
    if (wanted.endsWith('*')) return type.startsWith(wanted.slice(0, -1))
    return wanted.split(':')[0] === type
  })
}

function itemOf (names: Open['names'], message: JsMsg, { types, q, ...equal }: Matching):
  | Item
  | null
{
  const found = messageOf(names, message)
  if (!found) return null
  const { member, app, host, event } = found
  const isWanted = types === undefined || types.some((wanted) => {
    return wanted.includes(':') ? wanted === `${event.type}:${event.cause}` : isOfType(event.type, [wanted])
  })
  const hasText = q === undefined ||
    [event.message, event.type, event.cause].some((text) => text?.toLowerCase().includes(q.toLowerCase()))
  const isEqual = Object.entries(equal).every(([field, value]) =>
    value === undefined || event[field as keyof typeof equal] === value
  )
  return isWanted && hasText && isEqual ? { seq: message.seq, at: message.timestamp, member, app, host, event } : null
}
