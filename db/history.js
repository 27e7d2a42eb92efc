import { createEventPages } from './event-pages.js'
import { createEvents } from './events.js'
import { createHighWater } from './high-water.js'
import { openDatabase } from './open.js'
import { createRetention } from './retention.js'
import { createRollouts } from './rollouts.js'
import { createSessions } from './sessions.js'

/** @typedef {import('../server/event-stream.js').DeckEvent} DeckEvent */
/** @typedef {ReturnType<typeof openHistory>} History */

const DAY_MS = 24 * 60 * 60 * 1000

/** What is kept unless the configuration says otherwise. */
export const DEFAULT_RETENTION = Object.freeze({ maxAgeMs: 30 * DAY_MS, maxEvents: 1_000_000 })

/**
 * What this data folder remembers. Every call is synchronous and bounded; all but `sessions.find` and the like may
 * throw when the database fails, and the callers (recorder, deck) decide what that means.
 * @param {object} options
 * @param {string} options.file the database, made if it is not there; `:memory:` for none
 * @param {() => number} [options.now] wall clock, ms since the epoch
 * @param {() => number} [options.clock] monotonic clock, ms
 * @param {Partial<import('./retention.js').Retention>} [options.retention]
 * @throws {import('../server/errors.js').DeckError} see openDatabase
 */
export function openHistory ({ file, now = Date.now, clock = () => performance.now(), retention = {} }) {
  const { db, movedAside } = openDatabase(file, { now })
  const highWater = createHighWater(db)
  const events = createEvents(db)
  const rollouts = createRollouts(db, { clock })
  const { page } = createEventPages(db, { clock })
  const { sweep } = createRetention(db, { retention: { ...DEFAULT_RETENTION, ...retention }, now, clock })

  const write = db.transaction((/** @type {DeckEvent} */ event) => {
    events.insert(event)
    highWater.raise('event', event.id)
    if (event.type.startsWith('rollout.')) rememberRollout(event)
    if (event.type === 'release.created') rememberRelease(event)
  })

  return {
    /** Where a damaged database was moved when this one was opened in its place, else null. */
    movedAside,

    /**
     * Stores one event before it returns. Storing the same event again changes nothing.
     * @param {DeckEvent} event
     */
    record (event) { write.immediate(event) },

    /** @returns {number} the highest event id ever stored, 0 if none */
    lastEventId: () => highWater.read('event'),

    /** @returns {number} the highest rollout id ever stored, 0 if none */
    lastRolloutId: () => highWater.read('rollout'),

    /** @returns {number} the n of the newest release `r<n>`, 0 if none */
    lastReleaseNumber: () => highWater.read('release'),

    page,

    /** @param {number} id @returns {DeckEvent | null} */
    event: (id) => events.find(id),

    /** @param {number} id @returns {Record<string, any> | null} as of its last event */
    rollout: (id) => rollouts.find(id),

    rollouts: rollouts.page,
    sessions: createSessions(db),
    sweep,

    /** Closing twice is fine. */
    close () { db.close() }
  }

  /** @param {DeckEvent} event */
  function rememberRollout ({ rollout, detail, at }) {
    if (!Number.isInteger(rollout) || detail === null) return
    rollouts.store({ ...detail, id: Number(rollout) }, Date.parse(at))
    highWater.raise('rollout', Number(rollout))
  }

  /** @param {DeckEvent} event */
  function rememberRelease ({ release }) {
    const number = /^r(\d{1,9})$/.exec(release ?? '')?.[1]
    if (number !== undefined) highWater.raise('release', Number(number))
  }
}
