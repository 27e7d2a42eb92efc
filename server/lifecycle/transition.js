import { draftOf } from './draft.js'

/**
 * One transition of the reducer: a private copy of the state that the handlers write to, the commands and the events that come of it.
 * @typedef {ReturnType<typeof beginTransition>} Transition
 */

/**
 * @param {import('./state.js').PoolState} state
 * @param {import('./state.js').Stamp} stamp
 */
export function beginTransition (state, stamp) {
  const draft = draftOf(state)
  /** @type {import('./state.js').Command[]} */
  const commands = []
  /** @type {import('./state.js').Fact[]} */
  const events = []

  return {
    state: draft,
    commands,
    events,
    at: stamp.at,
    random: stamp.random,
    drift: stamp.drift ?? {},
    /** Wall time as history shows it. */
    isoTime: (delayMs = 0) => new Date(stamp.time + delayMs).toISOString(),

    /** @param {import('./state.js').Command} command */
    command (command) { commands.push(command) },

    /** @param {string} type @param {Record<string, any>} [fields] */
    emit (type, fields = {}) { events.push({ type, ...fields }) },

    /** @param {string} type @param {import('./state.js').Worker} worker @param {Record<string, any>} [fields] */
    emitForWorker (type, worker, fields = {}) {
      const { id, slot, pid, release } = worker
      events.push({ type, worker: id, slot, pid, release, rollout: draft.rollout?.id ?? null, ...fields })
    },

    /** @param {number | null} number null: of one on standby @returns {import('./state.js').Slot | undefined} */
    slot: (number) => number === null ? undefined : draft.slots[number - 1],

    /** @param {number | null} id as a slot names it, null: none @returns {import('./state.js').Worker | undefined} */
    worker: (id) => id === null ? undefined : draft.workers[id]
  }
}
