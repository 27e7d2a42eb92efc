import { DeckError } from '../errors.js'
import { goneSince } from './gone-since.js'
import { createSourceLines } from './source-lines.js'

/** @typedef {'resolve' | 'mute' | 'reopen'} CrashAction */
/** @typedef {ReturnType<typeof createCrashService>} CrashService */

/** @type {Readonly<Record<CrashAction, import('../../db/crash-groups.js').GroupState>>} */
const STATES = Object.freeze({ resolve: 'resolved', mute: 'muted', reopen: 'open' })
const MAX_NOTES = 100
const EVENTS = Object.freeze({ resolve: 'crash.group-resolved', mute: 'crash.group-muted', reopen: 'crash.group-reopened' })

/**
 * Lets an operator read crashes, and resolve, assign and comment them.
 * @param {object} parts
 * @param {import('../../db/history.js').History['crashes']} parts.store
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {() => string | null} parts.release  the one that runs
 * @param {() => import('./gone-since.js').KnownRelease[]} [parts.releases]
 * @param {() => number} [parts.now]
 */
export function createCrashService ({ store, events, release, releases = () => [], now = Date.now }) {
  const sourceLines = createSourceLines()

  return {
    /** @param {import('../../db/crash-groups.js').GroupQuery} query */
    page (query) {
      const { items, next } = store.page(query)
      return { items: withNews(items), next }
    },

    /** How many groups there are of each state. */
    counts: () => store.counts(),

    /** One group without its samples, which is cheap to read often. @param {number} id @throws {DeckError} not-found */
    group (id) {
      const group = mustFind(id)
      return withNews([group])[0]
    },

    /** One group with its samples, newest first, and the whole record of the newest. @param {number} id @throws {DeckError} not-found */
    find (id) {
      const group = mustFind(id)
      return { ...withNews([group])[0], notes: store.notes(id), occurrences: store.occurrences(id), latest: store.newest(id) }
    },

    /** @param {number} id @param {number} crash @throws {DeckError} not-found */
    occurrence (id, crash) {
      mustFind(id)
      const record = store.occurrence(id, crash)
      if (!record) throw new DeckError('not-found', `Crash group ${id} has no occurrence ${crash}; a group keeps only some`)
      return record
    },

    /**
     * What is known of the crash that an event tells of.
     * @param {import('../events/stream.js').DeckEvent['detail']} detail of the event
     * @returns null: it tells of none, or of one that is no longer kept
     */
    evidence (detail) {
      if (!detail?.crashGroup || !detail.crash) return null
      try {
        const { fingerprint, culprit } = mustFind(detail.crashGroup)
        const crash = this.occurrence(detail.crashGroup, detail.crash)
        return { crash, lines: this.sourceLines(crash), fingerprint, culprit }
      } catch {
        // Whoever is told of the event is told without it.
        return null
      }
    },

    /** The crashes of each hour, oldest first, without hours that had none. @param {number} id @param {number} since ms */
    hours: (id, since) => store.hours(id, since),

    /** Oldest first. @param {number} id */
    notes: (id) => store.notes(id),

    /**
     * The lines around the app's own frames, if its release still has them.
     * @param {{ at: string, release: string | null, stack: string | null, frames: import('./stack-frames.js').Frame[] }} crash
     */
    sourceLines: (crash) => sourceLines(crash, releases().find(({ id }) => id === crash.release)?.path ?? null),

    /** @param {number} id @param {CrashAction} action @param {string} actor @throws {DeckError} not-found, history-unavailable */
    act (id, action, actor) {
      settleGroup(mustFind(id), action, actor)
      return this.group(id)
    },

    /** Acts on all of them, or on none if one is missing. @param {number[]} ids @param {CrashAction} action @param {string} actor @throws {DeckError} not-found, history-unavailable */
    actOnAll (ids, action, actor) {
      for (const group of [...new Set(ids)].map(mustFind)) settleGroup(group, action, actor)
    },

    /** @param {number} id @param {string | null} assignee null: nobody @param {string} actor @throws {DeckError} not-found, history-unavailable */
    assign (id, assignee, actor) {
      const group = mustFind(id)
      if (group.assignee !== assignee) {
        writeOrUnavailable(() => store.setAssignee(id, assignee))
        const message = `crash group ${id} (${group.errorName ?? group.kind}) is ${assignee === null ? 'unassigned' : `assigned to ${assignee}`}`
        events.publish({ type: 'crash.group-assigned', actor, message, detail: { crashGroup: id, from: group.assignee, to: assignee } })
      }
      return this.group(id)
    },

    /** @param {number} id @param {string} text @param {string} actor @throws {DeckError} not-found, not-possible, history-unavailable */
    addNote (id, text, actor) {
      const group = mustFind(id)
      if (store.notes(id).length >= MAX_NOTES) throw new DeckError('not-possible', `Crash group ${id} already has ${MAX_NOTES} notes: remove one first`)
      const note = writeOrUnavailable(() => store.addNote(id, { atMs: now(), actor, text }))
      const message = `crash group ${id} (${group.errorName ?? group.kind}) has a new note`
      events.publish({ type: 'crash.note-added', actor, message, detail: { crashGroup: id, note } })
      return noteOf(id, note)
    },

    /** @param {number} id @param {number} note @param {string} actor @throws {DeckError} not-found, history-unavailable */
    removeNote (id, note, actor) {
      mustFind(id)
      const removed = noteOf(id, note)
      writeOrUnavailable(() => store.removeNote(id, note))
      events.publish({ type: 'crash.note-removed', actor, message: `a note of ${removed.actor} on crash group ${id} was removed`, detail: { crashGroup: id, note } })
      return removed
    }
  }

  /** @param {number} id */
  function mustFind (id) {
    const group = store.find(id)
    if (!group) throw notFound(id)
    return group
  }

  /** @param {number} id @param {number} note */
  function noteOf (id, note) {
    const found = store.notes(id).find((each) => each.id === note)
    if (!found) throw new DeckError('not-found', `Crash group ${id} has no note ${note}`)
    return found
  }

  /** @param {import('../../db/crash-groups.js').CrashGroup} group @param {CrashAction} action @param {string} actor */
  function settleGroup ({ id, state, errorName, kind }, action, actor) {
    const to = STATES[action]
    if (state === to) return
    writeOrUnavailable(() => store.setState(id, { state: to, atMs: now(), actor }))
    const message = `crash group ${id} (${errorName ?? kind}) is ${to}`
    events.publish({ type: EVENTS[action], actor, message, detail: { crashGroup: id, from: state, to } })
  }

  /** @template {import('../../db/crash-groups.js').CrashGroup} T @param {T[]} groups */
  function withNews (groups) {
    const running = release()
    const known = releases()
    return groups.map(({ highestRelease, ...group }) => ({
      ...group,
      isNewInRelease: group.firstRelease !== null && group.firstRelease === running,
      goneSince: goneSince({ ...group, highestRelease }, { running, releases: known, now: now() }),
      hasReturned: group.returnedAt !== null
    }))
  }
}

/** @template T @param {() => T} work @returns {T} */
function writeOrUnavailable (work) {
  try {
    return work()
  } catch (error) {
    throw new DeckError('history-unavailable', 'the history database cannot be written', { cause: error })
  }
}

/** @param {number} id */
function notFound (id) {
  return new DeckError('not-found', `Crash group ${id} does not exist or is no longer kept`)
}
