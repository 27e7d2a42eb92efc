import { LEVELS, levelOf, type Level } from '../../public/log-levels.ts'
import { createHits, isPattern, type FindHits } from '../../public/log-query.ts'
import { formatCount } from '../../public/format.ts'
import { markHits, shownLine, TONES } from '../../public/log-text.ts'
import { findLines, formatPlace, formatPlaces, isSearch, lastLines, mergeByTime, olderThan, parseLogQuery,
  presentSlots } from './api-lines.ts'
import { DeckError } from '../errors.ts'
import { toDeckError } from '../problem.ts'
import { givenFilters } from '../events/page-filters.ts'
import type { Deck, Entry, Query, Stream } from './api-lines.ts'
import type { JoinedLine } from './api-joined.ts'

/**
 * The first content of the page of the logs: the newest lines, all or those that are searched for, which continue live;
 * or older ones; or what is around a line or a time.
 */
export type FileType = 'text' | 'ndjson'
export type View = 'live' | 'older' | 'around'
/** as in the URL */
type Texts = Partial<Record<'slot' | 'stream' | 'q' | 'level' | 'since' | 'until' | 'around' | 'cursor', string>>
/**
 * `raw`: null where it is what is shown; `url`: of what is around it; `isOpen`: the line has no end yet and will be
 * sent again;
 * `isMark`: the line that was asked for, or the first one after the time
 */
export type Line = Omit<ReturnType<typeof shownLine>, 'raw'> & { slot: number, stream: Stream, level: Level,
  tone: string, at: string | null, raw: string | null, url: string | null, cutText: string, isOpen: boolean,
  isMark: boolean }

const PATH = '/logs'
const SHOWN_LINES = 200
export const DOWNLOAD_LINES = 1000
/** How often a search for a file goes on where it stopped; each time it looks for 4 s. */
const MAX_SEARCHES = 15
/** Filters by level, as they are called on the page. */
const LEVEL_NAMES: Readonly<Record<Level, { label: string, tone: string }>> = Object.freeze({
  error: { label: 'Error', tone: 'bad' },
  warn: { label: 'Warning', tone: 'warn' },
  info: { label: 'Info', tone: 'info' },
  debug: { label: 'Debug', tone: 'idle' },
  none: { label: 'No level', tone: 'idle' }
})

/** @returns the model of the page; `problem` holds what is wrong with the query or the files, if anything */
export async function logsModel (
  { deck, params: given, now }: { deck: Deck, params: URLSearchParams, now: () => number }
) {
  const params = withListsJoined(given)
  const present = presentSlots(deck)
  const slots = { present, gone: deck.logs.slots().filter((slot) => !present.includes(slot)) }
  try {
    const { texts, values } = parseLogQuery(params, now)
    const view = viewOf(values)
    const shown = view === 'live' ? await newestLines(deck, values, texts) : await foundLines(deck, values, texts)
    return { path: PATH, slots, levels: levelsOf(values.level, shown.lines), query: texts,
      selected: values.slot ?? null, view, problem: null, ...shown, markLinks: shown.lines.filter(({ isMark }) =>
        isMark
      ).map(({ slot }) => ({ label: `Only slot ${slot}`,
        url: `${PATH}${queryOf({ ...texts, slot: String(slot) })}#log-mark` })
      ), canonicalUrl: `${PATH}${queryOf(texts)}`, links: linksOf(texts, view, shown) }
  } catch (error) {
    return { path: PATH, slots, selected: Number(params.get('slot')) || null, ...withoutLines(error, params) }
  }
}

/** What a page of lines has where there are none to show. */
export function withoutLines (error: unknown, params: URLSearchParams) {
  const { status, title, message } = toDeckError(error)
  return { levels: levelsOf(undefined, []), query: givenFilters(params), view: 'older' as const,
    problem: { status, title, message }, lines: [], places: '', around: null, isCutShort: false, markLinks: [],
    links: null }
}

/**
 * The selected lines as a file: JSON for programs, text for people. In text of several logs each line begins with its
 * time and its log.
 * @throws {import('../errors.ts').DeckError} `invalid-query`, `not-found`, `rate-limited`, `timed-out`
 */
export async function logsFile (
  { deck, params, now, type }: { deck: Deck, params: URLSearchParams, now: () => number, type: FileType }
): Promise<string> {
  const { values } = parseLogQuery(withListsJoined(params), now)
  const entries = isSearch(values)
    ? await findForFile(deck, wantedOf(values))
    : mergeByTime((await lastLines(deck, { ...values, lines: DOWNLOAD_LINES })).map((page) => page.entries))
  if (type === 'text' && values.slot !== undefined && values.stream !== undefined)
    return entries.map(({ text }) => `${text}\n`).join('')
  return fileText(entries, type)
}

/** @returns as text each line begins with its time, whose it is, of several, and its log */
export function fileText (entries: readonly JoinedLine[], type: FileType): string {
  return entries.map((entry) => {
    if (type === 'ndjson') return `${JSON.stringify(entry)}\n`
    const { slot, stream, text, arrivedAt, member, app } = entry
    return `${
      [arrivedAt ?? '-', member ?? app, slot, stream].filter((each) => each !== undefined).join(' ')
    } | ${text}\n`
  }).join('')
}

/**
 * Searches on until a file has all lines that it may have, as nobody who reads a file sees that some are missing.
 * @throws {DeckError} as findLines(); also `timed-out`: after a minute
 */
async function findForFile (deck: Deck, query: Query): Promise<Entry[]> {
  let found: Entry[] = []
  let { cursor } = query
  for (let searches = 0; searches < MAX_SEARCHES; searches++) {
    const { items, next } = await findLines(deck, { ...query, lines: DOWNLOAD_LINES - found.length, cursor })
    found = [...items, ...found]
    if (next === null || found.length === DOWNLOAD_LINES || query.around !== undefined) return found
    cursor = next
  }
  throw new DeckError('timed-out', 'The search takes more than a minute; choose a slot, a stream or a shorter time')
}

/** A form sends a field for each level and app that is chosen. */
export function withListsJoined (given: URLSearchParams) {
  const params = new URLSearchParams(given)
  for (const name of ['level', 'app'])
    if (params.has(name)) params.set(name, params.getAll(name).filter(Boolean).join())
  return params
}

/** @returns the levels as filters, those without lines last; `count`: of the lines that are shown */
export function levelsOf (chosen: readonly string[] | undefined, lines: readonly { level: string }[]) {
  return LEVELS.map((value) => ({ value, ...LEVEL_NAMES[value], isChosen: chosen?.includes(value) ?? false,
    count: lines.filter(({ level }) => level === value).length })
  ).sort((one, other) => Number(one.count === 0) - Number(other.count === 0))
}

export function viewOf ({ around, until, cursor }: Pick<Query, 'around' | 'until' | 'cursor'>): View {
  if (around !== undefined) return 'around'
  return until === undefined && cursor === undefined ? 'live' : 'older'
}

/** Around a line there are all others; what was searched for is marked in them, and is the way back. */
export function wantedOf<Q extends Query> (query: Q): Q {
  return query.around === undefined ? query : { ...query, q: undefined, level: undefined }
}

async function newestLines (deck: Deck, query: Query, texts: Texts) {
  if (isSearch(query)) return await newestMatches(deck, query, texts)
  const { slot, stream } = query
  const pages = await lastLines(deck, { slot, stream, lines: SHOWN_LINES })
  const entries = mergeByTime(pages.map((page) => page.entries)).slice(-SHOWN_LINES)
  const toShown = lineMaker(texts)
  return {
    lines: entries.map((entry) =>
      toShown(entry, { isOpen: pages.some((page) => page.hasOpenLine && page.entries.at(-1) === entry) })
    ),
    places: formatPlaces(pages.map(({ log, end }) => ({ log, position: end }))),
    next: olderThan(pages, new Set(entries)),
    around: null,
    isCutShort: false
  }
}

/** What comes after these places is live; so each match is shown once. */
async function newestMatches (deck: Deck, query: Query, texts: Texts) {
  const pages = await lastLines(deck, { slot: query.slot, stream: query.stream, lines: 1 })
  const places = formatPlaces(pages.map(({ log, end }) => ({ log, position: end })))
  return { ...await foundLines(deck, { ...query, cursor: places }, texts), places }
}

async function foundLines (deck: Deck, query: Query, texts: Texts) {
  const { items, next } = await findLines(deck, { ...wantedOf(query), lines: SHOWN_LINES })
  const mark = markOf(items, query.around)
  const toShown = lineMaker(texts)
  return {
    lines: items.map((entry, index) => toShown(entry, { isMark: index === mark })),
    places: '',
    next,
    around: typeof query.around === 'number' ? new Date(query.around).toISOString() : null,
    // The search has a time limit, so a page that is not full may still have a next one.
    isCutShort: next !== null && items.length < SHOWN_LINES && query.around === undefined
  }
}

function markOf (items: Entry[], around: Query['around']): number {
  if (around === undefined) return -1
  if (typeof around === 'number')
    return items.findIndex(({ arrivedAt }) => arrivedAt !== null && Date.parse(arrivedAt) >= around)
  const own = formatPlace(around.log, around.position)
  return items.findIndex(({ place }) => place === own)
}

export function lineMaker ({ q, level }: Texts) {
  // A regular expression is marked by the browser: how long it takes depends on who wrote the line, and here others
  // wait.
  const findHits = createHits(q === undefined || isPattern(q) ? undefined : q)
  return (entry: Entry, how: { isOpen?: boolean, isMark?: boolean }) => ({ ...toLine(entry, { ...how, findHits }),
    url: `${PATH}${queryOf({ q, level, around: entry.place })}#log-mark` })
}

export function toLine ({ slot, stream, text, arrivedAt }: Omit<Entry, 'place'>,
  { isOpen = false, isMark = false, findHits }: { isOpen?: boolean, isMark?: boolean, findHits?: FindHits } = {}): Line
{
  const { raw, ...shown } = shownLine(text, arrivedAt)
  const level = levelOf(text, stream)
  return { slot, stream, level, tone: TONES[level], at: arrivedAt, ...shown,
    parts: findHits ? markHits(shown.parts, findHits(shown.text)) : shown.parts, raw: raw === shown.text ? null : raw,
    url: null, cutText: formatCount(shown.cutChars), isOpen, isMark }
}

/** @returns links; a link without a target is null */
function linksOf (texts: Texts, view: View, { lines, next }: { lines: Line[], next: string | null }) {
  const { slot, stream, q, level } = texts
  const query = queryOf(texts)
  const last = lines.findLast(({ at }) => at !== null)?.at
  const selection = queryOf({ slot, stream })
  return { ...fileLinks(query), poll: null,
    stream: view === 'live' ? `/api/v1/logs/stream${selection}${selection ? '&' : '?'}` : null,
    all: `${PATH}${selection}`,
    back: `${PATH}${queryOf(view === 'around' ? { q, level } : { ...texts, until: undefined, cursor: undefined })}`,
    older: next === null
      ? null
      : `${PATH}${queryOf(view === 'around' ? { slot, stream, cursor: next } : { ...texts, cursor: next })}`,
    later: view === 'around' && last ? `${PATH}${queryOf({ slot, stream, around: last })}` : null }
}

/** `query`: as queryOf() makes it */
export function fileLinks (query: string): Record<FileType, string> {
  return { text: `/logs.txt${query}`, ndjson: `/logs.ndjson${query}` }
}

/** @returns empty, or with its question mark */
export function queryOf (texts: Record<string, string | undefined>): string {
  const params = new URLSearchParams()
  for (const [name, text] of Object.entries(texts)) if (text !== undefined) params.set(name, text)
  return params.size === 0 ? '' : `?${params}`
}
