import { formatCount, shownLine } from '../../public/log-text.js'
import { findLines, formatPlaces, isSearch, lastLines, mergeByTime, olderThan, parseLogQuery, presentSlots } from '../api/log-lines.js'
import { toDeckError } from '../problem.js'
import { givenFilters } from './history-filters.js'

/**
 * The first content of the page of the logs: the last lines, which continue live, or the results of a search, or the lines
 * around a time.
 * @typedef {import('../api/log-lines.js').Deck} Deck
 * @typedef {import('../api/log-lines.js').Entry} Entry
 * @typedef {'live' | 'search' | 'around'} View
 * @typedef {Partial<Record<'slot' | 'stream' | 'q' | 'since' | 'until' | 'around' | 'cursor', string>>} Texts  as in the URL
 * @typedef {ReturnType<typeof shownLine> & {
 *   slot: number,
 *   stream: import('../api/log-lines.js').Stream,
 *   at: string | null,
 *   cutText: string,
 *   isOpen: boolean,
 *   isMark: boolean
 * }} Line
 *   `isOpen`: the line has no end yet and will be sent again; `isMark`: the first line after the requested time
 */

const SHOWN_LINES = 200
const DOWNLOAD_LINES = 1000

/**
 * @param {{ deck: Deck, params: URLSearchParams, now: () => number }} parts
 * @returns the model of the page; `problem` holds what is wrong with the query or the files, if anything
 */
export async function logsModel ({ deck, params, now }) {
  const present = presentSlots(deck)
  const slots = { present, gone: deck.logs.slots().filter((slot) => !present.includes(slot)) }
  try {
    const { texts, values } = parseLogQuery(params, now)
    const view = viewOf(values)
    const shown = view === 'live' ? await newestLines(deck, values) : await foundLines(deck, values)
    return {
      slots,
      query: texts,
      selected: values.slot ?? null,
      view,
      problem: null,
      ...shown,
      canonicalUrl: `/logs${queryOf(texts)}`,
      links: linksOf(texts, view, shown)
    }
  } catch (error) {
    const { status, title, message } = toDeckError(error)
    return {
      slots,
      query: givenFilters(params),
      selected: Number(params.get('slot')) || null,
      view: 'search',
      problem: { status, title, message },
      lines: [],
      places: '',
      around: null,
      isCutShort: false,
      links: null
    }
  }
}

/**
 * The selected lines as a file: JSON for programs, text for people. In text of several logs each line begins with its time
 * and its log.
 * @param {{ deck: Deck, params: URLSearchParams, now: () => number, type: 'text' | 'ndjson' }} parts
 * @returns {Promise<string>}
 * @throws {import('../errors.js').DeckError} `invalid-query`, `not-found`, `rate-limited`, `timed-out`
 */
export async function logsFile ({ deck, params, now, type }) {
  const { values } = parseLogQuery(params, now)
  const entries = isSearch(values)
    ? (await findLines(deck, { ...values, lines: DOWNLOAD_LINES })).items
    : mergeByTime((await lastLines(deck, { ...values, lines: DOWNLOAD_LINES })).map((page) => page.entries))
  if (type === 'ndjson') return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  const isOne = values.slot !== undefined && values.stream !== undefined
  return entries.map(({ slot, stream, text, arrivedAt }) => isOne ? `${text}\n` : `${arrivedAt ?? '-'} ${slot} ${stream} | ${text}\n`).join('')
}

/** @param {import('../api/log-lines.js').Query} query @returns {View} */
function viewOf (query) {
  if (query.around !== undefined) return 'around'
  return isSearch(query) ? 'search' : 'live'
}

/** @param {Deck} deck @param {import('../api/log-lines.js').Query} query */
async function newestLines (deck, { slot, stream }) {
  const pages = await lastLines(deck, { slot, stream, lines: SHOWN_LINES })
  const entries = mergeByTime(pages.map((page) => page.entries)).slice(-SHOWN_LINES)
  return {
    lines: entries.map((entry) => toLine(entry, { isOpen: pages.some((page) => page.hasOpenLine && page.entries.at(-1) === entry) })),
    places: formatPlaces(pages.map(({ log, end }) => ({ log, position: end }))),
    next: olderThan(pages, new Set(entries)),
    around: null,
    isCutShort: false
  }
}

/** @param {Deck} deck @param {import('../api/log-lines.js').Query} query */
async function foundLines (deck, query) {
  const { items, next } = await findLines(deck, { ...query, lines: SHOWN_LINES })
  const around = query.around === undefined ? null : new Date(query.around).toISOString()
  const mark = around === null ? -1 : items.findIndex(({ arrivedAt }) => arrivedAt !== null && arrivedAt >= around)
  return {
    lines: items.map((entry, index) => toLine(entry, { isMark: index === mark })),
    places: '',
    next,
    around,
    // The search has a time limit, so a page that is not full may still have a next one.
    isCutShort: next !== null && items.length < SHOWN_LINES && around === null
  }
}

/** @param {Entry} entry @param {{ isOpen?: boolean, isMark?: boolean }} how @returns {Line} */
export function toLine ({ slot, stream, text, arrivedAt }, { isOpen = false, isMark = false }) {
  const shown = shownLine(text)
  return { slot, stream, at: arrivedAt, ...shown, cutText: formatCount(shown.cutChars), isOpen, isMark }
}

/**
 * @param {Texts} texts @param {View} view @param {{ lines: Line[], next: string | null }} shown
 * @returns links; a link without a target is null
 */
function linksOf (texts, view, { lines, next }) {
  const { slot, stream } = texts
  const query = queryOf(texts)
  const last = lines.findLast(({ at }) => at !== null)?.at
  return {
    text: `/logs.txt${query}`,
    ndjson: `/logs.ndjson${query}`,
    stream: view === 'live' ? `/api/v1/logs/stream${query}${query ? '&' : '?'}` : null,
    live: `/logs${queryOf({ slot, stream })}`,
    newest: texts.cursor ? `/logs${queryOf({ ...texts, cursor: undefined })}` : null,
    older: next === null ? null : `/logs${queryOf(view === 'around' ? { slot, stream, cursor: next } : { ...texts, cursor: next })}`,
    later: view === 'around' && last ? `/logs${queryOf({ slot, stream, around: last })}` : null
  }
}

/** @param {Texts} texts @returns {string} empty, or with its question mark */
function queryOf (texts) {
  const params = new URLSearchParams()
  for (const [name, text] of Object.entries(texts)) if (text !== undefined) params.set(name, text)
  return params.size === 0 ? '' : `?${params}`
}
