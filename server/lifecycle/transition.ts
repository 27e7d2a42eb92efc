import type { Command, Fact, PoolState, Rollout, Slot, Stamp, Worker } from './state.ts'
import type { EventType } from '../events/kinds.ts'

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

    emit (type: EventType, fields: Omit<Fact, 'type'> = {}) {
      events.push({ type, ...fields })
    },

    emitForWorker (type: EventType, worker: Worker, fields: Omit<Fact, 'type'> = {}) {
      const { id, slot, pid, release } = worker
      events.push({ type, worker: id, slot, pid, release, rollout: draft.rollout?.id ?? null, ...fields })
    },

    /** `number`: null: of one on standby */
    slot: (number: number | null): Slot | undefined => number === null ? undefined : draft.slots[number - 1],

    /** `id`: as a slot names it, null: none */
    worker: (id: number | null): Worker | undefined => id === null ? undefined : draft.workers[id]
  }
}

/**
 * A copy of the state for one transition, which writes to it. The state is copied for each input, so with many workers
 * its cost is that of a transition: it shares what nobody changes, but only replaces as a whole. `structuredClone`
 * takes forty times as long.
 */

// Each kind of object is copied in a place of its own: V8 copies it in one piece where it has seen no other there.

function draftOf (state: PoolState): PoolState {
  const { slots, rollout, upgrade, recycling, guard } = state
  return { ...state, slots: slots.map((slot) => ({ ...slot })), workers: draftOfWorkers(state.workers),
    rollout: rollout && draftOfRollout(rollout), upgrade: upgrade && { ...upgrade },
    recycling: recycling && { ...recycling }, recyclePace: { ...state.recyclePace }, guard: guard && { ...guard },
    standby: { ...state.standby }, addresses: { ...state.addresses }, releases: { ...state.releases } }
}

export function draftOfRollout<Part extends Pick<Rollout, 'steps' | 'warnings' | 'hook'>> (rollout: Part): Part {
  const { hook } = rollout
  return { ...rollout, steps: rollout.steps.map((step) => ({ ...step })), warnings: [...rollout.warnings],
    ...(hook && { hook: { ...hook } }) }
}

function draftOfWorkers (workers: PoolState['workers']): PoolState['workers'] {
  const drafts = { ...workers }
  for (const worker of Object.values(workers)) {
    const draft = { ...worker }
    if (draft.drain) draft.drain = { ...draft.drain, limits: { ...draft.drain.limits } }
    drafts[worker.id] = draft
  }
  return drafts
}
