import { z } from 'zod'
import { DeckError } from '../../errors.js'
import { integerParam } from '../input.js'

/**
 * What the workers have written to stdout and stderr. The text is the app's, and anybody's who makes it log something.
 * @typedef {'stdout' | 'stderr'} Stream
 * @typedef {{ slot: number, stream: Stream }} Log
 */

const STREAMS = /** @type {const} */ (['stdout', 'stderr'])
const NDJSON_TYPE = 'application/x-ndjson'
const DEFAULT_LINES = 100
const MAX_LINES = 1000
// Of one log, and of all together.
const MIN_PAGE_BYTES = 4 * 1024
const MAX_PAGE_BYTES = 256 * 1024
const MAX_ANSWER_BYTES = 1024 * 1024
const HEARTBEAT_MS = 15_000
const TICK_MS = 100
// What a live tail reads of one log in one tick; one that falls further behind than MAX_LAG_BYTES goes on near the end.
const READ_BYTES = 64 * 1024
const MAX_LAG_BYTES = 512 * 1024
const MAX_UNSENT_BYTES = 256 * 1024

const WHICH = {
  slot: integerParam(1, 256),
  stream: z.enum(STREAMS).optional().describe('"stdout" or "stderr"')
}

/**
 * @param {object} parts
 * @param {{ logs: import('../../logs/logs.js').Logs }} parts.deck
 * @param {(req: import('node:http').IncomingMessage) => unknown} parts.authenticate
 * @param {Pick<typeof globalThis, 'setInterval' | 'clearInterval'>} parts.timers
 * @param {AbortSignal} parts.closing  aborted when the admin port closes
 * @returns {Record<string, import('../endpoint.js').Resource>}
 */
export function logResources ({ deck: { logs }, authenticate, timers, closing }) {
  return {
    '/logs': {
      GET: {
        query: z.strictObject({ ...WHICH, lines: integerParam(1, MAX_LINES) }),
        produces: ['application/json', NDJSON_TYPE],
        async handle ({ query, type, res }) {
          const items = await lastLines(query)
          if (type === 'application/json') return { body: { items: items.flatMap(({ entries }) => entries) } }
          res.set('Content-Type', `${NDJSON_TYPE}; charset=utf-8`)
          res.end(items.flatMap(({ entries }) => entries).map((entry) => `${JSON.stringify(entry)}\n`).join(''))
          return undefined
        }
      }
    },

    '/logs/stream': {
      GET: {
        query: z.strictObject({ ...WHICH, lines: integerParam(0, MAX_LINES) }),
        produces: ['text/event-stream'],
        async handle ({ query, req, res }) {
          const past = await lastLines({ ...query, lines: query.lines || 1 })
          res.set({ 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' })
          if (req.method === 'HEAD') res.end()
          else follow(query, { req, res, past, isPastWanted: Boolean(query.lines) })
          return undefined
        }
      }
    }
  }

  /** @param {number} slot */
  function checkSlot (slot) {
    if (!logs.slots().includes(slot)) throw new DeckError('not-found', `Slot ${slot} has no logs`)
  }

  /** @param {{ slot?: number, stream?: Stream }} query @returns {Log[]} */
  function wanted ({ slot, stream }) {
    return (slot ? [slot] : logs.slots()).flatMap((one) => (stream ? [stream] : STREAMS).map((each) => ({ slot: one, stream: each })))
  }

  /**
   * One log after the other: a line does not say when it was written.
   * @param {{ slot?: number, stream?: Stream, lines?: number }} query
   */
  async function lastLines (query) {
    if (query.slot) checkSlot(query.slot)
    const all = wanted(query)
    const maxBytes = Math.max(MIN_PAGE_BYTES, Math.min(MAX_PAGE_BYTES, Math.floor(MAX_ANSWER_BYTES / all.length)))
    const pages = []
    for (const log of all) {
      const { lines, end, hasOpenLine } = await logs.page({ ...log, lines: query.lines ?? DEFAULT_LINES, maxBytes })
      pages.push({ log, end, hasOpenLine, entries: lines.map((text) => ({ ...log, text })) })
    }
    return pages
  }

  /**
   * @param {{ slot?: number, stream?: Stream }} query
   * @param {{ req: import('express').Request, res: import('express').Response, past: Awaited<ReturnType<typeof lastLines>>, isPastWanted: boolean }} connection
   */
  function follow (query, { req, res, past, isPastWanted }) {
    /** @type {Map<string, { log: Log, cursor: ReturnType<typeof logs.cursor> }>} */
    const cursors = new Map()
    for (const { log, end } of past) open(log, end)
    let isReading = false

    const ticker = timers.setInterval(tick, TICK_MS)
    const heartbeat = timers.setInterval(() => write(': heartbeat\n\n'), HEARTBEAT_MS)
    const end = () => { res.end() }
    closing.addEventListener('abort', end)
    res.once('close', () => {
      timers.clearInterval(ticker)
      timers.clearInterval(heartbeat)
      closing.removeEventListener('abort', end)
    })
    write('retry: 3000\n\n')
    // What has no end yet comes once it has.
    for (const { entries, hasOpenLine } of isPastWanted ? past : []) entries.slice(0, hasOpenLine ? -1 : undefined).forEach(send)
    if (closing.aborted) end()

    /** @param {Log} log @param {number} position */
    function open (log, position) {
      const key = `${log.slot}.${log.stream}`
      if (!cursors.has(key)) cursors.set(key, { log, cursor: logs.cursor(log.slot, log.stream, position) })
    }

    function isOpen () {
      return !res.writableEnded && !res.destroyed
    }

    // What its reader has not taken yet is not read on: the files keep it.
    async function tick () {
      if (isReading || !isOpen() || res.writableLength > MAX_UNSENT_BYTES) return
      isReading = true
      // A slot that has come since is told from its beginning.
      for (const log of wanted(query)) open(log, logs.begin(log.slot)[log.stream])
      try {
        for (const each of cursors.values()) await advance(each)
      } catch {
        // EIO, EMFILE: the reader comes again.
        end()
      } finally {
        isReading = false
      }
    }

    /** @param {{ log: Log, cursor: ReturnType<typeof logs.cursor> }} each */
    async function advance ({ log, cursor }) {
      const lag = cursor.lag()
      if (lag === 0 || !isOpen()) return
      const skipped = lag > MAX_LAG_BYTES ? cursor.skipTo(READ_BYTES) : 0
      const { lines, lost } = await cursor.read(READ_BYTES)
      if (skipped + lost > 0) write(`event: dropped\ndata: ${JSON.stringify({ ...log, bytes: skipped + lost })}\n\n`)
      for (const text of lines) send({ ...log, text })
    }

    /** @param {Log & { text: string }} entry */
    function send (entry) {
      write(`data: ${JSON.stringify(entry)}\n\n`)
    }

    /** @param {string} text */
    function write (text) {
      if (!isOpen()) return
      // Signed out, or the session is over: this stream must not outlive it.
      if (!authenticate(req)) end()
      else res.write(text)
    }
  }
}
