import { z } from 'zod'
import { PLACE } from '../config/line-place.ts'
import { DeckError } from '../errors.ts'
import { LEVELS, type Level } from '../../public/log-levels.ts'
import { toPattern } from '../../public/log-query.ts'
import { COUNT, TIME } from '../api/fields.ts'
import { integerParam, parseFields, timeParam } from '../api/input.ts'
import type { Logs } from './logs.ts'
import type { Line } from './search.ts'

/** Lines of the workers' output, and the places from which a reader continues. */
export type Stream = 'stdout' | 'stderr'
export type Log = { slot: number, stream: Stream }
/** all slots, both streams, unless said otherwise */
export type Selection = { slot?: number, stream?: Stream }
export type Deck = Pick<import('../deck.ts').Deck, 'logs' | 'snapshot'>
/** what is enough to search the logs of an app, also of one that does not run */
export type Searched = { logs: Pick<Logs, 'find' | 'slots'>,
  snapshot: () => { desiredWorkers: number, workers: readonly { slot: number | null }[] } }
/** `arrivedAt`: null where nobody knows; `place`: where it begins */
export type Entry = Log & { text: string, arrivedAt: string | null, place: string }
type Place = { log: Log, position: number }
export type Query =
  & Selection
  & { lines?: number, q?: string, level?: Level[], since?: number, until?: number, around?: number | Place,
    cursor?: string }
/**
 * `starts`: where each entry begins; `end`: where a cursor goes on; `hasOpenLine`: the last entry has no end yet, and
 * the cursor will read it again
 */
export type Page = { log: Log, starts: number[], end: number, hasOpenLine: boolean, entries: Entry[] }

export const STREAMS: readonly Stream[] = Object.freeze(['stdout', 'stderr'])
export const MAX_LINES = 1000
const DEFAULT_LINES = 100
const MAX_QUERY_CHARS = 200
// Limits of one log, and of all logs together.
const MIN_PAGE_BYTES = 4 * 1024
const MAX_PAGE_BYTES = 256 * 1024
const MAX_ANSWER_BYTES = 1024 * 1024
const LEVEL_LIST = new RegExp(`^(${LEVELS.join('|')})(,(${LEVELS.join('|')})){0,${LEVELS.length - 1}}$`)
export const PLACES = /^\d{1,3}[oe]\d{1,15}(-\d{1,3}[oe]\d{1,15}){0,511}$/

export const LOG_LINE = z.strictObject({ slot: COUNT.describe('0: a standby worker, or one that was'),
  stream: z.enum(STREAMS), text: z.string().describe('of another host: cut after 4000 characters'),
  arrivedAt: TIME.nullable().describe('about when it was written; null: not known'),
  place: z.string().describe('where it begins; `around` shows what is before and after it') })

export const SELECTION = {
  /** 0: the log of standby workers. */
  slot: integerParam(0, 256),
  stream: z.enum(STREAMS).optional().describe('"stdout" or "stderr"')
}

export function lineFilters (now: () => number) {
  return {
    q: z.string().min(1).max(MAX_QUERY_CHARS).superRefine(checkPattern).optional().describe(
      `1 to ${MAX_QUERY_CHARS} characters of a line, or a regular expression such as /time(d )?out/`
    ),
    level: z.string().regex(LEVEL_LIST).transform((text) => text.split(',') as Level[]).optional().describe(
      `levels (${LEVELS.join(', ')}), separated by commas`
    ),
    since: timeParam(now),
    until: timeParam(now),
    around: z.union([z.string().regex(PLACE).transform((text) => parsePlaces(text, 'around')[0]), timeParam(now)])
      .optional().meta({
        description:
          'an ISO 8601 time such as 2026-01-31T12:00:00Z, how long ago, such as 15m, or the `place` of a line, such as 1o4096',
        as: { type: 'string', examples: ['2026-01-31T12:00:00Z', '1o4096'] }
      }),
    cursor: z.string().max(10_000).optional().describe('the "next" of an earlier answer')
  }
}

/** `params`: of a page @throws {DeckError} `invalid-query` */
export function parseLogQuery (params: URLSearchParams,
  now: () => number): { texts: Record<string, string>, values: Query }
{
  return parseFields(z.strictObject({ ...SELECTION, ...lineFilters(now) }), params)
}

/** Slots that the cluster has: the files of others stay until their room is needed. */
export function presentSlots ({ logs, snapshot }: Searched): number[] {
  const { desiredWorkers, workers } = snapshot()
  return logs.slots().filter((slot) => slot <= desiredWorkers || workers.some((worker) => worker.slot === slot))
}

function checkPattern (q: string, context: z.RefinementCtx) {
  try {
    toPattern(q)
  } catch {
    context.addIssue({ code: 'custom', message: 'unreadable',
      params: { expected: 'text, or a regular expression such as /time(d )?out/' } })
  }
}

export function selectedLogs (logs: Logs, { slot, stream }: Selection): Log[] {
  return logsOf(slot === undefined ? logs.slots() : [slot], stream)
}

/**
 * Reads the last lines of each log, for one caller at a time: many at once would hold all their lines in memory.
 * Returns those of slots that are gone are empty, unless they are asked for.
 * @throws {DeckError} `not-found`
 */
export async function lastLines (deck: Deck, query: Selection & { lines?: number }): Promise<Page[]> {
  return await deck.logs.inTurn(() => readPages(deck, query))
}

async function readPages (deck: Deck, query: Selection & { lines?: number }): Promise<Page[]> {
  const { logs } = deck
  checkSlot(logs, query)
  const all = selectedLogs(logs, query)
  const present = query.slot === undefined ? presentSlots(deck) : [query.slot]
  const maxBytes = Math.max(MIN_PAGE_BYTES, Math.min(MAX_PAGE_BYTES, Math.floor(MAX_ANSWER_BYTES / all.length)))
  const pages = []
  for (const log of all) {
    const isPresent = present.includes(log.slot)
    const { lines, arrivedAt, starts, end, hasOpenLine } = await logs.page({ ...log,
      lines: isPresent ? query.lines ?? DEFAULT_LINES : 1, maxBytes })
    const entries = lines.map((text, index) => ({ ...log, text, arrivedAt: toTime(arrivedAt[index]),
      place: formatPlace(log, starts[index]) })
    )
    pages.push({ log, starts, end, hasOpenLine, entries: isPresent ? entries : [] })
  }
  return pages
}

/**
 * Searches all lines in the files.
 * @throws {DeckError} `invalid-query`, `not-found`, `rate-limited`, `timed-out`
 */
export async function findLines (deck: Searched,
  { slot, stream, lines = DEFAULT_LINES, cursor, ...filters }: Query): Promise<{ items: Entry[], next: string | null }>
{
  checkSlot(deck.logs, { slot })
  checkAlone({ ...filters, cursor })
  const before = cursor === undefined ? undefined : parsePlaces(cursor, 'cursor')
  const { items, next } = await deck.logs.find({ logs: logsOf(slot === undefined ? presentSlots(deck) : [slot], stream),
    lines, ...filters, before })
  if (typeof filters.around === 'object' && items.length === 0) {
    throw new DeckError('not-found', `The line ${formatPlaces([filters.around])} is no longer kept`)
  }
  return { items: items.map(toEntry), next: next && formatPlaces(next) }
}

/** @throws {DeckError} `invalid-query` */
export function checkAlone (
  { around, q, level, since, until, cursor }: Pick<Query, 'q' | 'level' | 'since' | 'until' | 'cursor'> & {
    around?: unknown
  }
) {
  const other = Object.entries({ q, level, since, until, cursor }).find(([, value]) => value !== undefined)
  if (around !== undefined && other)
    throw new DeckError('invalid-query', `around: expected without ${other[0]}, received both`)
}

function toEntry ({ position, ...line }: Line): Entry {
  return { ...line, arrivedAt: toTime(line.arrivedAt), place: formatPlace(line, position) }
}

/** Tells whether it asks for more than the last lines */
export function isSearch ({ q, level, since, until, around, cursor }: Query): boolean {
  return [q, level, since, until, around, cursor].some((filter) => filter !== undefined)
}

/**
 * Merges lines of several logs by time of arrival; lines of one log keep their order. A line without a time follows the
 * one before it. `logs`: each from its oldest line on.
 */
export function mergeByTime<T extends { arrivedAt: string | null }> (logs: T[][]): T[] {
  return logs.flatMap((entries) => {
    let key = ''
    return entries.map((entry) => {
      if (entry.arrivedAt !== null && entry.arrivedAt > key) key = entry.arrivedAt
      return { entry, key }
    })
  }).sort((a, b) => a.key < b.key ? -1 : Number(a.key > b.key)).map(({ entry }) => entry)
}

/**
 * @param shown those of them that are shown: the last ones of each
 * @returns the cursor of what came before them; null: nothing did
 */
export function olderThan (pages: Page[], shown?: Set<Entry>): string | null {
  const places = pages.filter(({ entries }) => entries.length > 0).map(({ log, starts, end, entries }) => {
    const first = shown ? entries.findIndex((entry) => shown.has(entry)) : 0
    return { log, position: starts[first] ?? end }
  })
  return places.every(({ position }) => position === 0) ? null : formatPlaces(places)
}

export function toTime (ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

function logsOf (slots: number[], stream?: Stream): Log[] {
  return slots.flatMap((slot) => (stream ? [stream] : STREAMS).map((each) => ({ slot, stream: each })))
}

/** @throws {DeckError} `not-found` */
function checkSlot (logs: Searched['logs'], { slot }: Selection) {
  if (slot !== undefined && !logs.slots().includes(slot)) throw new DeckError('not-found', `Slot ${slot} has no logs`)
}

/**
 * Formats places as a text for a URL and for the id of a server-sent event, which is all that a reconnecting browser
 * sends. A byte of a log keeps its number over rotation and a change of masters, so places stay valid. Returns
 * `1o4096-1e0-2o77`: slot, stream, byte.
 */
export function formatPlaces (places: Iterable<{ log: Log, position: number }>): string {
  return Array.from(places, ({ log, position }) => formatPlace(log, position)).join('-')
}

export function formatPlace ({ slot, stream }: Log, position: number) {
  return `${slot}${stream === 'stdout' ? 'o' : 'e'}${position}`
}

/** `source`: what the caller gave it in @throws {DeckError} `invalid-query` */
export function parsePlaces (text: string, source: string): { log: Log, position: number }[] {
  if (!PLACES.test(text)) {
    throw new DeckError('invalid-query',
      `${source}: expected the id of an event of this stream, such as 1o4096-1e0, received ${
        JSON.stringify(text.slice(0, 60))
      }`)
  }
  return text.split('-').map((place) => {
    const [slot, letter, position] = place.split(/([oe])/)
    return { log: { slot: Number(slot), stream: letter === 'o' ? 'stdout' : 'stderr' }, position: Number(position) }
  })
}
