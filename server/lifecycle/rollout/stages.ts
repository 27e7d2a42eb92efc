export type Stage = keyof typeof STAGES
type Move =
  | 'pause'
  | 'resume'
  | 'retry'
  | 'promote'
  | 'abort'
  | 'try'
  | 'roll'
  | 'hold'
  | 'roll-back'
  | 'withdraw'
  | 'succeed'
  | 'fail'
/** What others see of a stage. `pausedIn`: where a rollout was when it was paused or held. */
type RolloutState = 'preparing' | 'canary' | 'rolling' | 'paused' | 'held' | 'rolling-back' | 'succeeded'
  | 'rolled-back' | 'failed'
export type Shown = { state: RolloutState, pausedIn: 'preparing' | 'canary' | 'rolling' | null, done: boolean }

/** The moves that end a rollout early. `roll-back`: a new worker has served already; `withdraw`: none has. */
const BACK = Object.freeze({ abort: 'rolling-back', 'roll-back': 'rolling-back', withdraw: 'withdrawing',
  fail: 'failed' })
const HELD = Object.freeze({ ...BACK, hold: 'rolling-held' })

/**
 * The one table of a rollout: what others see of each stage, and where each move leads. A move that is not in a row is
 * refused when an operator asks for it, and a fault when the lifecycle does.
 */
export const STAGES = Object.freeze({
  preparing: { shown: shownAs('preparing'),
    moves: { ...BACK, pause: 'preparing-paused', try: 'canary', roll: 'rolling' } },
  'preparing-paused': { shown: shownAs('paused', 'preparing'),
    moves: { ...BACK, resume: 'preparing', try: 'canary-paused', roll: 'rolling-paused' } },

  canary: { shown: shownAs('canary'),
    moves: { ...HELD, pause: 'canary-paused', promote: 'rolling', hold: 'canary-held' } },
  'canary-paused': { shown: shownAs('paused', 'canary'),
    moves: { ...HELD, resume: 'canary', promote: 'rolling-paused', hold: 'canary-held' } },
  'canary-held': { shown: shownAs('held', 'canary'),
    moves: { ...HELD, resume: 'canary', retry: 'canary', promote: 'rolling-held', hold: 'canary-held' } },

  rolling: { shown: shownAs('rolling'), moves: { ...HELD, pause: 'rolling-paused', succeed: 'succeeded' } },
  'rolling-paused': { shown: shownAs('paused', 'rolling'), moves: { ...HELD, resume: 'rolling' } },
  'rolling-held': { shown: shownAs('held', 'rolling'), moves: { ...HELD, resume: 'rolling', retry: 'rolling' } },

  'rolling-back': { shown: shownAs('rolling-back'), moves: { 'roll-back': 'rolled-back', fail: 'failed' } },
  withdrawing: { shown: shownAs('rolling-back'), moves: { fail: 'failed' } },

  succeeded: { shown: shownAs('succeeded'), moves: {} },
  'rolled-back': { shown: shownAs('rolled-back'), moves: {} },
  failed: { shown: shownAs('failed'), moves: {} }
})

/** @returns what the API names `state`, `pausedIn` and `done` */
export function shownStage ({ stage }: { stage: Stage }): Shown {
  return STAGES[stage].shown
}

/** @returns what it does, or did before it was paused or held */
export function phaseOf ({ stage }: { stage: Stage }): Exclude<RolloutState, 'paused' | 'held'> {
  const { state, pausedIn } = STAGES[stage].shown
  return pausedIn ?? (state as Exclude<RolloutState, 'paused' | 'held'>)
}

export function isHeld (rollout: { stage: Stage }) {
  return shownStage(rollout).state === 'held'
}

/** Tells whether it goes on only when an operator says so */
export function isPausedOrHeld (rollout: { stage: Stage }): boolean {
  return ['paused', 'held'].includes(shownStage(rollout).state)
}

export function canMove ({ stage }: { stage: Stage }, move: Move) {
  return move in STAGES[stage].moves
}

/** `move`: one of its stage's row */
export function makeMove (rollout: { stage: Stage }, move: Move) {
  const { moves } = STAGES[rollout.stage] as { moves: Partial<Record<Move, Stage>> }
  const next = moves[move]
  if (!next) throw new Error(`a rollout that is ${rollout.stage} cannot ${move}: the reducer is broken`)
  rollout.stage = next
}

function shownAs (state: RolloutState, pausedIn: Shown['pausedIn'] = null): Readonly<Shown> {
  return Object.freeze({ state, pausedIn, done: ['succeeded', 'rolled-back', 'failed'].includes(state) })
}
