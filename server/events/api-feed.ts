import { z } from 'zod'
import { attempt, DeckError } from '../errors.ts'
import { operation, type Call, type Resource } from '../api/endpoint.ts'
import { admitStream, EVENT_STREAM, openStream, serverSentEvent, type StreamParts } from '../api/server-sent-events.ts'
import { nextTurn } from '../api/turn.ts'
import type { ServerResponse } from 'node:http'
import type { DeckEvent } from './stream.ts'
import type { Deck } from '../deck.ts'
import type { History } from '../../db/history.ts'

/**
 * Streams events as they happen. With Last-Event-ID a reader first gets what it missed. A reader that is too slow is
 * cut off and can come back this way.
 */

const MAX_REPLAY = 10_000
const REPLAY_SLICE = 100
const MAX_UNSENT_BYTES = 1024 * 1024

export function eventFeedResources ({ deck, history }: { deck: Pick<Deck, 'events'>, history: Pick<History, 'event'> },
  stream: StreamParts): Record<string, Resource>
{
  return {
    '/events/stream': {
      GET: operation({ name: 'followEvents', summary: 'Streams events as they happen, as server-sent events with ids',
        description: 'Each `data` is an Event. `Last-Event-ID` continues where a reader has stopped.', role: 'viewer',
        headers: {
          'Last-Event-ID': z.string().regex(/^\d{0,15}$/).optional().describe('the id of the last event that was read')
        }, problems: ['invalid-id'], produces: [EVENT_STREAM],
        answer: { [EVENT_STREAM]: serverSentEvent('an Event', ['message']) }, async handle (call) {
        admitStream(call, stream)
        const after = lastEventId(call.req.headers['last-event-id'])
        const feed = openFeed(call)
        if (after !== null) await replayEvents(after, feed)
        feed.goLive()
        return undefined
      } })
    }
  }

  function openFeed (call: Call) {
    const { res, write, isOpen } = openStream(call, stream)
    let isLive = false
    const unsubscribe = deck.events.subscribe((event) => {
      if (!isLive) return
      if (res.writableLength > MAX_UNSENT_BYTES) res.destroy()
      else sendEvent(event)
    })
    res.once('close', unsubscribe)
    return { res, write, send: sendEvent, isOpen, goLive () {
      isLive = true
    } }

    function sendEvent (event: DeckEvent) {
      write(`id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`)
    }
  }

  /** Reads the past by id until it reaches the present: a slice a turn, and no faster than the reader. */
  async function replayEvents (after: number, feed: ReturnType<typeof openFeed>) {
    let id = Math.max(after + 1, deck.events.lastId - MAX_REPLAY + 1)
    if (id > after + 1) feed.write(`: events ${after + 1} to ${id - 1} are left out, read them from /api/v1/events\n\n`)
    await nextTurn()
    for (; id <= deck.events.lastId && feed.isOpen(); id++) {
      // While the database fails, live events are still sent.
      const event = attempt(() => history.event(id))
      if (event) feed.send(event)
      if (feed.res.writableNeedDrain) await waitForDrain(feed.res)
      else if (id % REPLAY_SLICE === 0) await nextTurn()
    }
  }
}

function waitForDrain (res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const stopWaiting = () => {
      res.off('drain', stopWaiting).off('close', stopWaiting)
      resolve()
    }
    res.once('drain', stopWaiting).once('close', stopWaiting)
  })
}

function lastEventId (header: string | string[] | undefined): number | null {
  if (header === undefined || header === '') return null
  if (/^\d{1,15}$/.test(String(header))) return Number(header)
  throw new DeckError('invalid-id',
    `Last-Event-ID: expected the id of an event, received ${JSON.stringify(String(header).slice(0, 60))}`)
}
