import type { Event, Run } from '../api/shapes.ts'

/** A fact about the cluster, past tense. Fields that do not apply are null. */
export type DeckEvent =
  & Omit<Event, 'type' | 'cause' | 'detail'>
  & {
    /** one of a later or an earlier version too */
    type: string,
    cause: string | null,
    detail: Detail | null,
    /** where the events of several apps are read as one: whose it is; null: the host's own */
    app?: string | null
  }

/** What events of some types add, where somebody reads it. */
export type Detail = { [name: string]: unknown, id?: number, kind?: string, from?: string, to?: string,
  steps?: { slot: number, state: string }[], verdicts?: { passed: boolean | null }[],
  changes?: { name: string, to: unknown }[], holders?: { name: string }[], crash?: number, crashGroup?: number,
  errorName?: string, hint?: string, stack?: string, lastLines?: string[], endedRequests?: number,
  endedConnections?: number, stalledRequests?: number, library?: string, job?: string | null, command?: string | null,
  git?: string, stage?: Run['stage'], dueAt?: string | null, hasTerminal?: boolean, missed?: number, lateMs?: number,
  delayMs?: number, backMs?: number, since?: string, lost?: number | null, notice?: number, member?: string }

export type NewEvent = Partial<Omit<DeckEvent, 'id' | 'at' | 'detail'>> & { type: string, detail?: object | null }
/** Whoever takes events. */
export type Publisher = { publish: (event: NewEvent) => unknown }
export type EventStream = ReturnType<typeof createEventStream>

const BLANK = Object.freeze({ cause: null, slot: null, worker: null, pid: null, release: null, rollout: null,
  actor: null, code: null, signal: null, uptimeMs: null, message: null, detail: null })

/**
 * Passes events to its subscribers, in order and at once. A subscriber that throws harms neither the others nor the
 * publisher.
 */
export function createEventStream (
  { lastId = 0, relay = null, hide = (content) => content, now = Date.now, onError = () => {} }: {
    /** the newest id used in this data folder */
    lastId?: number,
    /**
     * gets the events instead of the subscribers until
     * `takeOver`, while another master gives out the ids
     */
    relay?: ((event: NewEvent & { at: string }) => void) | null,
    /** takes out of message and detail what nobody is to read */
    hide?: <T>(content: T) => T,
    /** wall clock, ms since the epoch */
    now?: () => number,
    onError?: (error: unknown, event: DeckEvent) => void
  } = {}
) {
  const subscribers: Set<(event: DeckEvent) => void> = new Set()

  return {
    get lastId () {
      return lastId
    },

    /** @returns the event with its id and time; one that is relayed has the id 0 */
    publish (told: NewEvent): DeckEvent {
      const { message = null, detail = null } = told
      const event = { ...told, message: hide(message), detail: hide(detail as Detail | null) }
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

    /** From now on this stream gives out the ids. `last`: the newest one that is used. */
    takeOver (last: number) {
      relay = null
      lastId = last
    },

    subscribe (subscriber: (event: DeckEvent) => void): () => void {
      subscribers.add(subscriber)
      return () => {
        subscribers.delete(subscriber)
      }
    }
  }
}
