/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').Worker} Worker */

/**
 * Which workers are new, and which they are compared with.
 * @param {Transition} transition @param {Rollout} rollout
 * @returns {{ canary: number[], baseline: number[] }} ids
 */
export function sidesOf ({ state: { workers } }, rollout) {
  // A release may be deployed once more: then only the worker itself tells which is new.
  const isNew = (/** @type {Worker} */ { release, slot, id }) => release === rollout.to && rollout.steps.some((step) => step.slot === slot && (step.from !== rollout.to || step.newWorker === id))
  const canary = Object.values(workers).filter((worker) => worker.state === 'ready' && isNew(worker)).map(({ id }) => id)
  // What drains has answered in the same time too, and at the end of a rollout nothing else is left of them.
  const baseline = Object.values(workers).filter((worker) => !worker.orphan && (worker.state === 'ready' ? !isNew(worker) : worker.readyAt !== null && worker.release !== rollout.to)).map(({ id }) => id)
  return { canary, baseline }
}

/** @param {Transition} transition @param {Rollout} rollout it stops here: how both sides did until now, those included that were lost */
export function askFigures (transition, rollout) {
  if (rollout.kind !== 'deploy') return
  const { canary, baseline } = sidesOf(transition, rollout)
  const tried = rollout.steps.flatMap(({ newWorker }) => newWorker === null || baseline.includes(newWorker) ? [] : [newWorker])
  transition.command({ type: 'judge', rollout: rollout.id, isFinal: false, canary: [...new Set([...canary, ...tried])], baseline, limits: rollout.strategy.limits })
}
