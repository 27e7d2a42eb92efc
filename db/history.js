import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../server/errors.js'
import { createAlertRows } from './alerts.js'
import { createAnswers } from './answers.js'
import { createCrashGroups } from './crash-groups.js'
import { createEventCounts } from './event-counts.js'
import { createEventPages } from './event-pages.js'
import { createEventSearch } from './event-search.js'
import { createEvents } from './events.js'
import { createHighWater } from './high-water.js'
import { createJobRuns } from './job-runs.js'
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
/** @typedef {ReturnType<typeof openHistory>} History */

const DAY_MS = 24 * 60 * 60 * 1000
/** These calls throw what SQLite says, since their callers try again. */
const WRITES = new Set(['record', 'write', 'setState', 'setAssignee', 'addNote', 'removeNote'])

/** What is kept unless the configuration says otherwise. */
export const DEFAULT_RETENTION = Object.freeze({ maxAgeMs: 30 * DAY_MS, maxEvents: 1_000_000 })

/**
 * What this data folder remembers. Every call is synchronous and bounded in time. If the database cannot be opened for a while,
 * as on a full disk, it uses a copy in memory: no app waits for its history.
 * Reads throw DeckError `history-unavailable` when the database fails; the rest throws what SQLite says.
 * @param {object} options
 * @param {string} options.file the database, made if it is missing; `:memory:` for none
 * @param {string | null} [options.owner] who has the file until `takeOver`; null: nobody. Until then reads find nothing, and writes are lost
 * @param {() => number} [options.now] wall clock, ms since the epoch
 * @param {() => number} [options.clock] monotonic clock, ms
 * @param {Partial<import('./retention.js').Retention>} [options.retention]
 * @throws {DeckError} see openDatabase
 */
export function openHistory ({ file, owner = null, now = Date.now, clock = () => performance.now(), retention = {} }) {
  const options = { file, now, clock, retention: { ...DEFAULT_RETENTION, ...retention } }
  let { tables, away } = owner === null ? openOrCopy(options) : { tables: openTables({ ...options, file: ':memory:' }), away: owner }

  return {
    ...followTables(() => tables.reads, readOrUnavailable),
    crashes: followTables(() => away === null ? tables.crashes : { ...tables.crashes, record: refuseToWrite }, readOrUnavailable),
    outbox: followTables(() => tables.outbox, readOrUnavailable),
    vitals: followTables(() => tables.vitals, readOrUnavailable),
    jobRuns: followTables(() => tables.jobRuns, readOrUnavailable),
    releases: followTables(() => tables.releases),
    sessions: followTables(() => tables.sessions),
    tokens: followTables(() => tables.tokens),
    alerts: followTables(() => away === null ? tables.alerts : { ...tables.alerts, add: refuseToWrite, change: refuseToWrite, remove: refuseToWrite }, readOrUnavailable),
    answers: followTables(() => tables.answers),

    /** Why the database cannot be opened, so that everything is in memory alone; null: it is open. @type {string | null} */
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

    /** @param {{ sliceRows?: number }} [slice] */
    sweep: (slice) => tables.sweep(slice),

    /**
     * Closes the file and opens it again. A damaged one is moved aside; ids go on from where they were.
     * @throws {DeckError} see openDatabase; then this history stays closed until the next try
     */
    reopen () {
      // The copy stays until the file is open.
      if (away === null) tables.close()
      const next = openTables(options, tables.highWater)
      tables.close()
      tables = next
      away = null
    },

    /**
     * Opens the file that another master had.
     * @throws {DeckError} see openDatabase
     */
    takeOver () {
      tables.close()
      ;({ tables, away } = openOrCopy(options))
    },

    /**
     * Goes on with a copy in memory until the file is opened again.
     * @param {string} reason
     */
    retreat (reason) {
      tables.close()
      tables = copyTables(options, tables.highWater)
      away = reason
    },

    /** It may be closed twice. */
    close () { tables.close() }
  }

  /** What is written to the copy is lost once the database is back, and its ids would lead to something else, or to nothing. @returns {never} */
  function refuseToWrite () {
    throw new DeckError('history-unavailable', String(away))
  }
}

/** @typedef {{ file: string, now: () => number, clock: () => number, retention: import('./retention.js').Retention }} Options */

/** @param {Options} options */
function openOrCopy (options) {
  try {
    return { tables: openTables(options), away: null }
  } catch (error) {
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
  const jobRuns = createJobRuns(db)
  if (before) highWater.adopt(before)

  const write = db.transaction((/** @type {DeckEvent} */ event) => {
    events.insert(event)
    highWater.raise('event', event.id)
    if (event.type.startsWith('rollout.') && event.rollout !== null && event.detail) {
      rollouts.store({ ...event.detail, id: event.rollout }, Date.parse(event.at))
      highWater.raise('rollout', event.rollout)
    }
    if (event.type.startsWith('job.')) jobRuns.store(event)
    if (event.type === 'release.created') highWater.raise('release', releaseNumber(event))
  })

  return {
    movedAside,
    reads: {
      ...createEventPages(search, { clock }),
      ...createEventCounts(db, search, { clock }),
      event: events.find,
      rollout: rollouts.find,
      rollouts: rollouts.page,
      rolloutDurations: rollouts.durations,
      lastRollouts: rollouts.lastOf,
      unfinishedRollouts: rollouts.unfinished,
      workerLives: createWorkerLives(db)
    },
    crashes,
    jobRuns,
    highWater,
    releases: {
      all: releases.all,
      replace (/** @type {import('./releases.js').ReleaseRow[]} */ rows) {
        releases.replace(rows)
        highWater.raise('release', Math.max(0, ...rows.map(({ number }) => number)))
      }
    },
    write: (/** @type {DeckEvent} */ event) => write.immediate(event),
    sessions: createSessions(db),
    tokens: createTokens(db),
    alerts: createAlertRows(db),
    answers: createAnswers(db),
    outbox: createOutbox(db, { clock }),
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
 * Makes a module whose calls go to the tables that are open at the time. `through` runs them all but the WRITES.
 * @template {object} Module @param {() => Module} current @param {<T>(call: () => T) => T} [through] @returns {Module}
 */
function followTables (current, through = (call) => call()) {
  const module = { ...current() }
  for (const name of Object.keys(module)) {
    const call = (/** @type {unknown[]} */ ...values) => Object(current())[name](...values)
    Reflect.set(module, name, WRITES.has(name) ? call : (/** @type {unknown[]} */ ...values) => through(() => call(...values)))
  }
  return module
}

/**
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function readOrUnavailable (call) {
  try {
    return call()
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('history-unavailable', 'the history database cannot be read at the moment', { cause: error })
  }
}
