import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError, orUnavailable } from '../server/errors.ts'
import { createAlertRows } from './alerts.ts'
import { createAnswers } from './answers.ts'
import { createCrashGroups } from './crash-groups.ts'
import { createEventCounts } from './event-counts.ts'
import { createEventPages } from './event-pages.ts'
import { createEventSearch } from './event-search.ts'
import { createEvents } from './events.ts'
import { createHighWater } from './high-water.ts'
import { createJobRuns } from './job-runs.ts'
import { isDamaged, isOutOfReach, openCopy, openDatabase, type Opened } from './open.ts'
import { createOutbox } from './outbox.ts'
import { createReleaseRows, type ReleaseRow } from './releases.ts'
import { createRetention, type Retention } from './retention.ts'
import { createRollouts } from './rollouts.ts'
import { createSessions } from './sessions.ts'
import { createTokens } from './tokens.ts'
import { createVitalsStore } from './vitals.ts'
import type { DeckEvent } from '../server/events/stream.ts'
import type { Db, Rows } from './sqlite.ts'

export type History = ReturnType<typeof openHistory>

type WorkerLife = { worker: number, slot: number, pid: number | null, release: string, startedAt: string }
type Row =
  & Omit<WorkerLife, 'startedAt'>
  & { type: 'worker.forked' | 'worker.exited', atMs: number }

const DAY_MS = 24 * 60 * 60 * 1000
/** These calls throw what SQLite says, since their callers try again. */
const WRITES = new Set(['record', 'write', 'setState'])

/** What is kept unless the configuration says otherwise. */
export const DEFAULT_RETENTION = Object.freeze({ maxAgeMs: 30 * DAY_MS, maxEvents: 1_000_000 })

/** Workers of older events have ended, as there are never so many at a time. */
const MAX_ROWS = 4000

/**
 * What this data folder remembers. Every call is synchronous and bounded in time. If the database cannot be opened for
 * a while, as on a full disk, it uses a copy in memory: no app waits for its history.
 * Reads throw DeckError `history-unavailable` when the database fails; the rest throws what SQLite says.
 * @throws {DeckError} see openDatabase
 */
export function openHistory ({ file, owner = null, now = Date.now, clock = () => performance.now(), retention = {} }: {
  /** the database, made if it is missing; `:memory:` for none */
  file: string,
  /** who has the file until `takeOver`; null: nobody. Until then reads find nothing, and writes are lost */
  owner?: string | null,
  /** wall clock, ms since the epoch */
  now?: () => number,
  /** monotonic clock, ms */
  clock?: () => number,
  retention?: Partial<Retention>
}) {
  const options = { file, now, clock, retention: { ...DEFAULT_RETENTION, ...retention } }
  let { tables, away } = owner === null
    ? openOrCopy(options)
    : { tables: openTables({ ...options, file: ':memory:' }), away: owner }

  return {
    ...followTables(() => tables.reads, readOrUnavailable),
    crashes: followTables(() => away === null ? tables.crashes : { ...tables.crashes, record: refuseToWrite },
      readOrUnavailable),
    outbox: followTables(() => tables.outbox, readOrUnavailable),
    vitals: followTables(() => tables.vitals, readOrUnavailable),
    jobRuns: followTables(() => tables.jobRuns, readOrUnavailable),
    releases: followTables(() => tables.releases),
    sessions: followTables(() => tables.sessions),
    tokens: followTables(() => tables.tokens),
    alerts: followTables(
      () =>
        away === null
          ? tables.alerts
          : { ...tables.alerts, add: refuseToWrite, change: refuseToWrite, remove: refuseToWrite },
      readOrUnavailable
    ),
    answers: followTables(() => tables.answers),

    /** Why the database cannot be opened, so that everything is in memory alone; null: it is open. */
    get away () {
      return away
    },

    /** Where a damaged database was moved when a new one took its place, else null. */
    get movedAside () {
      return tables.movedAside
    },

    /** What the damaged database had, else null. */
    get loss () {
      return tables.loss
    },

    /** Stores one event before it returns. Storing the same event again changes nothing. */
    record (event: DeckEvent) {
      tables.write(event)
    },

    /** @returns the highest event id ever stored, 0 if none */
    lastEventId: (): number => tables.highWater.read('event'),

    /** @returns the highest rollout id ever stored, 0 if none */
    lastRolloutId: (): number => tables.highWater.read('rollout'),

    /** @returns the n of the newest release `r<n>`, 0 if none */
    lastReleaseNumber: (): number => tables.highWater.read('release'),

    sweep: (slice?: { sliceRows?: number }) => tables.sweep(slice),

    /**
     * Closes the file and opens it again. A damaged one is moved aside; ids go on from where they were.
     * @param error why, where it has been opened again for the same before and that has not helped
     * @throws {DeckError} see openDatabase; then this history stays closed until the next try
     */
    reopen (error?: unknown) {
      // The copy stays until the file is open.
      if (away === null) tables.close()
      const next = openTables({ ...options, isBroken: isDamaged(error) }, tables.highWater)
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

    /** Goes on with a copy in memory until the file is opened again. */
    retreat (reason: string) {
      tables.close()
      tables = copyTables(options, tables.highWater)
      away = reason
    },

    /** It may be closed twice. */
    close () {
      tables.close()
    }
  }

  /**
   * What is written to the copy is lost once the database is back, and its ids would lead to something else, or to
   * nothing.
   */
  function refuseToWrite (): never {
    throw new DeckError('history-unavailable', String(away))
  }
}

type Options = { file: string, now: () => number, clock: () => number, retention: Retention, isBroken?: boolean }

function openOrCopy (options: Options) {
  try {
    return { tables: openTables(options), away: null }
  } catch (error) {
    if (!isOutOfReach(error) || !existsSync(path.dirname(options.file))) throw error
    return { tables: copyTables(options), away: error.message }
  }
}

/** `before`: of the database that this one replaces */
function openTables (options: Options, before?: ReturnType<typeof createHighWater>) {
  return makeTables(openDatabase(options.file, options), options, before)
}

function copyTables (options: Options, before?: ReturnType<typeof createHighWater>) {
  return makeTables({ db: openCopy(options.file), movedAside: null, loss: null }, options, before)
}

function makeTables ({ db, movedAside, loss }: Opened, { now, clock, retention }: Options,
  before?: ReturnType<typeof createHighWater>)
{
  const events = createEvents(db)
  const search = createEventSearch(db)
  const rollouts = createRollouts(db, { clock })
  const crashes = createCrashGroups(db)
  const highWater = createHighWater(db)
  const releases = createReleaseRows(db)
  const jobRuns = createJobRuns(db)
  if (before) highWater.adopt(before)

  const write = db.transaction((event: DeckEvent) => {
    events.insert(event)
    highWater.raise('event', event.id)
    if (event.type.startsWith('rollout.') && event.rollout !== null && event.detail) {
      rollouts.store({ ...event.detail, id: event.rollout }, Date.parse(event.at))
      highWater.raise('rollout', event.rollout)
    }
    if (event.type.startsWith('job.')) jobRuns.store(event)
    if (event.type === 'release.created') highWater.raise('release', releaseNumber(event))
  })

  return { movedAside, loss,
    reads: { ...createEventPages(search, { clock }), ...createEventCounts(db, search, { clock }), event: events.find,
      rollout: rollouts.find, rollouts: rollouts.page, rolloutDurations: rollouts.durations,
      lastRollouts: rollouts.lastOf, unfinishedRollouts: rollouts.unfinished, workerLives: createWorkerLives(db) },
    crashes, jobRuns, highWater, releases: { all: releases.all, replace (rows: ReleaseRow[]) {
      releases.replace(rows)
      highWater.raise('release', Math.max(0, ...rows.map(({ number }) => number)))
    } }, write: (event: DeckEvent) => write.immediate(event), sessions: createSessions(db), tokens: createTokens(db),
    alerts: createAlertRows(db), answers: createAnswers(db), outbox: createOutbox(db, { clock }),
    vitals: createVitalsStore(db),
    sweep: createRetention(db, { retention, now, clock, sweepCrashes: crashes.sweep }).sweep, close: () => {
      db.close()
    } }
}

function releaseNumber ({ release }: DeckEvent) {
  return Number(/^r(\d{1,9})$/.exec(release ?? '')?.[1] ?? 0)
}

/** Makes a module whose calls go to the tables that are open at the time. `through` runs them all but the WRITES. */
function followTables<Module extends object> (current: () => Module,
  through: <T>(call: () => T) => T = (call) => call()): Module
{
  const module = { ...current() }
  for (const name of Object.keys(module)) {
    const call = (...values: unknown[]) => Object(current())[name](...values)
    Reflect.set(module, name, WRITES.has(name) ? call : (...values: unknown[]) => through(() => call(...values)))
  }
  return module
}

function readOrUnavailable<T> (call: () => T): T {
  return orUnavailable(call, 'the history database cannot be read at the moment')
}

/** Reads from the events which workers have begun and ended. */
function createWorkerLives (db: Db) {
  const newest: Rows<Row> = db.prepare(`
    SELECT type, worker, slot, pid, "release", at_ms AS atMs FROM events
    WHERE id >= ? AND type IN ('worker.forked', 'worker.exited') ORDER BY id DESC LIMIT ${MAX_ROWS}`)

  /**
   * @param since an event's id; since then no worker's id was used twice
   * @returns `open`: begun and not ended, oldest first
   */
  return function livesSince (since: number): { ended: Set<number>, open: WorkerLife[] } {
    const ended: Set<number> = new Set()
    const open: WorkerLife[] = []
    for (const { type, worker, slot, pid, release, atMs } of newest.all(since)) {
      if (type === 'worker.exited') ended.add(worker)
      else if (!ended.has(worker)) open.unshift({ worker, slot, pid, release, startedAt: new Date(atMs).toISOString() })
    }
    return { ended, open }
  }
}
