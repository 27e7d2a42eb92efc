import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { HOSTS, OF_MEMBER } from '../api/ask.ts'
import { operation, type Call, type Resource } from '../api/endpoint.ts'
import { pageOf } from '../api/fields.ts'
import { fleetLines } from '../fleet/api-logs.ts'
import { integerParam, textParam } from '../api/input.ts'
import { LOG_LINE, MAX_LINES, PLACES, SELECTION, findLines, formatPlace, formatPlaces, isSearch, lastLines, lineFilters,
  mergeByTime, olderThan, parsePlaces, selectedLogs, toTime } from './api-lines.ts'
import { admitStream, EVENT_STREAM, openStream, serverSentEvent, type StreamParts } from '../api/server-sent-events.ts'
import { nextTurn } from '../api/turn.ts'
import type { Request } from 'express'
import type { Deck, Entry, Log, Page } from './api-lines.ts'
import type { FleetDeck } from '../fleet/api.ts'

/**
 * Output of the workers on stdout and stderr. The text is hostile input, as users of the app can make it log something.
 */

const LINE = LOG_LINE.extend({ member: z.string().optional().describe('whose it is, of several') }).meta({
  id: 'LogLine'
})
const NDJSON_TYPE = 'application/x-ndjson'
const TICK_MS = 100
/** The same limit while the stream is about to end. */
const READ_OUT_MS = 5
// What a live tail reads of all its logs in one tick, and of one; one that falls further behind than MAX_LAG_BYTES
// goes on near the end.
const TICK_BYTES = 512 * 1024
const READ_BYTES = 64 * 1024
const MIN_READ_BYTES = 2 * 1024
const MAX_LAG_BYTES = 512 * 1024
const MAX_UNSENT_BYTES = 256 * 1024

export function logResources ({ deck, now }: { deck: Deck & FleetDeck, now: () => number },
  stream: StreamParts): Record<string, Resource>
{
  const { logs } = deck

  return {
    '/logs': {
      GET: operation({ name: 'listLogLines',
        summary: 'Returns the last lines of the workers\' output, or the matching ones, oldest first',
        description:
          'Without filters, the last `lines` of each log. With `q`, `level`, `since`, `until` or `cursor`, the newest `lines` that match in the files. ' +
          '`next` continues the search, also after it has stopped at its time limit. With `around`, half of the lines are before that time or line and ' +
          'half after it. A line that says no level is `none`; on stderr the word "error", an exception or a frame of a stack says `error`. Removed slots are left out unless `slot` names one. ' +
          'Each of several members has 6 seconds to search its own files, and its clock says when a line was written; they have at most 200 ' +
          'lines together, as JSON alone. While NATS is away only this host answers.', role: 'viewer',
        cli: 'clusterdeck logs',
        query: z.strictObject({ ...SELECTION, lines: integerParam(1, MAX_LINES), ...lineFilters(now),
          member: OF_MEMBER }), produces: ['application/json', NDJSON_TYPE],
        problems: ['not-found', 'rate-limited', 'stopping', 'timed-out', 'no-fleet', 'fleet-away'],
        answer: { 'application/json': pageOf(LINE).extend({ hosts: HOSTS.optional() }),
          [NDJSON_TYPE]: z.string().describe('a LogLine in each line') },
        async handle ({ query: { member, ...query }, type, res, auth }) {
          if (member !== undefined && type !== 'application/json')
            throw new DeckError('not-acceptable', 'Lines of several hosts are JSON alone')
          const page = member !== undefined
            ? await fleetLines(deck, { ...query, member }, auth)
            : isSearch(query)
            ? await findLines(deck, query)
            : lastPage(await lastLines(deck, query))
          if (type === 'application/json') return { body: page }
          res.set('Content-Type', `${NDJSON_TYPE}; charset=utf-8`)
          res.end(page.items.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
          return undefined
        } })
    },

    '/logs/stream': {
      GET: operation({ name: 'followLogLines',
        summary: 'Streams the workers\' output as it is written, as server-sent events',
        description:
          'Each `data` is a LogLine. The ids are places in the logs; `Last-Event-ID` or `from` continues from one. ' +
          'A reader that is too slow misses lines; an event `dropped` says how many bytes.', role: 'viewer',
        cli: 'clusterdeck logs --follow',
        headers: {
          'Last-Event-ID': z.union([z.literal(''), z.string().regex(PLACES)]).optional().describe(
            'the id of the last event that was read'
          )
        }, problems: ['not-found'],
        answer: {
          [EVENT_STREAM]: serverSentEvent('a LogLine; of `dropped` the log, and how many bytes', ['message', 'dropped'])
        },
        query: z.strictObject({ ...SELECTION, lines: integerParam(0, MAX_LINES),
          from: textParam('the id of an event of this stream, such as 1o4096-1e0', PLACES) }), produces: [EVENT_STREAM],
        async handle (call) {
          admitStream(call, stream)
          const { query } = call
          const places = placesOf(call.req, query)
          const past = await lastLines(deck, { ...query, lines: query.lines || 1 })
          followLogs(call, { places: places ?? past.map(({ log, end }) => ({ log, position: end })),
            past: !places && query.lines ? past : [] })
          return undefined
        } })
    }
  }

  function followLogs (call: Call, { places, past }: {
    /** where to begin */
    places: { log: Log, position: number }[],
    /** to be told before */
    past: Page[]
  }) {
    const cursors: Map<string, { log: Log, cursor: ReturnType<typeof logs.cursor> }> = new Map()
    const known = new Map(places.map(({ log, position }) => [keyOf(log), position]))
    let isReading = false
    openAll()
    const { res, write, end, isOpen } = openStream(call, stream, { onClosing: readOut })
    const ticker = stream.timers.setInterval(readNew, TICK_MS)
    res.once('close', () => stream.timers.clearInterval(ticker))
    // A line without an end is sent once it ends.
    const told = mergeByTime(past.map(({ entries, hasOpenLine }) => entries.slice(0, hasOpenLine ? -1 : undefined)))
      .map(toMessage)
    sendMessages(told)
    // The first id lets a reader reconnect that has not received a line yet.
    if (told.length === 0) write(`id: ${placeText()}\n\n`)

    // Sends the last lines of the workers; a reader that is too slow is cut off with the admin port.
    async function readOut () {
      while (isOpen() && isBehind())
        await Promise.all([readNew(), new Promise((resolve) => setTimeout(resolve, READ_OUT_MS))])
      end()
    }

    function isBehind () {
      return isReading || [...cursors.values()].some(({ cursor }) => cursor.lag() > 0)
    }

    // A new slot is read from its beginning.
    function openAll () {
      for (const log of selectedLogs(logs, call.query)) {
        const key = keyOf(log)
        if (!cursors.has(key))
          cursors.set(key, { log,
            cursor: logs.cursor(log.slot, log.stream, known.get(key) ?? logs.begin(log.slot)[log.stream]) })
      }
    }

    // Nothing more is read until the reader has taken what was sent.
    async function readNew () {
      if (isReading || !isOpen() || res.writableLength > MAX_UNSENT_BYTES) return
      isReading = true
      openAll()
      try {
        const late = [...cursors.values()].filter(({ cursor }) => cursor.lag() > 0)
        const share = Math.max(MIN_READ_BYTES, Math.min(READ_BYTES, Math.floor(TICK_BYTES / late.length)))
        const read = []
        for (const each of late) read.push(await readLog(each, share))
        if (isOpen())
          sendMessages([...read.flatMap(({ dropped }) => dropped), ...mergeByTime(read.map(({ entries }) =>
            entries
          )).map(toMessage)])
      } catch {
        // EIO, EMFILE: the reader can reconnect.
        end()
      } finally {
        isReading = false
      }
    }

    async function readLog ({ log, cursor }: { log: Log, cursor: ReturnType<typeof logs.cursor> }, maxBytes: number) {
      await nextTurn()
      if (!isOpen()) return { dropped: [], entries: [] }
      const skipped = cursor.lag() > MAX_LAG_BYTES ? cursor.skipTo(maxBytes) : 0
      const { lines, ends, start, lost } = await cursor.read(maxBytes)
      const starts = [start, ...ends()]
      const arrivals = await logs.arrivals(log, starts.slice(1))
      const dropped = skipped + lost > 0
        ? [`event: dropped\ndata: ${JSON.stringify({ ...log, bytes: skipped + lost })}\n`]
        : []
      return { dropped,
        entries: lines.map((text, index) => ({ ...log, text, arrivedAt: toTime(arrivals[index]),
          place: formatPlace(log, starts[index]) })
        ) }
    }

    /** Their last one has the id with which a reader goes on behind them. */
    function sendMessages (messages: string[]) {
      if (messages.length === 0) return
      write(
        `${messages.slice(0, -1).map((message) => `${message}\n`).join('')}id: ${placeText()}\n${messages.at(-1)}\n`
      )
    }

    function placeText () {
      return formatPlaces([...cursors.values()].map(({ log, cursor }) => ({ log, position: cursor.position })))
    }
  }
}

/**
 * The place of a reader before it lost the connection; a browser sends it by itself.
 * @throws {DeckError} `invalid-query`
 */
function placesOf (req: Request, { lines, from }: { lines?: number, from?: string }) {
  if (from !== undefined && lines !== undefined)
    throw new DeckError('invalid-query', 'from: expected without lines, received both')
  const last = req.headers['last-event-id']
  if (last) return parsePlaces(String(last), 'Last-Event-ID')
  return from === undefined ? null : parsePlaces(from, 'from')
}

function keyOf ({ slot, stream }: Log) {
  return `${slot}.${stream}`
}

function lastPage (pages: Page[]) {
  return { items: mergeByTime(pages.map(({ entries }) => entries)), next: olderThan(pages) }
}

function toMessage (entry: Entry) {
  return `data: ${JSON.stringify(entry)}\n`
}
