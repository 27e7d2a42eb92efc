import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { holderOf } from './roles.ts'
import type { IncomingMessage } from 'node:http'
import type { Call } from './endpoint.ts'

/**
 * A stream of events (WHATWG HTML, 9.2). It ends when its reader disconnects or is signed out, or the admin port
 * closes.
 */
export type StreamParts = {
  authenticate: (req: IncomingMessage) => unknown,
  timers: Pick<typeof globalThis, 'setInterval' | 'clearInterval'>,
  /** by holder, how many are open */
  streams: Map<string, number>,
  /** aborted when the admin port closes */
  closing: AbortSignal
}

const HEARTBEAT_MS = 15_000
/**
 * Streams of one holder for each app, as each costs work for every line and event and nobody should use up those of
 * others.
 */
const MAX_STREAMS = 32

export const EVENT_STREAM = 'text/event-stream'

/** Describes the events of a stream. */
export function serverSentEvent (data: string, types: [string, ...string[]]) {
  return z.looseObject({ data: z.string().meta({ description: data, contentMediaType: 'application/json' }),
    event: z.enum(types).optional(), id: z.string().optional().describe('the id that `Last-Event-ID` continues from') })
}

/**
 * Call it before anything is read for the stream.
 * @throws {DeckError} rate-limited, not-possible
 */
export function admitStream ({ auth, res }: Pick<Call, 'auth' | 'res'>, { streams }: Pick<StreamParts, 'streams'>) {
  if (auth.via === 'fleet')
    throw new DeckError('not-possible', 'A stream cannot be forwarded to another deck: request pages instead')
  const holder = holderOf(auth)
  const open = streams.get(holder) ?? 0
  if (open >= MAX_STREAMS)
    throw new DeckError('rate-limited', `There are ${MAX_STREAMS} streams of ${auth.actor} already: close some first`)
  streams.set(holder, open + 1)
  res.once('close', () => {
    const left = (streams.get(holder) ?? 1) - 1
    if (left > 0) streams.set(holder, left)
    else streams.delete(holder)
  })
}

/** `onClosing`: instead of ending at once when the admin port closes */
export function openStream ({ req, res }: Pick<Call, 'req' | 'res'>, { authenticate, timers, closing }: StreamParts,
  { onClosing = () => {
    res.end()
  } }: { onClosing?: () => void } = {})
{
  res.set({ 'Content-Type': `${EVENT_STREAM}; charset=utf-8`, 'X-Accel-Buffering': 'no' })
  const heartbeat = timers.setInterval(() => writeText(': heartbeat\n\n'), HEARTBEAT_MS)
  res.once('close', () => {
    timers.clearInterval(heartbeat)
    closing.removeEventListener('abort', onClosing)
  })
  // A HEAD asks for these headers alone.
  if (req.method === 'HEAD') endStream()
  else writeText('retry: 3000\n\n')
  closing.addEventListener('abort', onClosing)
  if (closing.aborted) Promise.resolve().then(onClosing)

  return { res, write: writeText, end: endStream, isOpen }

  function isOpen () {
    return !res.writableEnded && !res.destroyed
  }

  function endStream () {
    res.end()
  }

  function writeText (text: string) {
    if (!isOpen()) return
    // The stream must not outlive its session.
    if (!authenticate(req)) endStream()
    else res.write(text)
  }
}
