/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */

/**
 * A command that a deploy runs once its release is prepared, before anything is replaced. `due`: it waits for the end of a
 * pause; `ended`: the deploy was cancelled meanwhile; `output`: its last output, if it failed.
 * @typedef {{ name: 'beforeDeploy', state: 'due' | 'running' | 'passed' | 'failed' | 'ended', startedAt: string | null, finishedAt: string | null, output: string | null }} RolloutHook
 */

/** @returns {RolloutHook} */
export function dueHook () {
  return { name: 'beforeDeploy', state: 'due', startedAt: null, finishedAt: null, output: null }
}

/** @param {Transition} transition @param {Rollout} rollout @param {RolloutHook} hook */
export function beginHook (transition, { id, from, to }, hook) {
  hook.state = 'running'
  hook.startedAt = transition.isoTime()
  transition.command({ type: 'run-hook', rollout: id, from, release: transition.state.releases[String(to)] })
}

/** @param {Pick<Rollout, 'hook'>} rollout */
export function isHookRunning ({ hook }) {
  return hook?.state === 'running'
}

/** @param {Transition} transition @param {Rollout} rollout is cancelled, and its hook ends with it */
export function endHook (transition, rollout) {
  if (isHookRunning(rollout)) transition.command({ type: 'end-hook', rollout: rollout.id })
}

/** @param {Transition} transition @param {Rollout} rollout ends */
export function leaveHook (transition, rollout) {
  endHook(transition, rollout)
  if (rollout.hook?.state === 'running' || rollout.hook?.state === 'due') closeHook(transition, rollout.hook, 'ended')
}

/** @param {Transition} transition @param {RolloutHook} hook @param {'passed' | 'failed' | 'ended'} state @param {string | null} [output] */
export function closeHook (transition, hook, state, output = null) {
  Object.assign(hook, { state, finishedAt: transition.isoTime(), output })
}
