import { z } from 'zod'
import { DeckError } from '../errors.js'
import { integerParam, parseFields } from './input.js'

/**
 * The last lines of the workers' output, and the places in it from which a reader goes on.
 * @typedef {'stdout' | 'stderr'} Stream
 * @typedef {{ slot: number, stream: Stream }} Log
 * @typedef {{ slot?: number, stream?: Stream }} Selection  all slots, both streams, unless said otherwise
 * @typedef {import('../logs/logs.js').Logs} Logs
 * @typedef {{ log: Log, end: number, hasOpenLine: boolean, entries: (Log & { text: string })[] }} Page
 *   `end`: where a cursor goes on; `hasOpenLine`: the last entry has no end yet, and the cursor will read it again
 */

export const STREAMS = /** @type {const} */ (['stdout', 'stderr'])
export const MAX_LINES = 1000
const DEFAULT_LINES = 100
// Of one log, and of all together.
const MIN_PAGE_BYTES = 4 * 1024
const MAX_PAGE_BYTES = 256 * 1024
const MAX_ANSWER_BYTES = 1024 * 1024
const PLACES = /^(?:\d{1,3}[oe]\d{1,15}(?:-(?=\d)|$)){1,512}$/

/** Which logs are meant, as a query says it. */
export const SELECTION = {
  slot: integerParam(1, 256),
  stream: z.enum(STREAMS).optional().describe('"stdout" or "stderr"')
}

const SELECTION_QUERY = z.strictObject(SELECTION)

/**
 * @param {URLSearchParams} params of a page
 * @returns {Selection}
 * @throws {DeckError} `invalid-query`
 */
export function parseSelection (params) {
  return parseFields(SELECTION_QUERY, params).values
}

/** @param {Logs} logs @param {Selection} selection @returns {Log[]} */
export function selectedLogs (logs, { slot, stream }) {
  return (slot ? [slot] : logs.slots()).flatMap((one) => (stream ? [stream] : STREAMS).map((each) => ({ slot: one, stream: each })))
}

/**
 * One log after the other: a line does not say when it was written.
 * @param {Logs} logs
 * @param {Selection & { lines?: number }} query
 * @returns {Promise<Page[]>}
 * @throws {DeckError} `not-found`
 */
export async function lastLines (logs, query) {
  if (query.slot && !logs.slots().includes(query.slot)) throw new DeckError('not-found', `Slot ${query.slot} has no logs`)
  const all = selectedLogs(logs, query)
  const maxBytes = Math.max(MIN_PAGE_BYTES, Math.min(MAX_PAGE_BYTES, Math.floor(MAX_ANSWER_BYTES / all.length)))
  const pages = []
  for (const log of all) {
    const { lines, end, hasOpenLine } = await logs.page({ ...log, lines: query.lines ?? DEFAULT_LINES, maxBytes })
    pages.push({ log, end, hasOpenLine, entries: lines.map((text) => ({ ...log, text })) })
  }
  return pages
}

/**
 * A text for a URL and for the id of a server-sent event, since a browser that reconnects sends no more than that. A byte
 * of a log keeps its number over rotation and over a change of masters, so these places do.
 * @param {Iterable<{ log: Log, position: number }>} places @returns {string} `1o4096-1e0-2o77`: slot, stream, byte
 */
export function formatPlaces (places) {
  return Array.from(places, ({ log: { slot, stream }, position }) => `${slot}${stream === 'stdout' ? 'o' : 'e'}${position}`).join('-')
}

/**
 * @param {string} text @param {string} source what the caller gave it in
 * @returns {{ log: Log, position: number }[]}
 * @throws {DeckError} `invalid-query`
 */
export function parsePlaces (text, source) {
  if (!PLACES.test(text)) throw new DeckError('invalid-query', `${source}: expected the id of an event of this stream, such as 1o4096-1e0, received ${JSON.stringify(text.slice(0, 60))}`)
  return text.split('-').map((place) => {
    const [, slot, letter, position] = /** @type {RegExpExecArray} */ (/^(\d+)([oe])(\d+)$/.exec(place))
    return { log: { slot: Number(slot), stream: letter === 'o' ? 'stdout' : 'stderr' }, position: Number(position) }
  })
}
