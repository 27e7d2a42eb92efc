import { formatCount, shownLine } from '../../public/log-text.js'
import { formatPlaces, lastLines, parseSelection } from '../api/log-lines.js'
import { toDeckError } from '../api/problem.js'

/**
 * What the page of the logs shows before anything comes by itself.
 * @typedef {import('../api/log-lines.js').Logs} Logs
 * @typedef {import('../api/log-lines.js').Page} Page
 * @typedef {ReturnType<typeof shownLine> & { slot: number, stream: import('../api/log-lines.js').Stream, cutText: string, isOpen: boolean }} Line
 *   `isOpen`: it has no end yet, and will come again
 */

const SHOWN_LINES = 100
const DOWNLOAD_LINES = 1000

/**
 * @param {{ logs: Logs, params: URLSearchParams }} parts
 * @returns the model of the page; `problem` holds what is wrong with the selection or the files, if anything
 */
export async function logsModel ({ logs, params }) {
  const slots = logs.slots()
  try {
    const selection = parseSelection(params)
    const pages = await lastLines(logs, { ...selection, lines: SHOWN_LINES })
    const written = fairShare(pages.filter(({ entries }) => entries.length > 0), SHOWN_LINES)
    return {
      slots,
      selection,
      problem: null,
      places: formatPlaces(pages.map(({ log, end }) => ({ log, position: end }))),
      lines: written.flatMap(toLines),
      // A line does not say when it was written, so what is there already cannot be put in order.
      isInOrder: written.length < 2,
      canonicalUrl: `/logs${queryOf(selection)}`,
      urls: urlsOf(selection)
    }
  } catch (error) {
    const { status, title, message } = toDeckError(error)
    return { slots, selection: blankSelection(params), problem: { status, title, message }, places: '', lines: [], isInOrder: true, urls: null }
  }
}

/**
 * What is selected, as a file: for people with its log in front of each line where there are several, for programs as JSON.
 * @param {{ logs: Logs, params: URLSearchParams, type: 'text' | 'ndjson' }} parts
 * @returns {Promise<string>}
 * @throws {import('../errors.js').DeckError} `invalid-query`, `not-found`
 */
export async function logsFile ({ logs, params, type }) {
  const pages = await lastLines(logs, { ...parseSelection(params), lines: DOWNLOAD_LINES })
  const entries = pages.flatMap(({ entries }) => entries)
  if (type === 'ndjson') return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  return entries.map(({ slot, stream, text }) => pages.length === 1 ? `${text}\n` : `${slot} ${stream} | ${text}\n`).join('')
}

/**
 * Each log gets as many lines as any other, but for those that have fewer.
 * @param {Page[]} pages @param {number} most of all together
 * @returns {Page[]}
 */
function fairShare (pages, most) {
  let left = most
  const shares = new Map()
  const shortFirst = pages.toSorted((a, b) => a.entries.length - b.entries.length)
  for (const [index, page] of shortFirst.entries()) {
    const share = Math.min(page.entries.length, Math.floor(left / (pages.length - index)))
    shares.set(page, share)
    left -= share
  }
  return pages.map((page) => ({ ...page, entries: page.entries.slice(page.entries.length - shares.get(page)) }))
}

/** @param {Page} page @returns {Line[]} */
function toLines ({ entries, hasOpenLine }) {
  return entries.map(({ slot, stream, text }, index) => {
    const shown = shownLine(text)
    return { slot, stream, ...shown, cutText: formatCount(shown.cutChars), isOpen: hasOpenLine && index === entries.length - 1 }
  })
}

/** @param {import('../api/log-lines.js').Selection} selection */
function urlsOf (selection) {
  const query = queryOf(selection)
  return { text: `/logs.txt${query}`, ndjson: `/logs.ndjson${query}`, stream: `/api/v1/logs/stream${query}${query ? '&' : '?'}` }
}

/** @param {import('../api/log-lines.js').Selection} selection @returns {string} empty, or from its question mark on */
function queryOf (selection) {
  const params = new URLSearchParams(Object.entries(selection).map(([name, value]) => /** @type {[string, string]} */ ([name, String(value)])))
  return params.size === 0 ? '' : `?${params}`
}

/** So that the fields show what was asked for, if they can. @param {URLSearchParams} params */
function blankSelection (params) {
  const slot = Number(params.get('slot'))
  const stream = params.get('stream')
  return { ...(slot > 0 ? { slot } : {}), ...(stream === 'stdout' || stream === 'stderr' ? { stream } : {}) }
}
