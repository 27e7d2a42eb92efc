import { draftOf } from './draft.ts'
import type { Command, Fact, PoolState, Slot, Stamp, Worker } from './state.ts'

/**
 * One transition of the reducer: a private copy of the state that the handlers write to, the commands and the events
 * that come of it.
 */
export type Transition = ReturnType<typeof beginTransition>

export function beginTransition (state: PoolState, stamp: Stamp) {
  const draft = draftOf(state)
  const commands: Command[] = []
  const events: Fact[] = []

  return {
    state: draft,
    commands,
    events,
    at: stamp.at,
    random: stamp.random,
    drift: stamp.drift ?? {},
    /** Wall time as history shows it. */
    isoTime: (delayMs = 0) => new Date(stamp.time + delayMs).toISOString(),

    command (command: Command) {
      commands.push(command)
    },

    emit (type: string, fields: Omit<Fact, 'type'> = {}) {
      events.push({ type, ...fields })
    },

    emitForWorker (type: string, worker: Worker, fields: Omit<Fact, 'type'> = {}) {
      const { id, slot, pid, release } = worker
      events.push({ type, worker: id, slot, pid, release, rollout: draft.rollout?.id ?? null, ...fields })
    },

    /** `number`: null: of one on standby */
    slot: (number: number | null): Slot | undefined => number === null ? undefined : draft.slots[number - 1],

    /** `id`: as a slot names it, null: none */
    worker: (id: number | null): Worker | undefined => id === null ? undefined : draft.workers[id]
  }
}
