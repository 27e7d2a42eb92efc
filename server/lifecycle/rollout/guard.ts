import type { Transition } from '../transition.ts'
import type { Rollout, Slot } from '../state.ts'

/**
 * Watches a release for a while after its deploy has succeeded, and rolls it back once if it crash-loops. `isTripped`:
 * it crash-loops, and the rollback runs or waits for whatever else is going on; a master that ends meanwhile leaves
 * that to the next one. `endsAt`: wall time, ISO 8601.
 */
export type Guard = { release: string, from: string, rollout: number, isTripped: boolean, endsAt: string }

/** `rollout`: has succeeded */
export function guardDeploy (transition: Transition, { id, kind, from, to }: Rollout) {
  // The guard of the same release goes on.
  if (kind === 'restart') return
  const guardMs = transition.state.options.rollout?.guardMs ?? 0
  liftGuard(transition)
  if (kind !== 'deploy' || to === null || from === to || guardMs === 0) return
  watchUntil(transition, { release: to, from, rollout: id, isTripped: false, endsAt: transition.isoTime(guardMs) },
    guardMs)
}

/** `guard`: of the master before, if it deployed the release that runs */
export function goOnGuarding (transition: Transition, guard: Guard | null = null) {
  if (guard?.release !== transition.state.release.id) return
  const leftMs = Date.parse(guard.endsAt) - Date.parse(transition.isoTime())
  if (leftMs > 0) watchUntil(transition, guard, leftMs)
  else if (guard.isTripped) transition.state.guard = guard
}

function watchUntil (transition: Transition, guard: Guard, ms: number) {
  transition.state.guard = guard
  transition.command({ type: 'set-deadline', deadline: 'guard', id: 0, ms })
}

/** `slot`: crash-loops */
export function tripGuard ({ state }: Transition, { release }: Slot) {
  if (state.guard?.release === release) state.guard.isTripped = true
}

export function liftGuard (transition: Transition) {
  if (!transition.state.guard) return
  transition.state.guard = null
  transition.command({ type: 'clear-deadline', deadline: 'guard', id: 0 })
}
