/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').Worker} Worker */

/**
 * Which workers are new, and which they are compared with.
 * @param {Transition} transition @param {Rollout} rollout
 * @returns {{ canary: number[], baseline: number[] }} ids
 */
export function sidesOf ({ state: { workers } }, rollout) {
  // If a release is deployed once more, only the worker itself tells which one is new.
  const isNew = (/** @type {Worker} */ { release, slot, id }) => release === rollout.to &&
    rollout.steps.some((step) => step.slot === slot && (step.from !== rollout.to || step.newWorker === id))
  const canary = Object.values(workers).filter((worker) => worker.state === 'ready' && isNew(worker)).map(({ id }) => id)
  // Draining workers count as well: at the end of a rollout no other old ones are left.
  const isOld = (/** @type {Worker} */ worker) => worker.state === 'ready' ? !isNew(worker) : worker.readyAt !== null && worker.release !== rollout.to
  // A worker that started after the files of its release had been changed in place does not run the old code.
  const baseline = Object.values(workers).filter((worker) => !worker.orphan && !worker.drift && isOld(worker)).map(({ id }) => id)
  return { canary, baseline }
}

/** Asks how both sides did until the rollout stopped, lost workers included. @param {Transition} transition @param {Rollout} rollout */
export function askFigures (transition, rollout) {
  if (rollout.kind !== 'deploy') return
  const { canary, baseline } = sidesOf(transition, rollout)
  const tried = rollout.steps.flatMap(({ newWorker }) => newWorker === null || baseline.includes(newWorker) ? [] : [newWorker])
  const all = [...new Set([...canary, ...tried])]
  transition.command({ type: 'judge', rollout: rollout.id, isFinal: false, canary: all, baseline, limits: rollout.strategy.limits })
}
