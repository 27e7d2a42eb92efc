import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'
import { isInTerminal } from '../events/kinds.ts'
import { eventLine } from '../terminal.ts'
import { batchesOf, skippedText } from '../logs/cli.ts'
import type { ApiClient, Message } from './api-client.ts'
import type { Stream } from './prefixed.ts'
import type { Event } from '../events/api.ts'
import type { AppView } from '../host/api-apps.ts'

const RETRY_MS = 100
/** Of an app that has just been started: more than this before its output is followed is left out. */
const FIRST_LINES = 1000
const FIRST_EVENTS = 100

/** Shows what an app of the host writes, and what happens to it, over any number of masters. */
export async function showOutput (name: string, { host, fromStart, isOver, until, show }: {
  host: Pick<ApiClient, 'get' | 'stream'>,
  /** from its start on; else what comes from now on */
  fromStart: boolean,
  /** it has ended: nothing more comes than what is on its way */
  isOver: () => boolean,
  /** no more is awaited */
  until: AbortSignal,
  show: (stream: Stream, lines: string[]) => Promise<void>
}) {
  const path = `/apps/${name}`
  await Promise.all([follow(openLines, showLines), follow(openEvents, showEvents)])

  async function follow (open: (place: string | undefined) => Promise<AsyncIterable<Message>>,
    take: (messages: Message[]) => Promise<void>)
  {
    /** the id of the last message, from which the next master continues */
    let place: string | undefined
    while (!until.aborted) {
      const wasOver = isOver()
      try {
        for await (const batch of batchesOf(await open(place))) {
          place = batch.id
          await take(batch.messages)
        }
      } catch (error) {
        // It is not open yet, or no more; or no master answers.
        if (!(error instanceof DeckError)) throw error
      }
      if (wasOver) return
      await wait(RETRY_MS, undefined, { signal: until }).catch(() => {})
    }
  }

  async function openLines (place: string | undefined) {
    if (place !== undefined || !fromStart)
      return host.stream(`${path}/logs/stream?lines=0`, { lastEventId: place, until })
    const startedAt = await startOf()
    return sinceStart(host.stream(`${path}/logs/stream?lines=${FIRST_LINES}`, { until }), startedAt)
  }

  async function openEvents (place: string | undefined) {
    if (place !== undefined || !fromStart) return host.stream(`${path}/events/stream`, { lastEventId: place, until })
    const { items } = await host.get<{ items: Event[] }>(
      `${path}/events?since=${await startOf()}&limit=${FIRST_EVENTS}`
    )
    const events = items.reverse()
    await showEvents(events.map((data) => ({ data })))
    return host.stream(`${path}/events/stream`, { lastEventId: events.at(-1)?.id?.toString(), until })
  }

  /** @throws {DeckError} app-not-running */
  async function startOf (): Promise<string> {
    const { startedAt } = await host.get<AppView>(path)
    if (startedAt === null) throw new DeckError('app-not-running', `${name} is not open yet`)
    return startedAt
  }

  async function showLines (messages: Message[]) {
    for (const { event, data } of messages) {
      const { stream, text } = Object(data)
      if (event === 'dropped') await show('stderr', [skippedText(Object(data))])
      else await show(stream === 'stderr' ? 'stderr' : 'stdout', [String(text)])
    }
  }

  async function showEvents (messages: Pick<Message, 'data'>[]) {
    const lines = messages.map(({ data }) => data as Event).filter(isInTerminal).map((event) => eventLine(event))
    if (lines.length > 0) await show('stdout', lines)
  }
}

/** Leaves out what was there before the app was started. */
async function* sinceStart (messages: AsyncIterable<Message>, startedAt: string) {
  let isPast = true
  for await (const message of messages) {
    const isOld = isPast && message.event === 'message' && message.data !== undefined &&
      !(Object(message.data).arrivedAt >= startedAt)
    // The first id stands behind all lines that were there.
    if (message.id !== undefined) isPast = false
    yield isOld ? { ...message, data: undefined } : message
  }
}
