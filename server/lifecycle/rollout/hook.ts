import type { Transition } from '../transition.ts'
import type { Rollout } from '../state.ts'
import type { RolloutHook } from '../../api/shapes.ts'

/**
 * A command that a deploy runs once its release is prepared, before anything is replaced. `due`: it waits for the end
 * of a pause; `ended`: the deploy was cancelled meanwhile; `output`: its last output, if it failed.
 */
export type { RolloutHook }

export function dueHook (): RolloutHook {
  return { name: 'beforeDeploy', state: 'due', startedAt: null, finishedAt: null, output: null }
}

export function beginHook (transition: Transition, { id, from, to }: Rollout, hook: RolloutHook) {
  hook.state = 'running'
  hook.startedAt = transition.isoTime()
  transition.command({ type: 'run-hook', rollout: id, from, release: transition.state.releases[String(to)] })
}

export function isHookRunning ({ hook }: Pick<Rollout, 'hook'>) {
  return hook?.state === 'running'
}

/** `rollout`: is cancelled, and its hook ends with it */
export function endHook (transition: Transition, rollout: Rollout) {
  if (isHookRunning(rollout)) transition.command({ type: 'end-hook', rollout: rollout.id })
}

/** `rollout`: ends */
export function leaveHook (transition: Transition, rollout: Rollout) {
  endHook(transition, rollout)
  if (rollout.hook?.state === 'running' || rollout.hook?.state === 'due') closeHook(transition, rollout.hook, 'ended')
}

export function closeHook (transition: Transition, hook: RolloutHook, state: 'passed' | 'failed' | 'ended',
  output: string | null = null)
{
  Object.assign(hook, { state, finishedAt: transition.isoTime(), output })
}
