import { DeckError } from '../errors.js'

/** @typedef {'resolve' | 'mute' | 'reopen'} CrashAction */

const STATES = /** @type {const} */ ({ resolve: 'resolved', mute: 'muted', reopen: 'open' })
const EVENTS = Object.freeze({ resolve: 'crash.group-resolved', mute: 'crash.group-muted', reopen: 'crash.group-reopened' })

/**
 * What an operator sees of the crashes, and can say of them.
 * @param {object} parts
 * @param {import('../../db/history.js').History['crashes']} parts.store
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {() => string | null} parts.release  the one that runs
 * @param {() => number} [parts.now]
 */
export function createCrashService ({ store, events, release, now = Date.now }) {
  return {
    /** @param {import('../../db/crash-groups.js').GroupQuery} query */
    page (query) {
      const { items, next } = store.page(query)
      return { items: items.map(withNews), next }
    },

    /** How many groups there are of each state. */
    counts: () => store.counts(),

    /** One group without its samples: what costs little to look at again and again. @param {number} id @throws {DeckError} not-found */
    group (id) {
      const group = store.find(id)
      if (!group) throw notFound(id)
      return withNews(group)
    },

    /** One group with its samples, newest first, and all that is known of the newest. @param {number} id @throws {DeckError} not-found */
    find (id) {
      const group = store.find(id)
      if (!group) throw notFound(id)
      return { ...withNews(group), occurrences: store.occurrences(id), latest: store.newest(id) }
    },

    /** @param {number} id @param {number} crash @throws {DeckError} not-found */
    occurrence (id, crash) {
      if (!store.find(id)) throw notFound(id)
      const record = store.occurrence(id, crash)
      if (!record) throw new DeckError('not-found', `Crash group ${id} has no occurrence ${crash}; a group keeps only some`)
      return record
    },

    /** @param {number} id @param {CrashAction} action @param {string} actor @throws {DeckError} not-found, history-unavailable */
    act (id, action, actor) {
      const group = store.find(id)
      if (!group) throw notFound(id)
      if (group.state !== STATES[action]) {
        change(id, { state: STATES[action], atMs: now(), actor })
        const message = `crash group ${id} (${group.errorName ?? group.kind}) is ${STATES[action]}`
        events.publish({ type: EVENTS[action], actor, message, detail: { crashGroup: id, from: group.state, to: STATES[action] } })
      }
      return withNews(/** @type {import('../../db/crash-groups.js').CrashGroup} */ (store.find(id)))
    }
  }

  /** @param {number} id @param {Parameters<typeof store.setState>[1]} to */
  function change (id, to) {
    try {
      store.setState(id, to)
    } catch (error) {
      throw new DeckError('history-unavailable', 'the history database cannot be written', { cause: error })
    }
  }

  /** @template {import('../../db/crash-groups.js').CrashGroup} T @param {T} group */
  function withNews (group) {
    return { ...group, isNewInRelease: group.firstRelease !== null && group.firstRelease === release(), hasReturned: group.returnedAt !== null }
  }
}

/** @param {number} id */
function notFound (id) {
  return new DeckError('not-found', `Crash group ${id} does not exist or is no longer kept`)
}
