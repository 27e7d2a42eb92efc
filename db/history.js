import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../server/errors.js'
import { createAnswers } from './answers.js'
import { createCrashGroups } from './crash-groups.js'
import { createEventCounts } from './event-counts.js'
import { createEventPages } from './event-pages.js'
import { createEventSearch } from './event-search.js'
import { createEvents } from './events.js'
import { createHighWater } from './high-water.js'
import { isOutOfReach, openCopy, openDatabase } from './open.js'
import { createOutbox } from './outbox.js'
import { createReleaseRows } from './releases.js'
import { createRetention } from './retention.js'
import { createRollouts } from './rollouts.js'
import { createSessions } from './sessions.js'
import { createTokens } from './tokens.js'
import { createVitalsStore } from './vitals.js'
import { createWorkerLives } from './worker-lives.js'

/** @typedef {import('../server/events/stream.js').DeckEvent} DeckEvent */
/** @typedef {import('./event-search.js').EventQuery} EventQuery */
/** @typedef {ReturnType<typeof openHistory>} History */
/** @typedef {ReturnType<typeof createCrashGroups>} CrashGroups */

const DAY_MS = 24 * 60 * 60 * 1000

/** What is kept unless the configuration says otherwise. */
export const DEFAULT_RETENTION = Object.freeze({ maxAgeMs: 30 * DAY_MS, maxEvents: 1_000_000 })

/**
 * What this data folder remembers. Every call is synchronous and bounded in time. Where the database cannot be had for
 * a while, as on a full disk, it begins with a copy in memory: no app waits for its history.
 * Reads of events and rollouts throw DeckError `history-unavailable` when the database fails; the rest throws what SQLite says.
 * @param {object} options
 * @param {string} options.file the database, made if it is not there; `:memory:` for none
 * @param {string | null} [options.owner] who has the file until `takeOver`; null: nobody. Until then nothing is read, and what is stored is lost
 * @param {() => number} [options.now] wall clock, ms since the epoch
 * @param {() => number} [options.clock] monotonic clock, ms
 * @param {Partial<import('./retention.js').Retention>} [options.retention]
 * @throws {DeckError} see openDatabase
 */
export function openHistory ({ file, owner = null, now = Date.now, clock = () => performance.now(), retention = {} }) {
  const options = { file, now, clock, retention: { ...DEFAULT_RETENTION, ...retention } }
  let { tables, away } = owner === null ? openOrCopy(options) : { tables: openTables({ ...options, file: ':memory:' }), away: owner }

  return {
    /** Why the database cannot be had, so that whatever is stored is kept in memory alone; null: it is open. @type {string | null} */
    get away () { return away },

    /** Where a damaged database was moved when a new one took its place, else null. */
    get movedAside () { return tables.movedAside },

    /**
     * Stores one event before it returns. Storing the same event again changes nothing.
     * @param {DeckEvent} event
     */
    record (event) { tables.write(event) },

    /** @returns {number} the highest event id ever stored, 0 if none */
    lastEventId: () => tables.highWater.read('event'),

    /** @returns {number} the highest rollout id ever stored, 0 if none */
    lastRolloutId: () => tables.highWater.read('rollout'),

    /** @returns {number} the n of the newest release `r<n>`, 0 if none */
    lastReleaseNumber: () => tables.highWater.read('release'),

    /**
     * Newest first. It may hold fewer than `limit` items, even none, and still have a `next`: then its time was spent.
     * @param {EventQuery} [query]
     */
    page: (query) => readOrUnavailable(() => tables.page(query)),

    /**
     * How many events each step of time has. Where it has a `next`, its time was spent: what comes with that is to be added.
     * @param {EventQuery & { stepMs: number }} query
     */
    count: (query) => readOrUnavailable(() => tables.counts.count(query)),

    /**
     * The same, each with when the first and the last of them happened, and the id of the newest.
     * @param {EventQuery & { stepMs: number }} query
     */
    countWithEnds: (query) => readOrUnavailable(() => tables.counts.countWithEnds(query)),

    /** The first and the last time of what is kept; null: nothing is. */
    times: () => readOrUnavailable(() => tables.counts.times()),

    /** @param {number} id */
    event: (id) => readOrUnavailable(() => tables.events.find(id)),

    /** The rollout as of its last event. @param {number} id */
    rollout: (id) => readOrUnavailable(() => tables.rollouts.find(id)),

    /** How long the last rollouts took that have succeeded. @type {ReturnType<typeof createRollouts>['durations']} */
    rolloutDurations: (which) => readOrUnavailable(() => tables.rollouts.durations(which)),

    /** Those whose master ended before they did, oldest first. */
    unfinishedRollouts: () => readOrUnavailable(() => tables.rollouts.unfinished()),

    /** Workers that have begun and ended. @param {number} since an event's id */
    workerLives: (since) => readOrUnavailable(() => tables.workerLives(since)),

    /** @param {{ limit?: number, cursor?: string | null }} [query] */
    rollouts: (query) => readOrUnavailable(() => tables.rollouts.page(query)),

    /** The releases that are kept. Both throw what SQLite says. @type {import('./releases.js').ReleaseRows} */
    releases: {
      all: () => tables.releases.all(),
      replace: (rows) => tables.releases.replace(rows)
    },

    /** What the workers died of. What writes throws what SQLite says. */
    crashes: {
      /** @type {CrashGroups['record']} */
      record (fingerprint, record, facts) {
        // An id that is given out now would lead to another crash, or to none, once the database is back.
        if (away !== null) throw new DeckError('history-unavailable', away)
        return tables.crashes.record(fingerprint, record, facts)
      },
      /** @type {CrashGroups['setState']} */
      setState: (id, change) => tables.crashes.setState(id, change),
      /** @type {CrashGroups['setAssignee']} */
      setAssignee: (id, assignee) => tables.crashes.setAssignee(id, assignee),
      /** @type {CrashGroups['addNote']} */
      addNote: (group, note) => tables.crashes.addNote(group, note),
      /** @type {CrashGroups['removeNote']} */
      removeNote: (group, id) => tables.crashes.removeNote(group, id),
      /** @type {CrashGroups['notes']} */
      notes: (group) => readOrUnavailable(() => tables.crashes.notes(group)),
      /** @type {CrashGroups['hours']} */
      hours: (group, sinceMs) => readOrUnavailable(() => tables.crashes.hours(group, sinceMs)),
      /** @type {CrashGroups['page']} */
      page: (query) => readOrUnavailable(() => tables.crashes.page(query)),
      /** @type {CrashGroups['find']} */
      find: (id) => readOrUnavailable(() => tables.crashes.find(id)),
      /** @type {CrashGroups['counts']} */
      counts: () => readOrUnavailable(() => tables.crashes.counts()),
      /** @type {CrashGroups['newest']} */
      newest: (group) => readOrUnavailable(() => tables.crashes.newest(group)),
      /** @type {CrashGroups['occurrences']} */
      occurrences: (group) => readOrUnavailable(() => tables.crashes.occurrences(group)),
      /** @type {CrashGroups['occurrence']} */
      occurrence: (group, id) => readOrUnavailable(() => tables.crashes.occurrence(group, id))
    },

    /** @type {import('./sessions.js').Sessions} */
    sessions: {
      create: (session) => tables.sessions.create(session),
      find: (hash) => tables.sessions.find(hash),
      touch: (hash, expiresAt) => tables.sessions.touch(hash, expiresAt),
      revoke: (hash) => tables.sessions.revoke(hash),
      revokeAll: () => tables.sessions.revokeAll()
    },

    /** @type {import('./tokens.js').Tokens} */
    tokens: {
      create: (token) => tables.tokens.create(token),
      find: (hash) => tables.tokens.find(hash),
      get: (id) => tables.tokens.get(id),
      list: () => tables.tokens.list(),
      remove: (id) => tables.tokens.remove(id),
      keepOf: (root) => tables.tokens.keepOf(root)
    },

    /** Both throw what SQLite says. @type {import('./answers.js').Answers} */
    answers: {
      keep: (answer, options) => tables.answers.keep(answer, options),
      find: (key) => tables.answers.find(key)
    },

    /** What is told to others. `write` throws what SQLite says. @type {import('./outbox.js').Outbox} */
    outbox: {
      read: () => readOrUnavailable(() => tables.outbox.read()),
      write: (row) => tables.outbox.write(row),
      after: (id, limit) => readOrUnavailable(() => tables.outbox.after(id, limit))
    },

    /** @type {import('./vitals.js').VitalsStore} */
    vitals: {
      write: (steps) => tables.vitals.write(steps),
      read: (query) => readOrUnavailable(() => tables.vitals.read(query))
    },

    /** @param {{ sliceRows?: number }} [slice] */
    sweep: (slice) => tables.sweep(slice),

    /**
     * Lets go of the file and opens it again. A damaged one is moved aside; the ids go on from where they were.
     * @throws {DeckError} see openDatabase; then this history stays closed until the next try
     */
    reopen () {
      // A copy is there until the file is.
      if (away === null) tables.close()
      const next = openTables(options, tables.highWater)
      tables.close()
      tables = next
      away = null
    },

    /**
     * Opens the file, which another master had.
     * @throws {DeckError} see openDatabase
     */
    takeOver () {
      tables.close()
      ;({ tables, away } = openOrCopy(options))
    },

    /**
     * Goes on with a copy in memory, until it is opened again.
     * @param {string} reason
     */
    retreat (reason) {
      tables.close()
      tables = copyTables(options, tables.highWater)
      away = reason
    },

    /** Closing twice is fine. */
    close () { tables.close() }
  }
}

/** @typedef {{ file: string, now: () => number, clock: () => number, retention: import('./retention.js').Retention }} Options */

/** @param {Options} options */
function openOrCopy (options) {
  try {
    return { tables: openTables(options), away: null }
  } catch (/** @type {any} */ error) {
    if (!isOutOfReach(error) || !existsSync(path.dirname(options.file))) throw error
    return { tables: copyTables(options), away: error.message }
  }
}

/** @param {Options} options @param {ReturnType<typeof createHighWater>} [before] of the database that this one replaces */
function openTables (options, before) {
  return makeTables(openDatabase(options.file, options), options, before)
}

/** @param {Options} options @param {ReturnType<typeof createHighWater>} [before] */
function copyTables (options, before) {
  return makeTables({ db: openCopy(options.file), movedAside: null }, options, before)
}

/**
 * @param {ReturnType<typeof openDatabase>} opened
 * @param {Options} options
 * @param {ReturnType<typeof createHighWater>} [before]
 */
function makeTables ({ db, movedAside }, { now, clock, retention }, before) {
  const events = createEvents(db)
  const search = createEventSearch(db)
  const rollouts = createRollouts(db, { clock })
  const crashes = createCrashGroups(db)
  const highWater = createHighWater(db)
  const releases = createReleaseRows(db)
  if (before) highWater.adopt(before)

  const write = db.transaction((/** @type {DeckEvent} */ event) => {
    events.insert(event)
    highWater.raise('event', event.id)
    if (event.type.startsWith('rollout.') && event.rollout !== null && event.detail) {
      rollouts.store({ ...event.detail, id: event.rollout }, Date.parse(event.at))
      highWater.raise('rollout', event.rollout)
    }
    if (event.type === 'release.created') highWater.raise('release', releaseNumber(event))
  })

  return {
    movedAside,
    events,
    rollouts,
    crashes,
    highWater,
    releases: {
      all: releases.all,
      replace (/** @type {import('./releases.js').ReleaseRow[]} */ rows) {
        releases.replace(rows)
        highWater.raise('release', Math.max(0, ...rows.map(({ number }) => number)))
      }
    },
    write: (/** @type {DeckEvent} */ event) => write.immediate(event),
    page: createEventPages(search, { clock }).page,
    counts: createEventCounts(db, search, { clock }),
    sessions: createSessions(db),
    tokens: createTokens(db),
    answers: createAnswers(db),
    outbox: createOutbox(db, { clock }),
    workerLives: createWorkerLives(db),
    vitals: createVitalsStore(db),
    sweep: createRetention(db, { retention, now, clock, sweepCrashes: crashes.sweep }).sweep,
    close: () => { db.close() }
  }
}

/** @param {DeckEvent} event */
function releaseNumber ({ release }) {
  return Number(/^r(\d{1,9})$/.exec(release ?? '')?.[1] ?? 0)
}

/**
 * @template T
 * @param {() => T} read
 * @returns {T}
 */
function readOrUnavailable (read) {
  try {
    return read()
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('history-unavailable', 'the history database cannot be read at the moment', { cause: error })
  }
}
