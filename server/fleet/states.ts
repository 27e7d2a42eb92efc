export type FleetState = 'running' | 'paused' | 'held' | 'rolling-back' | 'succeeded' | 'failed' | 'rolled-back'
export type Move = 'pause' | 'resume' | 'abort' | 'hold' | 'roll-back' | 'succeed' | 'fail' | 'be-back'

/**
 * The one table of a fleet's rollout. A move that is not in the row of a state is refused. `done`: the next rollout may
 * begin.
 */
export const STATES: Readonly<Record<FleetState, { done: boolean, moves: Partial<Record<Move, FleetState>> }>> = Object
  .freeze({
    running: { done: false,
      moves: { pause: 'paused', hold: 'held', abort: 'rolling-back', 'roll-back': 'rolling-back', succeed: 'succeeded',
        fail: 'failed' } },
    paused: { done: false,
      moves: { resume: 'running', hold: 'held', abort: 'rolling-back', 'roll-back': 'rolling-back',
        succeed: 'succeeded', fail: 'failed' } },
    held: { done: true, moves: { resume: 'running', abort: 'rolling-back', hold: 'held' } },
    'rolling-back': { done: false, moves: { hold: 'held', 'be-back': 'rolled-back' } },
    succeeded: { done: true, moves: {} },
    failed: { done: true, moves: {} },
    'rolled-back': { done: true, moves: {} }
  })

/** Null: it is not possible from there */
export function nextState (state: FleetState, move: Move): FleetState | null {
  return STATES[state].moves[move] ?? null
}
