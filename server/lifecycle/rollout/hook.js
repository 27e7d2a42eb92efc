/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */

/**
 * What a deploy runs once its release is prepared, before anything is replaced. `due`: it waits for the end of a pause;
 * `ended`: the deploy was called off meanwhile; `output`: the last of it, where it failed.
 * @typedef {{ name: 'beforeDeploy', state: 'due' | 'running' | 'passed' | 'failed' | 'ended', startedAt: string | null, finishedAt: string | null, output: string | null }} RolloutHook
 */

/** @returns {RolloutHook} */
export function dueHook () {
  return { name: 'beforeDeploy', state: 'due', startedAt: null, finishedAt: null, output: null }
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutHook} hook */
export function beginHook (turn, { id, from, to }, hook) {
  hook.state = 'running'
  hook.startedAt = turn.isoTime()
  turn.order({ type: 'run-hook', rollout: id, from, release: turn.state.releases[String(to)] })
}

/** @param {Pick<Rollout, 'hook'>} rollout */
export function isHookRunning ({ hook }) {
  return hook?.state === 'running'
}

/** @param {Turn} turn @param {Rollout} rollout it is called off: what it has begun ends with it */
export function endHook (turn, rollout) {
  if (isHookRunning(rollout)) turn.order({ type: 'end-hook', rollout: rollout.id })
}

/** @param {Turn} turn @param {Rollout} rollout it ends, and nobody waits any more */
export function leaveHook (turn, rollout) {
  endHook(turn, rollout)
  if (rollout.hook?.state === 'running' || rollout.hook?.state === 'due') closeHook(turn, rollout.hook, 'ended')
}

/** @param {Turn} turn @param {RolloutHook} hook @param {'passed' | 'failed' | 'ended'} state @param {string | null} [output] */
export function closeHook (turn, hook, state, output = null) {
  Object.assign(hook, { state, finishedAt: turn.isoTime(), output })
}
