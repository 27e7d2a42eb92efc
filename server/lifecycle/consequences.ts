import { whyNoReturn } from './drift.ts'
import { drainReplaced } from './hang.ts'
import { endHeaps } from './last-heap.ts'
import { endSurplus } from './old-workers.ts'
import { drainOrphans } from './orphans.ts'
import { callOff, recycleNext } from './recycling.ts'
import { liftGuard } from './rollout/guard.ts'
import { advanceRollout, startRollout, takeTurn } from './rollout/rollout.ts'
import { isClaimed, isFinished, isOccupied, isVacant, stopsFirst } from './slot.ts'
import { keepStandbys } from './standby.ts'
import { forkServing } from './worker.ts'
import type { Transition } from './transition.ts'
import type { PoolState, Slot, Worker } from './state.ts'

/** Does what follows from the state, whatever the input was. */
export function settleState (transition: Transition) {
  const { state } = transition
  // The guard acts only after the running rollout, which therefore waits for no other app any more.
  if (state.guard?.isTripped && state.rollout) takeTurn(transition, { rollout: state.rollout.id })
  advanceRollout(transition)
  if (state.phase === 'starting' && state.slots.every((slot) => isReady(state, slot))) {
    state.phase = 'running'
  }
  if (state.phase !== 'stopping') drainOrphans(transition, (orphan) => isReplaced(transition, orphan))
  drainReplaced(transition)
  endSurplus(transition)
  endHeaps(transition)
  rollBackGuarded(transition)
  fillVacant(transition)
  recycleNext(transition)
  keepStandbys(transition)
  if (state.phase === 'stopping' && Object.keys(state.workers).length === 0 && !state.upgrade) {
    state.phase = 'stopped'
    transition.command({ type: 'finish' })
  }
}

/** Tells whether an orphan is no longer needed, or makes way for its replacement next */
function isReplaced (transition: Transition, { slot: number, state: its }: Worker): boolean {
  const { state } = transition
  const slot = transition.slot(number)
  if (state.phase === 'running' || isReady(state, slot)) return true
  if (!stopsFirst(state) || !slot || !isVacant(slot) || its !== 'ready') return false
  const waiting = state.slots.filter((each) => !isReady(state, each))
  // Orphans make way one slot after the other.
  return waiting[0] === slot && waiting.every((each) => isVacant(each) && isServedByOrphan(state, each))
}

function isServedByOrphan ({ workers }: PoolState, { number }: Slot) {
  return Object.values(workers).some(({ slot, orphan, state }) =>
    slot === number && orphan !== null && state === 'ready'
  )
}

/** Starts workers that had to wait for the old ones to go, see rollout.order. */
function fillVacant (transition: Transition) {
  const { state } = transition
  if (state.phase !== 'starting' && state.phase !== 'running') return
  const mayFill = (slot: Slot) => !isClaimed(state, slot) && !(stopsFirst(state) && isOccupied(state, slot.number))
  for (const slot of state.slots) if (isVacant(slot) && mayFill(slot)) forkServing(transition, slot)
}

/** Rolls back the release that was deployed last if it crash-loops or fails. */
function rollBackGuarded (transition: Transition) {
  const { guard, rollout, upgrade, phase } = transition.state
  if (!guard?.isTripped || rollout || upgrade || !['starting', 'running'].includes(phase)) return
  const note = guard.failing ?? `${guard.release} kept crashing after rollout ${guard.rollout}`
  const whyNot = whyNoReturn(transition, guard.from)
  if (whyNot !== null) {
    liftGuard(transition)
    return transition.emit('rollback.refused', { release: guard.release, actor: 'guard', rollout: guard.rollout,
      message: `${note}, but ${whyNot}`, detail: transition.drift[guard.from] })
  }
  callOff(transition, { cause: 'rollback', actor: 'guard' })
  startRollout(transition, { kind: 'rollback', source: { release: guard.from }, note, actor: 'guard',
    isTried: guard.failing !== undefined })
}

/** Tells whether every slot is served and no worker is to be replaced */
export function isSettled (state: PoolState): boolean {
  return state.phase === 'running' && !state.rollout && !state.recycling && !state.upgrade &&
    state.slots.every((slot) => isReady(state, slot))
}

/** Tells whether the slot is served, or finished */
function isReady ({ workers }: PoolState, slot: Slot | undefined): boolean {
  return slot !== undefined && (isFinished(slot) || (slot.serving !== null && workers[slot.serving].state === 'ready'))
}
