import type { PoolState, Rollout } from './state.ts'

/**
 * A copy of the state for one transition, which writes to it. The state is copied for each input, so with many workers
 * its cost is that of a transition: it shares what nobody changes, but only replaces as a whole. `structuredClone`
 * takes forty times as long.
 */

// Each kind of object is copied in a place of its own: V8 copies it in one piece where it has seen no other there.

export function draftOf (state: PoolState): PoolState {
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
