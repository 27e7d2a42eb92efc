/** @typedef {import('../transition.js').Transition} Transition */

/**
 * Watches a release for a while after its deploy has succeeded, and rolls it back once if it crash-loops. `isTripped`: it
 * crash-loops, and the rollback runs or waits for whatever else is going on; a master that ends meanwhile leaves that to
 * the next one. `endsAt`: wall time, ISO 8601.
 * @typedef {{ release: string, from: string, rollout: number, isTripped: boolean, endsAt: string }} Guard
 */

/** @param {Transition} transition @param {import('../state.js').Rollout} rollout has succeeded */
export function guardDeploy (transition, { id, kind, from, to }) {
  // The guard of the same release goes on.
  if (kind === 'restart') return
  const guardMs = transition.state.options.rollout?.guardMs ?? 0
  liftGuard(transition)
  if (kind !== 'deploy' || to === null || from === to || guardMs === 0) return
  watchUntil(transition, { release: to, from, rollout: id, isTripped: false, endsAt: transition.isoTime(guardMs) }, guardMs)
}

/** @param {Transition} transition @param {Guard | null} [guard] of the master before, if it deployed the release that runs */
export function goOnGuarding (transition, guard = null) {
  if (guard?.release !== transition.state.release.id) return
  const leftMs = Date.parse(guard.endsAt) - Date.parse(transition.isoTime())
  if (leftMs > 0) watchUntil(transition, guard, leftMs)
  else if (guard.isTripped) transition.state.guard = guard
}

/** @param {Transition} transition @param {Guard} guard @param {number} ms */
function watchUntil (transition, guard, ms) {
  transition.state.guard = guard
  transition.command({ type: 'set-deadline', deadline: 'guard', id: 0, ms })
}

/** @param {Transition} transition @param {import('../state.js').Slot} slot crash-loops */
export function tripGuard ({ state }, { release }) {
  if (state.guard?.release === release) state.guard.isTripped = true
}

/** @param {Transition} transition */
export function liftGuard (transition) {
  if (!transition.state.guard) return
  transition.state.guard = null
  transition.command({ type: 'clear-deadline', deadline: 'guard', id: 0 })
}
