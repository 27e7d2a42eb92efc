/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').Worker} Worker */

/**
 * Which workers are new, and which they are compared with.
 * @param {Transition} transition @param {Rollout} rollout
 * @returns {{ fresh: number[], old: number[] }} ids
 */
export function sidesOf ({ state: { workers } }, rollout) {
  // A release may be deployed once more: then only the worker itself tells which is new.
  const isNew = (/** @type {Worker} */ { release, slot, id }) => release === rollout.to && rollout.steps.some((step) => step.slot === slot && (step.from !== rollout.to || step.newWorker === id))
  const fresh = Object.values(workers).filter((worker) => worker.state === 'ready' && isNew(worker)).map(({ id }) => id)
  // What drains has answered in the same time too, and at the end of a rollout nothing else is left of them.
  const old = Object.values(workers).filter((worker) => !worker.orphan && (worker.state === 'ready' ? !isNew(worker) : worker.readyAt !== null && worker.release !== rollout.to)).map(({ id }) => id)
  return { fresh, old }
}

/** @param {Transition} transition @param {Rollout} rollout it stops here: how both sides did until now, those included that were lost */
export function askFigures (transition, rollout) {
  if (rollout.kind !== 'deploy') return
  const { fresh, old } = sidesOf(transition, rollout)
  const tried = rollout.steps.flatMap(({ newWorker }) => newWorker === null || old.includes(newWorker) ? [] : [newWorker])
  transition.command({ type: 'judge', rollout: rollout.id, isFinal: false, fresh: [...new Set([...fresh, ...tried])], old, limits: rollout.strategy.limits })
}
