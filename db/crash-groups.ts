import { checkKept, decodeRankCursor, encodeRankCursor } from './cursor.ts'
import { createCrashHours } from './crash-hours.ts'
import { createCrashes, toExpression, type CrashRecord } from './crashes.ts'
import { statementCache, type Db } from './sqlite.ts'
import type { CrashGroup as ShownCrashGroup } from '../server/api/shapes.ts'

/**
 * The orders of a list, all with the highest first. `kind`: of its cursors; `column`: what it is sorted by; `rankOf`:
 * the value of that.
 */
const SORTS = Object.freeze({ last: { kind: 'c', column: 'last_crash', rankOf: ({ lastCrash }: GroupRow) => lastCrash },
  count: { kind: 'n', column: 'count', rankOf: ({ count }: GroupRow) => count },
  first: { kind: 'f', column: 'id', rankOf: ({ id }: GroupRow) => id } })
const MAX_GROUPS = 1000
const MAX_RELEASES = 50
const MAX_BYTES = 64 * 1024 * 1024
const MAX_MESSAGE_CHARS = 2000
const NO_CRASHES: Readonly<Pick<GroupRow, 'state' | 'returnedMs' | 'count'>> = Object.freeze({ state: 'open',
  returnedMs: null, count: 0 })
const COLUMNS =
  `id, fingerprint, state, kind, cause, error_name AS errorName, message, culprit, first_ms AS firstMs, last_ms AS lastMs, count,
  first_release AS firstRelease, last_release AS lastRelease, last_crash AS lastCrash, state_ms AS stateMs, state_actor AS stateChangedBy,
  returned_ms AS returnedMs,
  (SELECT max(CAST(substr(release, 2) AS INTEGER)) FROM crash_releases WHERE crash_group = crash_groups.id) AS highestRelease`

export type GroupState = CrashGroup['state']
export type GroupSort = keyof typeof SORTS
type Rows<Row> = import('./sqlite.ts').Rows<Row>

/** Crashes with the same cause and stack. */
export type CrashGroup = Omit<ShownCrashGroup, 'kind' | 'cause' | 'goneSince' | 'isNewInRelease' | 'hasReturned'> & {
  kind: string,
  cause: string,
  /** the n of the highest release `r<n>` that crashed so */
  highestRelease: number | null
}

type PlainColumns = Omit<CrashGroup, 'firstSeenAt' | 'lastSeenAt' | 'stateChangedAt' | 'returnedAt'>
type GroupRow = PlainColumns & { firstMs: number, lastMs: number, stateMs: number | null, returnedMs: number | null }
type ReleaseRow = { release: string, count: number, firstMs: number, lastMs: number }
type Filters = { state?: GroupState, fingerprint?: string, q?: string, release?: string, since?: number,
  sort?: GroupSort }
export type GroupQuery =
  & Filters
  & { limit?: number, cursor?: string | null }
/** `crash`: its id */
type Recorded = { crash: number, group: number, isNew: boolean, hasReturned: boolean, isMuted: boolean, count: number }

/** Counts every crash in its group and keeps a few samples. Its size is limited, however many crashes there are. */
export function createCrashGroups (db: Db,
  { random = Math.random, limits = { maxGroups: MAX_GROUPS, maxBytes: MAX_BYTES } }: { random?: () => number,
    limits?: { maxGroups: number, maxBytes: number } } = {})
{
  const crashes = createCrashes(db, { random })
  const hours = createCrashHours(db)
  const byFingerprint: Rows<GroupRow> = db.prepare(`SELECT ${COLUMNS} FROM crash_groups WHERE fingerprint = ?`)
  const byId: Rows<GroupRow> = db.prepare(`SELECT ${COLUMNS} FROM crash_groups WHERE id = ?`)
  const insert = db.prepare(`
    INSERT INTO crash_groups (fingerprint, state, kind, cause, error_name, message, culprit, first_ms, last_ms, count,
      first_release, last_release, last_crash)
    VALUES (@fingerprint, 'open', @kind, @cause, @errorName, @message, @culprit, @atMs, @atMs, 0, @release, @release, 0)`)
  const count = db.prepare(`
    UPDATE crash_groups SET count = count + 1, last_ms = max(last_ms, @atMs), last_release = @release, cause = @cause, message = @message,
      state = @state, returned_ms = @returnedMs, last_crash = @crash WHERE id = @id`)
  const countRelease = db.prepare(`
    INSERT INTO crash_releases (crash_group, release, count, first_ms, last_ms) VALUES (@id, @release, 1, @atMs, @atMs)
    ON CONFLICT (crash_group, release) DO UPDATE SET count = count + 1, last_ms = max(last_ms, @atMs)`)
  const trimReleases = db.prepare(`
    DELETE FROM crash_releases WHERE crash_group = @id AND release NOT IN
      (SELECT release FROM crash_releases WHERE crash_group = @id ORDER BY last_ms DESC LIMIT ${MAX_RELEASES})`)
  const releasesOf: Rows<ReleaseRow> = db.prepare(
    'SELECT release, count, first_ms AS firstMs, last_ms AS lastMs FROM crash_releases WHERE crash_group = ? ORDER BY last_ms DESC'
  )
  const setState = db.prepare(
    'UPDATE crash_groups SET state = @state, state_ms = @atMs, state_actor = @actor, returned_ms = NULL WHERE id = @id'
  )
  const countByState: Rows<{ state: GroupState, count: number }> = db.prepare(
    'SELECT state, count(*) AS count FROM crash_groups GROUP BY state'
  )
  const groupCount = db.prepare('SELECT count(*) FROM crash_groups').pluck()
  const oldest = db.prepare('SELECT id FROM crash_groups ORDER BY last_crash LIMIT 1').pluck()
  const oldestThick = db.prepare('SELECT crash_group FROM crashes WHERE place > 1 ORDER BY id LIMIT 1').pluck()
  const expired: Rows<{ id: number }> = db.prepare(
    'SELECT id FROM crash_groups WHERE last_ms < ? ORDER BY last_crash LIMIT ?'
  )
  const remove = db.prepare('DELETE FROM crash_groups WHERE id = ?')
  const prepare = statementCache(db)
  const store = db.transaction(storeCrash)
  const sweep = db.transaction(forgetExpired)

  return {
    /** Stores one crash before it returns. */
    record: ((fingerprint, record, facts) => store.immediate(fingerprint, record, facts)) as typeof storeCrash,

    find (id: number): CrashGroup & { releases: ReturnType<typeof toRelease>[] } | null {
      const row = byId.get(id)
      return row === undefined ? null : { ...toGroup(row), releases: releasesOf.all(id).map(toRelease) }
    },

    occurrences: crashes.list,
    occurrence: crashes.find,
    newest: crashes.newest,
    hours: hours.list,

    /**
     * `q`: words of a message or a stack; `release`: crashed in it; `since`: crashed since then, ms.
     * @throws {import('../server/errors.ts').DeckError} invalid-query
     */
    page (
      { state, fingerprint, q, release, since, sort = 'last', limit = 50, cursor }: GroupQuery = {}
    ): { items: CrashGroup[], next: string | null } {
      const { kind, column, rankOf } = SORTS[sort]
      const before = decodeRankCursor(kind, cursor)
      const place = `(${column} < @rank OR (${column} = @rank AND id < @id))`
      if (before) checkMore(place, before)
      const expression = q === undefined ? undefined : toExpression(q)
      if (expression === null) return { items: [], next: null }
      const conditions = [...(before === null ? [] : [place]), ...(state === undefined ? [] : ['state = @state']),
        ...(fingerprint === undefined ? [] : ['fingerprint = @fingerprint']),
        ...(release === undefined
          ? []
          : ['EXISTS (SELECT 1 FROM crash_releases WHERE crash_group = crash_groups.id AND release = @release)']),
        ...(since === undefined ? [] : ['last_ms >= @since']),
        ...(expression === undefined ? [] : ['id IN (SELECT value FROM json_each(@ids))'])]
      const ids = expression === undefined ? undefined : JSON.stringify(crashes.search(expression))
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `
      const groups: Rows<GroupRow> = prepare(
        `SELECT ${COLUMNS} FROM crash_groups ${where}ORDER BY crash_groups.${column} DESC, id DESC LIMIT @limit`
      )
      const rows = groups.all({ limit: limit + 1, ...before,
        ...givenValues({ state, fingerprint, release, since, ids }) })
      const last = rows.length > limit ? rows[limit - 1] : null
      return { items: rows.slice(0, limit).map(toGroup),
        next: last && encodeRankCursor(kind, { rank: rankOf(last), id: last.id }) }
    },

    /** @returns how many groups there are of each state */
    counts: (): Record<GroupState, number> => ({ open: 0, resolved: 0, muted: 0,
      ...Object.fromEntries(countByState.all().map(({ state, count }) => [state, count])) }),

    /** Tells whether there is such a group */
    setState: (id: number, { state, atMs, actor }: { state: GroupState, atMs: number, actor: string }): boolean =>
      setState.run({ id, state, atMs, actor }).changes === 1,

    sweep
  }

  function storeCrash (fingerprint: string, record: CrashRecord, { culprit }: { culprit: string | null }): Recorded {
    const { at, kind, cause, errorName, release } = record
    const atMs = Date.parse(at)
    const facts = { fingerprint, kind, cause, errorName, message: clipText(record.errorMessage), culprit, release,
      atMs }
    const known = byFingerprint.get(fingerprint)
    const { id, state, returnedMs, count: before } = known ??
      { ...NO_CRASHES, id: Number(insert.run(facts).lastInsertRowid) }
    const hasReturned = state === 'resolved'
    const crash = crashes.store(id, before + 1, record)
    count.run({ ...facts, id, crash, state: hasReturned ? 'open' : state, returnedMs: hasReturned ? atMs : returnedMs })
    hours.count(id, atMs)
    if (release !== null) {
      countRelease.run({ ...facts, id })
      trimReleases.run({ id })
    }
    makeRoom(known ? 0 : 1)
    return { crash, group: id, isNew: !known, hasReturned, isMuted: state === 'muted', count: before + 1 }
  }

  /** Forgets groups that have not crashed since `before`. Returns how many. */
  function forgetExpired ({ before, rows }: { before: number, rows: number }): number {
    const groups = expired.all(before, rows)
    for (const { id } of groups) forgetGroup(id)
    return groups.length
  }

  function makeRoom (added: number) {
    if (added > 0 && Number(groupCount.get()) > limits.maxGroups) forgetGroup(Number(oldest.get()))
    while (crashes.bytesKept > limits.maxBytes) {
      const thick = oldestThick.get()
      if (thick !== undefined) crashes.thin(Number(thick))
      else if (Number(groupCount.get()) > 1) forgetGroup(Number(oldest.get()))
      else return
    }
  }

  /** @throws {import('../server/errors.ts').DeckError} cursor-expired */
  function checkMore (place: string, before: { rank: number, id: number }) {
    checkKept(before.id, () => prepare(`SELECT 1 FROM crash_groups WHERE ${place} LIMIT 1`).get(before))
  }

  function forgetGroup (id: number) {
    crashes.forget(id)
    remove.run(id)
  }
}

function toGroup ({ firstMs, lastMs, stateMs, returnedMs, ...group }: GroupRow): CrashGroup {
  return { ...group, firstSeenAt: toIso(firstMs), lastSeenAt: toIso(lastMs),
    stateChangedAt: stateMs === null ? null : toIso(stateMs),
    returnedAt: returnedMs === null ? null : toIso(returnedMs) }
}

function toRelease ({ release, count, firstMs, lastMs }: ReleaseRow) {
  return { release, count, firstSeenAt: toIso(firstMs), lastSeenAt: toIso(lastMs) }
}

function toIso (ms: number) {
  return new Date(ms).toISOString()
}

function givenValues (values: Record<string, unknown>) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

function clipText (text: string | null) {
  return text === null || text.length <= MAX_MESSAGE_CHARS ? text : `${text.slice(0, MAX_MESSAGE_CHARS - 1)}…`
}
