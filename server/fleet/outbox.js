import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { waitAtMost } from '../system/wait-at-most.js'
import { messageOf, subjectOf, subjectsOfSource } from './event-stream.js'

/**
 * Sends the events of an app to the fleet, each once and in order. It reads them from the history, so none is lost while NATS
 * is out of reach. It asks the stream what was sent, so none is sent twice.
 * @typedef {ReturnType<typeof createOutbox>} FleetOutbox
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {import('./nats-connection.js').Open} Open
 * @typedef {Pick<import('../../db/history.js').History, 'outbox' | 'event' | 'lastEventId' | 'away'>} History
 * @typedef {{ member: string, app: string, host: string }} Teller
 * @typedef {{ waiting: number | null, problem: string | null }} OutboxState `waiting`: events that the fleet does not have yet, null: unknown
 * @typedef {{ source: string, id: number, place: number | null }} Told  `id`: of the last event; `place`: its sequence in the stream
 */

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

/**
 * @param {object} parts
 * @param {Pick<import('./nats-connection.js').Connection, 'use' | 'attempt' | 'callMs'>} parts.nats
 * @param {History} parts.history
 * @param {Pick<import('../events/stream.js').EventStream, 'subscribe'>} parts.events
 * @param {() => Teller} parts.teller
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 * @param {() => number} [parts.now]  monotonic, ms
 */
export function createOutbox ({ nats, history, events, teller, timers = globalThis, now = () => performance.now() }) {
  const rest = createRest(timers)
  let connections = 0
  /** The last event in the stream, null: the stream has to be asked. @type {(Told & { connection: number }) | null} */
  let told = null
  /** The last event that the stream took as a new one. */
  let taken = 0
  /** The last event that the stream says it has already. */
  let doubted = 0
  /** @type {string | null} */
  let problem = 'not connected yet'
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
    /** @returns {OutboxState} */
    get state () {
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
        storeProgressIfDue()
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

  /** @param {Open} open @param {number} connection @returns {Promise<number>} how many were read */
  async function tellPage (open, connection) {
    // Events that are only in its copy may never get into the history.
    if (history.away !== null) throw new Error(history.away)
    if (told?.connection !== connection) told = { ...await readLastTold(open), connection }
    const { source, id } = told
    const page = history.outbox.after(id, PAGE)
    for (const event of page) {
      if (closed.signal.aborted || connection !== connections) break
      if (isToldByAnother(event)) {
        told = { ...told, id: event.id, source, place: told?.place ?? null, connection }
        continue
      }
      // If the answer is lost, the stream has to be asked.
      told = null
      const { seq, duplicate } = await publishEvent(open, source, event)
      // Either its first answer was lost, or a copy of this history has sent another event with the same id: ask the stream.
      if (duplicate && doubted !== event.id) {
        doubted = event.id
        break
      }
      if (!duplicate) taken = event.id
      told = { source, id: event.id, place: seq, connection }
    }
    return page.length
  }

  /** @param {Open} open @param {string} source @param {DeckEvent} event */
  function publishEvent ({ connection, js, names }, source, event) {
    const of = teller()
    const maxBytes = Math.min(MAX_EVENT_BYTES, (connection.info?.max_payload ?? Infinity) - HEADROOM_BYTES)
    return js.publish(subjectOf(names, { ...of, source, type: event.type }), dataOf({ source, ...of, event }, maxBytes), {
      msgID: `${source}-${event.id}`,
      expect: { streamName: names.events },
      timeout: nats.callMs
    })
  }

  /** @param {Open} open @returns {Promise<Told>} */
  async function readLastTold ({ manager, names }) {
    const { source, since, published, place } = readRow()
    const last = await inTime(manager.streams.getMessage(names.events, { last_by_subj: subjectsOfSource(names, source) }))
    const newest = history.lastEventId()
    const least = Math.max(since, newest - MAX_BACKLOG)
    if (last) {
      const message = messageOf(names, last)
      if (message && isOwn(message.event, newest)) return { source, id: Math.max(message.event.id, least), place: last.seq }
      // The history was restored from a backup, or another host has a copy of it. The ids in the stream mean other events, so
      // this history continues as a new source.
      const from = Math.max(published, taken)
      const anew = { source: newSource(), since: from, published: from, place: null }
      history.outbox.write(anew)
      return { source: anew.source, id: Math.max(from, newest - MAX_BACKLOG), place: null }
    }
    const { state } = await inTime(manager.streams.info(names.events))
    const isDiscarded = place !== null && place < state.first_seq && place <= state.last_seq
    return { source, id: Math.max(least, isDiscarded ? published : Math.min(published, newest - BACKLOG)), place: null }
  }

  /** A change of leaders can lose the answer. @template T @param {Promise<T>} answer @returns {Promise<T>} */
  async function inTime (answer) {
    let isThere = false
    await waitAtMost(answer.then(() => { isThere = true }), nats.callMs)
    if (!isThere) throw new Error(`JetStream does not answer within ${nats.callMs / 1000} s`)
    return answer
  }

  /** @param {Pick<DeckEvent, 'id' | 'at' | 'type' | 'worker' | 'message'>} event @param {number} newest */
  function isOwn ({ id, at, type, worker, message }, newest) {
    if (id > newest) return false
    const own = history.event(id)
    return own === null || (own.at === at && own.type === type && own.worker === worker && own.message === message)
  }

  /** @returns {import('../../db/outbox.js').OutboxRow} */
  function readRow () {
    const stored = history.outbox.read()
    if (stored) return stored
    const first = { source: newSource(), since: 0, published: Math.max(0, history.lastEventId() - BACKLOG), place: null }
    history.outbox.write(first)
    return first
  }

  function storeProgressIfDue () {
    if (now() - keptAt >= KEEP_EVERY_MS) storeProgress()
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

/** What several hosts see, one of them writes into the history of the fleet. @param {DeckEvent} event */
function isToldByAnother ({ detail }) {
  return detail?.isReporter === false
}

/** @param {{ source: string, event: DeckEvent } & Teller} message @param {number} maxBytes @returns {string} JSON, without details if it is too large */
function dataOf ({ event, ...message }, maxBytes) {
  const data = JSON.stringify({ ...message, event })
  const bytes = Buffer.byteLength(data)
  return bytes <= maxBytes ? data : JSON.stringify({ ...message, event: { ...event, detail: { truncated: true, bytes } } })
}

function newSource () {
  return randomBytes(12).toString('hex')
}

/**
 * A pause that ends when one of two things happens, or after a time.
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} timers
 */
function createRest (timers) {
  /** What happened while nobody waited. @type {Set<'news' | 'connection'>} */
  const come = new Set()
  /** @type {(what: 'news' | 'connection') => void} */
  let onCome = () => {}

  return {
    /** @param {'news' | 'connection'} what */
    end (what) {
      come.add(what)
      onCome(what)
    },

    /** @param {'news' | 'connection'} what  a connection counts as news too @param {number | null} [ms] null: no limit @returns {Promise<void>} */
    until (what, ms = null) {
      return new Promise((resolve) => {
        const timer = ms === null ? null : timers.setTimeout(endRest, ms)
        timer?.unref?.()
        onCome = (found) => { if (found === what || found === 'connection') endRest() }
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
