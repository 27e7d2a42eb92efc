import { setImmediate as nextTurn } from 'node:timers/promises'
import { DeckError } from '../errors.js'

/**
 * Events as they happen, as server-sent events (WHATWG HTML, 9.2). A reader that was away sends Last-Event-ID and gets
 * what it missed first; one that reads too slowly is cut off, and does just that.
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 */

const HEARTBEAT_MS = 15_000
const MAX_REPLAY = 10_000
const REPLAY_SLICE = 100
const MAX_UNSENT_BYTES = 1024 * 1024

/**
 * @param {object} parts
 * @param {any} parts.deck
 * @param {any} parts.history
 * @param {(req: import('node:http').IncomingMessage) => unknown} parts.authenticate
 * @param {Pick<typeof globalThis, 'setInterval' | 'clearInterval'>} parts.timers
 * @param {AbortSignal} parts.closing  aborted when the admin port closes
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function eventFeedResources ({ deck, history, authenticate, timers, closing }) {
  return {
    '/events/stream': {
      GET: {
        produces: ['text/event-stream'],
        async handle ({ req, res }) {
          const after = lastEventId(req.headers['last-event-id'])
          res.set({ 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' })
          if (req.method === 'HEAD') {
            res.end()
            return undefined
          }
          res.write('retry: 3000\n\n')
          const feed = openFeed(req, res)
          if (after !== null) await replay(after, feed)
          feed.goLive()
          return undefined
        }
      }
    }
  }

  /** @param {import('express').Request} req @param {import('express').Response} res */
  function openFeed (req, res) {
    let isLive = false
    const unsubscribe = deck.events.subscribe((/** @type {DeckEvent} */ event) => { if (isLive) send(event) })
    const heartbeat = timers.setInterval(() => write(': heartbeat\n\n'), HEARTBEAT_MS)
    const end = () => { res.end() }
    closing.addEventListener('abort', end)
    res.once('close', () => {
      unsubscribe()
      timers.clearInterval(heartbeat)
      closing.removeEventListener('abort', end)
    })
    if (closing.aborted) end()

    return {
      res,
      write,
      send,
      isOpen: () => !res.writableEnded && !res.destroyed,
      goLive () { isLive = true }
    }

    function send (/** @type {DeckEvent} */ event) {
      write(`id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`)
    }

    function write (/** @type {string} */ text) {
      if (res.writableEnded || res.destroyed) return
      // Signed out, or the session is over: this stream must not outlive it.
      if (!authenticate(req)) end()
      else if (isLive && res.writableLength > MAX_UNSENT_BYTES) res.destroy()
      else res.write(text)
    }
  }

  /**
   * Ids ascend without reuse, so the past is read by id until it has caught up with the present, a slice a turn and no
   * faster than the reader takes it.
   * @param {number} after @param {ReturnType<typeof openFeed>} feed
   */
  async function replay (after, feed) {
    let id = Math.max(after + 1, deck.events.lastId - MAX_REPLAY + 1)
    if (id > after + 1) feed.write(`: events ${after + 1} to ${id - 1} are left out, read them from /api/v1/events\n\n`)
    for (; id <= deck.events.lastId && feed.isOpen(); id++) {
      const event = readEvent(id)
      if (event) feed.send(event)
      if (feed.res.writableNeedDrain) await drained(feed.res)
      else if (id % REPLAY_SLICE === 0) await nextTurn()
    }
  }

  // While the database fails, the present is still worth following.
  function readEvent (/** @type {number} */ id) {
    try {
      return history.event(id)
    } catch {
      return null
    }
  }
}

/** @param {import('node:http').ServerResponse} res */
function drained (res) {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    const done = () => {
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.once('drain', done).once('close', done)
  }))
}

/** @param {string | string[] | undefined} header @returns {number | null} */
function lastEventId (header) {
  if (header === undefined || header === '') return null
  if (/^\d{1,15}$/.test(String(header))) return Number(header)
  throw new DeckError('invalid-id', `Last-Event-ID: expected the id of an event, received ${JSON.stringify(String(header).slice(0, 60))}`)
}
