/** @typedef {import('../turn.js').Turn} Turn */

/**
 * Watches a release for a while after its deploy has succeeded: what loops in crashes then is rolled back, once.
 * `isTripped`: it has happened, and waits for whatever else is going on, or is being rolled back; a master that ends
 * meanwhile leaves that to the next one. `endsAt`: wall time, ISO 8601.
 * @typedef {{ release: string, from: string, rollout: number, isTripped: boolean, endsAt: string }} Guard
 */

/** @param {Turn} turn @param {import('../state.js').Rollout} rollout it has succeeded */
export function guardDeploy (turn, { id, kind, from, to }) {
  // The same release goes on.
  if (kind === 'restart') return
  const guardMs = turn.state.options.rollout?.guardMs ?? 0
  liftGuard(turn)
  if (kind !== 'deploy' || to === null || from === to || guardMs === 0) return
  watchUntil(turn, { release: to, from, rollout: id, isTripped: false, endsAt: turn.isoTime(guardMs) }, guardMs)
}

/** @param {Turn} turn @param {Guard | null} [guard] of the master before, which had deployed what runs */
export function goOnGuarding (turn, guard = null) {
  if (guard?.release !== turn.state.release.id) return
  const leftMs = Date.parse(guard.endsAt) - Date.parse(turn.isoTime())
  if (leftMs > 0) watchUntil(turn, guard, leftMs)
  else if (guard.isTripped) turn.state.guard = guard
}

/** @param {Turn} turn @param {Guard} guard @param {number} ms */
function watchUntil (turn, guard, ms) {
  turn.state.guard = guard
  turn.order({ type: 'set-deadline', deadline: 'guard', id: 0, ms })
}

/** @param {Turn} turn @param {import('../state.js').Slot} slot it has begun to crash again and again */
export function tripGuard ({ state }, { release }) {
  if (state.guard?.release === release) state.guard.isTripped = true
}

/** @param {Turn} turn */
export function liftGuard (turn) {
  if (!turn.state.guard) return
  turn.state.guard = null
  turn.order({ type: 'clear-deadline', deadline: 'guard', id: 0 })
}
