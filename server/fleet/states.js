/** @typedef {keyof typeof STATES} FleetState */
/** @typedef {'pause' | 'resume' | 'abort' | 'hold' | 'roll-back' | 'succeed' | 'fail' | 'be-back'} Move */

/**
 * The one table of a rollout over hosts: what is done is replaced by the next rollout; a held one waits for a person. A
 * move that is not in a row is refused.
 */
export const STATES = Object.freeze({
  running: { done: false, moves: { pause: 'paused', hold: 'held', abort: 'rolling-back', 'roll-back': 'rolling-back', succeed: 'succeeded', fail: 'failed' } },
  paused: { done: false, moves: { resume: 'running', hold: 'held', abort: 'rolling-back', 'roll-back': 'rolling-back', succeed: 'succeeded', fail: 'failed' } },
  held: { done: true, moves: { resume: 'running', abort: 'rolling-back', hold: 'held' } },
  'rolling-back': { done: false, moves: { hold: 'held', 'be-back': 'rolled-back' } },
  succeeded: { done: true, moves: {} },
  failed: { done: true, moves: {} },
  'rolled-back': { done: true, moves: {} }
})

/** @param {FleetState} state @param {Move} move @returns {FleetState | null} null: it is not possible from there */
export function nextState (state, move) {
  const { moves } = /** @type {{ moves: Partial<Record<Move, FleetState>> }} */ (STATES[state])
  return moves[move] ?? null
}
