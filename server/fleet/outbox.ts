import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { waitAtMost } from '../system/wait-at-most.ts'
import { messageOf, subjectOf, subjectsOfSource } from './event-stream.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { Connection, Open } from './nats-connection.ts'
import type { OutboxRow } from '../../db/outbox.ts'

// Sends the events of an app to the fleet, each once and in order. It reads them from the history, so none is lost
// while NATS is out of reach. It asks the stream what was sent, so none is sent twice.

type History = Pick<import('../../db/history.ts').History, 'outbox' | 'event' | 'lastEventId' | 'away'>
type Teller = { member: string, app: string, host: string }
/** `waiting`: events that the fleet does not have yet, null: unknown */
export type OutboxState = { waiting: number | null, problem: string | null }
/** `id`: of the last event; `place`: its sequence in the stream */
type Told = { source: string, id: number, place: number | null }

const PAGE = 50
/** A fleet that has no event of this app gets so many of the last ones. */
const BACKLOG = 1000
/** After a longer absence only so many of the last events are sent. */
const MAX_BACKLOG = 100_000
const MAX_EVENT_BYTES = 64 * 1024
/** A message has headers beside its data. */
const HEADROOM_BYTES = 1024
const RETRY_MS = 1000
const MAX_RETRY_MS = 10_000
const KEEP_EVERY_MS = 10_000
/** A master that ends waits so long for its last events to be sent. */
const LAST_EVENTS_MS = 1000

export function createOutbox ({ nats, history, events, teller, timers = globalThis, now = () => performance.now() }: {
  nats: Pick<Connection, 'use' | 'attempt' | 'callMs'>,
  history: History,
  events: Pick<EventStream, 'subscribe'>,
  teller: () => Teller,
  timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>,
  /** monotonic, ms */
  now?: () => number
}) {
  const rest = createRest(timers)
  let connections = 0
  /** The last event in the stream, null: the stream has to be asked. */
  let told: (Told & { connection: number }) | null = null
  /** The last event that the stream took as a new one. */
  let taken = 0
  /** The last event that the stream says it has already. */
  let doubted = 0
  let problem: string | null = 'not connected yet'
  let keptAt = -Infinity
  let isClosing = false
  const closed = new AbortController()
  const unsubscribe = events.subscribe(() => rest.end('news'))
  const leave = nats.use(async () => {
    connections++
    rest.end('connection')
  })
  const ended = runOutbox()

  return {
    get state (): OutboxState {
      return { waiting: told && Math.max(0, history.lastEventId() - told.id), problem }
    },

    /** Sends the last events first, if NATS takes them at once. */
    async close () {
      unsubscribe()
      leave()
      isClosing = true
      rest.end('news')
      if (problem === null) await waitAtMost(ended, LAST_EVENTS_MS)
      closed.abort()
      rest.end('connection')
      storeProgress()
    }
  }

  async function runOutbox () {
    for (let retryMs = RETRY_MS; !closed.signal.aborted;) {
      const connection = connections
      const outcome = connection === 0 ? null : await nats.attempt((open) => tellPage(open, connection))
      problem = outcome?.is === 'away' ? outcome.reason : outcome ? null : problem
      if (outcome?.is === 'done') {
        retryMs = RETRY_MS
        if (outcome.value > 0) continue
        if (isClosing) return
        if (now() - keptAt >= KEEP_EVERY_MS) storeProgress()
        await rest.until('news')
        // Whatever published the event goes first.
        await nextTurn()
      } else {
        if (isClosing) return
        if (connection === connections) await rest.until('connection', connection === 0 ? null : retryMs)
        retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)
      }
    }
  }

  /** @returns how many were read */
  async function tellPage (open: Open, connection: number): Promise<number> {
    // Events that are only in its copy may never get into the history.
    if (history.away !== null) throw new Error(history.away)
    if (told?.connection !== connection) told = { ...await readLastTold(open), connection }
    const { source, id } = told
    const page = history.outbox.after(id, PAGE)
    for (const event of page) {
      if (closed.signal.aborted || connection !== connections) break
      // What several hosts see, one of them writes into the history of the fleet.
      if (event.detail?.isReporter === false) {
        told = { ...told, id: event.id, source, place: told?.place ?? null, connection }
        continue
      }
      // If the answer is lost, the stream has to be asked.
      told = null
      const { seq, duplicate } = await publishEvent(open, source, event)
      // Either its first answer was lost, or a copy of this history has sent another event with the same id: ask the
      // stream.
      if (duplicate && doubted !== event.id) {
        doubted = event.id
        break
      }
      if (!duplicate) taken = event.id
      told = { source, id: event.id, place: seq, connection }
    }
    return page.length
  }

  function publishEvent ({ connection, js, names }: Open, source: string, event: DeckEvent) {
    const of = teller()
    const maxBytes = Math.min(MAX_EVENT_BYTES, (connection.info?.max_payload ?? Infinity) - HEADROOM_BYTES)
    return js.publish(subjectOf(names, { ...of, source, type: event.type }), dataOf({ source, ...of, event }, maxBytes),
      { msgID: `${source}-${event.id}`, expect: { streamName: names.events }, timeout: nats.callMs })
  }

  async function readLastTold ({ manager, names }: Open): Promise<Told> {
    const { source, since, published, place } = readRow()
    const last = await inTime(
      manager.streams.getMessage(names.events, { last_by_subj: subjectsOfSource(names, source) })
    )
    const newest = history.lastEventId()
    const least = Math.max(since, newest - MAX_BACKLOG)
    if (last) {
      const message = messageOf(names, last)
      if (message && isOwn(message.event, newest))
        return { source, id: Math.max(message.event.id, least), place: last.seq }
      // The history was restored from a backup, or another host has a copy of it. The ids in the stream mean other
      // events, so this history continues as a new source.
      const from = Math.max(published, taken)
      const anew = { source: newSource(), since: from, published: from, place: null }
      history.outbox.write(anew)
      return { source: anew.source, id: Math.max(from, newest - MAX_BACKLOG), place: null }
    }
    const { state } = await inTime(manager.streams.info(names.events))
    const isDiscarded = place !== null && place < state.first_seq && place <= state.last_seq
    return { source, id: Math.max(least, isDiscarded ? published : Math.min(published, newest - BACKLOG)), place: null }
  }

  /** A change of leaders can lose the answer. */
  async function inTime<T> (answer: Promise<T>): Promise<T> {
    let isThere = false
    await waitAtMost(answer.then(() => {
      isThere = true
    }), nats.callMs)
    if (!isThere) throw new Error(`JetStream does not answer within ${nats.callMs / 1000} s`)
    return answer
  }

  function isOwn ({ id, at, type, worker, message }: Pick<DeckEvent, 'id' | 'at' | 'type' | 'worker' | 'message'>,
    newest: number)
  {
    if (id > newest) return false
    const own = history.event(id)
    return own === null || (own.at === at && own.type === type && own.worker === worker && own.message === message)
  }

  function readRow (): OutboxRow {
    const stored = history.outbox.read()
    if (stored) return stored
    const first = { source: newSource(), since: 0, published: Math.max(0, history.lastEventId() - BACKLOG),
      place: null }
    history.outbox.write(first)
    return first
  }

  /** It may lag behind, as the stream knows better, but is never ahead of what was acknowledged. */
  function storeProgress () {
    if (!told || history.away !== null) return
    keptAt = now()
    const { source, id, place } = told
    try {
      const stored = readRow()
      if (stored.source === source && stored.published < id) history.outbox.write({ ...stored, published: id, place })
    } catch {
      // It is stored again in a while.
    }
  }
}

/** @returns JSON, without details if it is too large */
function dataOf ({ event, ...message }: { source: string, event: DeckEvent } & Teller, maxBytes: number): string {
  const data = JSON.stringify({ ...message, event })
  const bytes = Buffer.byteLength(data)
  return bytes <= maxBytes
    ? data
    : JSON.stringify({ ...message, event: { ...event, detail: { truncated: true, bytes } } })
}

function newSource () {
  return randomBytes(12).toString('hex')
}

/** A pause that ends when one of two things happens, or after a time. */
function createRest (timers: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>) {
  /** What happened while nobody waited. */
  const come: Set<'news' | 'connection'> = new Set()
  let onCome: (what: 'news' | 'connection') => void = () => {}

  return {
    end (what: 'news' | 'connection') {
      come.add(what)
      onCome(what)
    },

    /** `what`: a connection counts as news too; `ms`: null: no limit */
    until (what: 'news' | 'connection', ms: number | null = null): Promise<void> {
      return new Promise((resolve) => {
        const timer = ms === null ? null : timers.setTimeout(endRest, ms)
        timer?.unref?.()
        onCome = (found) => {
          if (found === what || found === 'connection') endRest()
        }
        for (const found of come) onCome(found)

        function endRest () {
          if (timer) timers.clearTimeout(timer)
          onCome = () => {}
          come.clear()
          resolve()
        }
      })
    }
  }
}
