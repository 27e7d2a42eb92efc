/**
 * A fact about the cluster, past tense. Fields that do not apply are null.
 * @typedef {object} DeckEvent
 * @property {number} id  ascending without reuse, over all masters of one data folder
 * @property {string} at  wall time, ISO 8601 UTC
 * @property {string} type  for example `worker.exited`
 * @property {string | null} cause
 * @property {number | null} slot
 * @property {number | null} worker
 * @property {number | null} pid
 * @property {string | null} release
 * @property {number | null} rollout
 * @property {string | null} actor
 * @property {number | null} code
 * @property {string | null} signal
 * @property {number | null} uptimeMs
 * @property {string | null} message  one sentence for people
 * @property {Record<string, any> | null} detail
 */

/** @typedef {Partial<Omit<DeckEvent, 'id' | 'at'>> & { type: string }} NewEvent */
/** @typedef {ReturnType<typeof createEventStream>} EventStream */

const BLANK = Object.freeze({
  cause: null,
  slot: null,
  worker: null,
  pid: null,
  release: null,
  rollout: null,
  actor: null,
  code: null,
  signal: null,
  uptimeMs: null,
  message: null,
  detail: null
})

/**
 * Passes events to its subscribers, in order and at once. A subscriber that throws harms neither the others nor the publisher.
 * @param {object} [options]
 * @param {number} [options.lastId]  the newest id used in this data folder
 * @param {((event: NewEvent & { at: string }) => void) | null} [options.relay]  gets the events instead of the subscribers until
 *   `takeOver`, while another master gives out the ids
 * @param {<T>(content: T) => T} [options.hide]  takes out of message and detail what nobody is to read
 * @param {() => number} [options.now]  wall clock, ms since the epoch
 * @param {(error: unknown, event: DeckEvent) => void} [options.onError]
 */
export function createEventStream ({ lastId = 0, relay = null, hide = (content) => content, now = Date.now, onError = () => {} } = {}) {
  /** @type {Set<(event: DeckEvent) => void>} */
  const subscribers = new Set()

  return {
    get lastId () { return lastId },

    /** @param {NewEvent} told @returns {DeckEvent} the event with its id and time; one that is relayed has the id 0 */
    publish (told) {
      const { message = null, detail = null } = told
      const event = { ...told, message: hide(message), detail: hide(detail) }
      const at = new Date(now()).toISOString()
      if (relay) {
        relay({ at, ...event })
        return Object.freeze({ id: 0, at, ...BLANK, ...event })
      }
      const full = Object.freeze({ id: ++lastId, at, ...BLANK, ...event })
      for (const subscriber of subscribers) {
        try {
          subscriber(full)
        } catch (error) {
          onError(error, full)
        }
      }
      return full
    },

    /** From now on this stream gives out the ids. @param {number} last  the newest one that is used */
    takeOver (last) {
      relay = null
      lastId = last
    },

    /** @param {(event: DeckEvent) => void} subscriber @returns {() => void} unsubscribe */
    subscribe (subscriber) {
      subscribers.add(subscriber)
      return () => { subscribers.delete(subscriber) }
    }
  }
}
