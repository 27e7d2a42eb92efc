import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { isInTerminal } from '../events/kinds.js'
import { eventLine } from '../terminal.js'
import { batchesOf, skippedText } from './logs.js'

/** @typedef {import('./logs.js').Message} Message */

const RETRY_MS = 100
/** Of an app that has just been started: more than this before its output is followed is left out. */
const FIRST_LINES = 1000
const FIRST_EVENTS = 100

/**
 * Shows what an app of the host writes, and what happens to it, over any number of masters.
 * @param {string} name
 * @param {object} how
 * @param {Pick<import('./api-client.js').ApiClient, 'get' | 'stream'>} how.host
 * @param {boolean} how.fromStart  from its start on; else what comes from now on
 * @param {() => boolean} how.isOver  it has ended: nothing more comes than what is on its way
 * @param {AbortSignal} how.until  no more is awaited
 * @param {(stream: import('./prefixed.js').Stream, lines: string[]) => Promise<void>} how.show
 */
export async function showOutput (name, { host, fromStart, isOver, until, show }) {
  const path = `/apps/${name}`
  await Promise.all([follow(openLines, showLines), follow(openEvents, showEvents)])

  /** @param {(place: string | undefined) => Promise<AsyncIterable<Message>>} open @param {(messages: Message[]) => Promise<void>} take */
  async function follow (open, take) {
    /** @type {string | undefined} the id of the last message, from which the next master continues */
    let place
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

  /** @param {string | undefined} place */
  async function openLines (place) {
    if (place !== undefined || !fromStart) return host.stream(`${path}/logs/stream?lines=0`, { lastEventId: place, until })
    const startedAt = await startOf()
    return sinceStart(host.stream(`${path}/logs/stream?lines=${FIRST_LINES}`, { until }), startedAt)
  }

  /** @param {string | undefined} place */
  async function openEvents (place) {
    if (place !== undefined || !fromStart) return host.stream(`${path}/events/stream`, { lastEventId: place, until })
    const { items } = await host.get(`${path}/events?since=${await startOf()}&limit=${FIRST_EVENTS}`)
    const events = items.reverse()
    await showEvents(events.map((/** @type {any} */ data) => ({ data })))
    return host.stream(`${path}/events/stream`, { lastEventId: events.at(-1)?.id?.toString(), until })
  }

  /** @returns {Promise<string>} @throws {DeckError} app-not-running */
  async function startOf () {
    const { startedAt } = await host.get(path)
    if (startedAt === null) throw new DeckError('app-not-running', `${name} is not open yet`)
    return startedAt
  }

  /** @param {Message[]} messages */
  async function showLines (messages) {
    for (const { event, data } of messages) {
      if (event === 'dropped') await show('stderr', [skippedText(data)])
      else await show(data.stream === 'stderr' ? 'stderr' : 'stdout', [String(data.text)])
    }
  }

  /** @param {Pick<Message, 'data'>[]} messages */
  async function showEvents (messages) {
    const lines = messages.map(({ data }) => data).filter(isInTerminal).map((event) => eventLine(event))
    if (lines.length > 0) await show('stdout', lines)
  }
}

/** Leaves out what was there before the app was started. @param {AsyncIterable<Message>} messages @param {string} startedAt */
async function * sinceStart (messages, startedAt) {
  let isPast = true
  for await (const message of messages) {
    const isOld = isPast && message.event === 'message' && message.data !== undefined && !(message.data.arrivedAt >= startedAt)
    // The first id stands behind all lines that were there.
    if (message.id !== undefined) isPast = false
    yield isOld ? { ...message, data: undefined } : message
  }
}
