import { goBack } from './rolling-back.ts'
import { countDown, noteProgress, runningRollout, tellRollout } from './record.ts'
import { canMove, isHeld, makeMove, phaseOf, shownStage } from './stages.ts'
import { askJudge, beginJudging, beginTrialAnew, endTrial } from './trial.ts'
import type { Transition } from '../transition.ts'
import type { Inputs, PoolState, Refusal } from '../state.ts'

/** all five verbs share it */
type Steer = Inputs['pause']

/** What an operator can do with a running rollout. */
export const STEERING: Record<Steer['type'], (transition: Transition, input: Steer) => void> = {
  pause (transition, { actor }) {
    const rollout = runningRollout(transition)
    makeMove(rollout, 'pause')
    rollout.pausedAt = transition.isoTime()
    rollout.progressLeftMs = rollout.progressDueAt === null ? null : Math.max(1, rollout.progressDueAt - transition.at)
    transition.command({ type: 'clear-deadline', deadline: 'progress', id: 0 })
    tellRollout(transition, 'rollout.paused', { actor, message: `paused by ${actor}` })
  },

  resume (transition, { actor }) {
    goOn(transition, 'resume', { actor, message: `resumed by ${actor}` })
  },

  retry (transition, { actor }) {
    goOn(transition, 'retry', { actor, message: `retried by ${actor}` })
  },

  promote (transition, { actor }) {
    tellRollout(transition, 'rollout.promoted', { actor, message: `canary promoted by ${actor}` })
    endTrial(transition)
  },

  abort (transition, { actor }) {
    goBack(transition, { reason: `aborted by ${actor}`, actor })
  }
}

function goOn (transition: Transition, verb: 'resume' | 'retry', by: { actor: string, message: string }) {
  const rollout = runningRollout(transition)
  const hadFailed = isHeld(rollout)
  if (hadFailed) {
    rollout.crashes = 0
    rollout.comparison = null
    for (const step of rollout.steps) if (step.state === 'failed') step.state = 'pending'
  }
  makeMove(rollout, verb)
  rollout.reason = null
  rollout.pausedAt = null
  tellRollout(transition, 'rollout.resumed', by)
  if (rollout.progressLeftMs === null) noteProgress(transition)
  else countDown(transition, rollout.progressLeftMs)
  rollout.progressLeftMs = null
  // The hold has stopped its clocks, and figures from before it no longer count.
  if (hadFailed) beginJudging(transition)
  if (phaseOf(rollout) !== 'canary') return
  beginTrialAnew(transition, { isForced: hadFailed })
  // The trial's time may have passed meanwhile.
  if (rollout.canaryEndsAt !== null && rollout.canaryEndsAt <= transition.isoTime()) askJudge(transition, 'canary')
}

/** @returns why it is not possible now */
export function refuseSteering ({ rollout }: PoolState, { type, rollout: id }: Steer): Refusal | null {
  if (rollout?.id !== id) return { code: 'rollout-ended', message: `rollout ${id} has ended`, details: { rollout: id } }
  if (canMove(rollout, type)) return null
  const { state } = shownStage(rollout)
  const why = state === 'rolling-back' ? 'is already rolling back' : CONFLICTS[type](state)
  return { code: 'rollout-state', message: `rollout ${id} ${why}`, details: { rollout: id, state } }
}

const CONFLICTS: Record<Steer['type'], (state: string) => string> = { pause: (state) => `is already ${state}`,
  resume: (state) => `is ${state}, not paused`, retry: () => 'is not held', promote: () => 'has no canary to promote',
  abort: () => 'is already rolling back' }
