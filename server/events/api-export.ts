import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorCode } from '../errors.ts'
import { pageAfter } from '../api/full-page.ts'
import { nextTurn } from '../api/turn.ts'
import type { Request, Response } from 'express'
import type { DeckEvent } from './stream.ts'
import type { EventQuery } from '../../db/event-search.ts'
import type { History } from '../../db/history.ts'
import type { Log } from '../system/log.ts'

/**
 * The history as a file. It is read in slices, to spare the event loop and the memory of the master. A slow reader
 * slows down the reading of the database by backpressure.
 */

export const CSV_TYPE = 'text/csv'
export const NDJSON_TYPE = 'application/x-ndjson'

const SLICE = 200
// An event may hold a stack of many kilobytes, so a slice is also limited by size.
const CHUNK_CHARS = 64 * 1024

const COLUMNS: readonly (keyof DeckEvent)[] = Object.freeze(['id', 'at', 'type', 'cause', 'slot', 'worker', 'pid',
  'release', 'rollout', 'actor', 'code', 'signal', 'uptimeMs', 'message', 'detail'])

const FILES: Readonly<Record<string, string>> = Object.freeze({ [CSV_TYPE]: 'clusterdeck-events.csv',
  [NDJSON_TYPE]: 'clusterdeck-events.ndjson' })

/** `first`: those of several apps have one more column */
function formatOf (type: string, [first]: DeckEvent[]): { head: string, line: (event: DeckEvent) => string } {
  if (type === NDJSON_TYPE) return { head: '', line: (event) => `${JSON.stringify(event)}\n` }
  const columns = first?.app === undefined ? COLUMNS : [...COLUMNS, 'app' as const]
  return { head: `${columns.join(',')}\r\n`,
    line: (event) => `${columns.map((column) => csvCell(event[column])).join(',')}\r\n` }
}

/** Ends when everything is sent or the caller has gone. */
export async function sendExport ({ history, query, type, req, res, log }: {
  history: Pick<History, 'page'>,
  /** `limit`: at most so many in all */
  query: EventQuery,
  type: string,
  req: Request,
  res: Response,
  log: Pick<Log, 'warn'>
}): Promise<undefined> {
  // The first slice is read before the status line is sent, so that a failure still gets its own status.
  const first = history.page({ ...query, limit: Math.min(SLICE, query.limit ?? SLICE) })
  res.set({ 'Content-Type': `${type}; charset=utf-8`, 'Content-Disposition': `attachment; filename="${FILES[type]}"` })
  if (req.method === 'HEAD') {
    res.end()
    return
  }
  try {
    await pipeline(
      Readable.from(exportChunks({ history, query, type, first }), { objectMode: false, highWaterMark: 1 }),
      res
    )
  } catch (error) {
    // The connection is cut then, so the reader sees that the file is not whole.
    if (errorCode(error) !== 'ERR_STREAM_PREMATURE_CLOSE')
      log.warn({ err: error }, 'an export of the history ended early')
  }
}

/** Yields the text of an export, a part in each turn of the event loop. */
export async function* exportChunks (
  { history, query, type, first }: { history: Pick<History, 'page'>, query: EventQuery, type: string,
    first: { items: DeckEvent[], next: string | null } }
) {
  const format = formatOf(type, first.items)
  let left = query.limit ?? Infinity
  let page = first
  if (format.head) yield format.head
  while (true) {
    left -= page.items.length
    for (const chunk of toChunks(page.items, format.line)) {
      yield chunk
      await nextTurn()
    }
    if (page.next === null || left <= 0) return
    page = pageAfter(history, { ...query, limit: Math.min(SLICE, left), cursor: page.next })
  }
}

function* toChunks (events: DeckEvent[], line: (event: DeckEvent) => string) {
  let chunk = ''
  for (const event of events) {
    chunk += line(event)
    if (chunk.length < CHUNK_CHARS) continue
    yield chunk
    chunk = ''
  }
  // The event loop turns even if a page has no event: a search that finds little reads many pages.
  yield chunk
}

/** Escapes formulas, as spreadsheets run them (OWASP, "CSV Injection") and messages hold text of the app. */
export function csvCell (value: unknown) {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  // Where the decimal separator is a comma, a semicolon or a tab ends a cell.
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
