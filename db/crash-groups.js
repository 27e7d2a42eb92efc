import { checkKept, decodeRankCursor, encodeRankCursor } from './cursor.js'
import { createCrashHours } from './crash-hours.js'
import { createCrashNotes } from './crash-notes.js'
import { createCrashes, toExpression } from './crashes.js'
import { statementCache } from './sqlite.js'

/** The orders of a list, all with the highest first. `kind`: of its cursors; `column`: what it is sorted by; `rankOf`: the value of that. */
const SORTS = Object.freeze({
  last: { kind: 'c', column: 'last_crash', rankOf: (/** @type {GroupRow} */ { lastCrash }) => lastCrash },
  count: { kind: 'n', column: 'count', rankOf: (/** @type {GroupRow} */ { count }) => count },
  first: { kind: 'f', column: 'id', rankOf: (/** @type {GroupRow} */ { id }) => id }
})
const MAX_GROUPS = 1000
const MAX_RELEASES = 50
const MAX_BYTES = 64 * 1024 * 1024
const MAX_MESSAGE_CHARS = 2000
/** @type {Readonly<Pick<GroupRow, 'state' | 'returnedMs' | 'count'>>} */
const NO_CRASHES = Object.freeze({ state: 'open', returnedMs: null, count: 0 })
const COLUMNS = `id, fingerprint, state, kind, cause, error_name AS errorName, message, culprit, first_ms AS firstMs, last_ms AS lastMs, count,
  first_release AS firstRelease, last_release AS lastRelease, last_crash AS lastCrash, state_ms AS stateMs, state_actor AS stateChangedBy,
  returned_ms AS returnedMs, assignee,
  (SELECT max(CAST(substr(release, 2) AS INTEGER)) FROM crash_releases WHERE crash_group = crash_groups.id) AS highestRelease`

/** @typedef {'open' | 'resolved' | 'muted'} GroupState */
/** @typedef {keyof typeof SORTS} GroupSort */
/** @template Row @typedef {import('./sqlite.js').Rows<Row>} Rows */

/**
 * Crashes with the same cause and stack.
 * @typedef {object} CrashGroup
 * @property {number} id
 * @property {string} fingerprint
 * @property {GroupState} state
 * @property {string} kind
 * @property {string} cause  of its newest crash, as in the history
 * @property {string | null} errorName
 * @property {string | null} message  of its newest crash
 * @property {string | null} culprit  the topmost function of the app, `handler (src/app.js)`
 * @property {string} firstSeenAt
 * @property {string} lastSeenAt
 * @property {number} count  all crashes, also those without a sample
 * @property {string | null} firstRelease
 * @property {string | null} lastRelease
 * @property {number} lastCrash  id of its newest crash
 * @property {string | null} stateChangedAt
 * @property {string | null} stateChangedBy
 * @property {string | null} assignee
 * @property {number | null} highestRelease  the n of the highest release `r<n>` that crashed so
 * @property {string | null} returnedAt  when it crashed again after it was resolved; null: it has not
 */

/** @typedef {Omit<CrashGroup, 'firstSeenAt' | 'lastSeenAt' | 'stateChangedAt' | 'returnedAt'>} PlainColumns */
/** @typedef {PlainColumns & { firstMs: number, lastMs: number, stateMs: number | null, returnedMs: number | null }} GroupRow */
/** @typedef {{ release: string, count: number, firstMs: number, lastMs: number }} ReleaseRow */
/** @typedef {{ state?: GroupState, fingerprint?: string, q?: string, release?: string, since?: number, sort?: GroupSort }} Filters */
/** @typedef {Filters & { limit?: number, cursor?: string | null }} GroupQuery */
/** @typedef {{ crash: number, group: number, isNew: boolean, hasReturned: boolean, isMuted: boolean, count: number }} Recorded `crash`: its id */

/**
 * Counts every crash in its group and keeps a few samples. Its size is limited, however many crashes there are.
 * @param {import('./open.js').Db} db
 * @param {{ random?: () => number, limits?: { maxGroups: number, maxBytes: number } }} [parts]
 */
export function createCrashGroups (db, { random = Math.random, limits = { maxGroups: MAX_GROUPS, maxBytes: MAX_BYTES } } = {}) {
  const crashes = createCrashes(db, { random })
  const hours = createCrashHours(db)
  const notes = createCrashNotes(db)
  /** @type {Rows<GroupRow>} */
  const byFingerprint = db.prepare(`SELECT ${COLUMNS} FROM crash_groups WHERE fingerprint = ?`)
  /** @type {Rows<GroupRow>} */
  const byId = db.prepare(`SELECT ${COLUMNS} FROM crash_groups WHERE id = ?`)
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
  /** @type {Rows<ReleaseRow>} */
  const releasesOf = db.prepare('SELECT release, count, first_ms AS firstMs, last_ms AS lastMs FROM crash_releases WHERE crash_group = ? ORDER BY last_ms DESC')
  const setState = db.prepare('UPDATE crash_groups SET state = @state, state_ms = @atMs, state_actor = @actor, returned_ms = NULL WHERE id = @id')
  const setAssignee = db.prepare('UPDATE crash_groups SET assignee = @assignee WHERE id = @id')
  /** @type {Rows<{ state: GroupState, count: number }>} */
  const countByState = db.prepare('SELECT state, count(*) AS count FROM crash_groups GROUP BY state')
  const groupCount = db.prepare('SELECT count(*) FROM crash_groups').pluck()
  const oldest = db.prepare('SELECT id FROM crash_groups ORDER BY last_crash LIMIT 1').pluck()
  const oldestThick = db.prepare('SELECT crash_group FROM crashes WHERE place > 1 ORDER BY id LIMIT 1').pluck()
  /** @type {Rows<{ id: number }>} */
  const expired = db.prepare('SELECT id FROM crash_groups WHERE last_ms < ? ORDER BY last_crash LIMIT ?')
  const remove = db.prepare('DELETE FROM crash_groups WHERE id = ?')
  const prepare = statementCache(db)
  const store = db.transaction(storeCrash)
  const sweep = db.transaction(forgetExpired)

  return {
    /** Stores one crash before it returns. @type {typeof storeCrash} */
    record: (fingerprint, record, facts) => store.immediate(fingerprint, record, facts),

    /** @param {number} id @returns {CrashGroup & { releases: ReturnType<typeof toRelease>[] } | null} */
    find (id) {
      const row = byId.get(id)
      return row === undefined ? null : { ...toGroup(row), releases: releasesOf.all(id).map(toRelease) }
    },

    occurrences: crashes.list,
    occurrence: crashes.find,
    newest: crashes.newest,
    hours: hours.list,
    notes: notes.list,
    addNote: notes.add,
    removeNote: notes.remove,

    /**
     * @param {GroupQuery} [query] `q`: words of a message or a stack; `release`: crashed in it; `since`: crashed since then, ms
     * @returns {{ items: CrashGroup[], next: string | null }}
     * @throws {import('../server/errors.js').DeckError} invalid-query
     */
    page ({ state, fingerprint, q, release, since, sort = 'last', limit = 50, cursor } = {}) {
      const { kind, column, rankOf } = SORTS[sort]
      const before = decodeRankCursor(kind, cursor)
      const place = `(${column} < @rank OR (${column} = @rank AND id < @id))`
      if (before) checkMore(place, before)
      const expression = q === undefined ? undefined : toExpression(q)
      if (expression === null) return { items: [], next: null }
      const conditions = [
        ...(before === null ? [] : [place]),
        ...(state === undefined ? [] : ['state = @state']),
        ...(fingerprint === undefined ? [] : ['fingerprint = @fingerprint']),
        ...(release === undefined ? [] : ['EXISTS (SELECT 1 FROM crash_releases WHERE crash_group = crash_groups.id AND release = @release)']),
        ...(since === undefined ? [] : ['last_ms >= @since']),
        ...(expression === undefined ? [] : ['id IN (SELECT value FROM json_each(@ids))'])
      ]
      const ids = expression === undefined ? undefined : JSON.stringify(crashes.search(expression))
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `
      /** @type {Rows<GroupRow>} */
      const groups = prepare(`SELECT ${COLUMNS} FROM crash_groups ${where}ORDER BY crash_groups.${column} DESC, id DESC LIMIT @limit`)
      const rows = groups.all({ limit: limit + 1, ...before, ...givenValues({ state, fingerprint, release, since, ids }) })
      const last = rows.length > limit ? rows[limit - 1] : null
      return { items: rows.slice(0, limit).map(toGroup), next: last && encodeRankCursor(kind, { rank: rankOf(last), id: last.id }) }
    },

    /** @returns {Record<GroupState, number>} how many groups there are of each state */
    counts: () => ({ open: 0, resolved: 0, muted: 0, ...Object.fromEntries(countByState.all().map(({ state, count }) => [state, count])) }),

    /** @param {number} id @param {{ state: GroupState, atMs: number, actor: string }} change @returns {boolean} whether there is such a group */
    setState: (id, { state, atMs, actor }) => setState.run({ id, state, atMs, actor }).changes === 1,

    /** @param {number} id @param {string | null} assignee @returns {boolean} whether there is such a group */
    setAssignee: (id, assignee) => setAssignee.run({ id, assignee }).changes === 1,

    sweep
  }

  /** @param {string} fingerprint @param {import('./crashes.js').CrashRecord} record @param {{ culprit: string | null }} facts @returns {Recorded} */
  function storeCrash (fingerprint, record, { culprit }) {
    const { at, kind, cause, errorName, release } = record
    const atMs = Date.parse(at)
    const facts = { fingerprint, kind, cause, errorName, message: clipText(record.errorMessage), culprit, release, atMs }
    const known = byFingerprint.get(fingerprint)
    const { id, state, returnedMs, count: before } = known ?? { ...NO_CRASHES, id: Number(insert.run(facts).lastInsertRowid) }
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

  /** Forgets groups that have not crashed since `before`. @param {{ before: number, rows: number }} what @returns {number} how many */
  function forgetExpired ({ before, rows }) {
    const groups = expired.all(before, rows)
    for (const { id } of groups) forgetGroup(id)
    return groups.length
  }

  /** @param {number} added */
  function makeRoom (added) {
    if (added > 0 && Number(groupCount.get()) > limits.maxGroups) forgetGroup(Number(oldest.get()))
    while (crashes.bytesKept > limits.maxBytes) {
      const thick = oldestThick.get()
      if (thick !== undefined) crashes.thin(Number(thick))
      else if (Number(groupCount.get()) > 1) forgetGroup(Number(oldest.get()))
      else return
    }
  }

  /** @param {string} place @param {{ rank: number, id: number }} before @throws {import('../server/errors.js').DeckError} cursor-expired */
  function checkMore (place, before) {
    checkKept(before.id, () => prepare(`SELECT 1 FROM crash_groups WHERE ${place} LIMIT 1`).get(before))
  }

  function forgetGroup (/** @type {number} */ id) {
    crashes.forget(id)
    remove.run(id)
  }
}

/** @param {GroupRow} row @returns {CrashGroup} */
function toGroup ({ firstMs, lastMs, stateMs, returnedMs, ...group }) {
  return {
    ...group,
    firstSeenAt: toIso(firstMs),
    lastSeenAt: toIso(lastMs),
    stateChangedAt: stateMs === null ? null : toIso(stateMs),
    returnedAt: returnedMs === null ? null : toIso(returnedMs)
  }
}

/** @param {ReleaseRow} row */
function toRelease ({ release, count, firstMs, lastMs }) {
  return { release, count, firstSeenAt: toIso(firstMs), lastSeenAt: toIso(lastMs) }
}

/** @param {number} ms */
function toIso (ms) {
  return new Date(ms).toISOString()
}

/** @param {Record<string, unknown>} values */
function givenValues (values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

/** @param {string | null} text */
function clipText (text) {
  return text === null || text.length <= MAX_MESSAGE_CHARS ? text : `${text.slice(0, MAX_MESSAGE_CHARS - 1)}…`
}
