import type { Transition } from '../transition.ts'
import type { Rollout, Worker } from '../state.ts'

/** Which workers are new, and which they are compared with. Returns ids. */
export function sidesOf ({ state: { workers } }: Transition,
  rollout: Rollout): { canary: number[], baseline: number[] }
{
  // If a release is deployed once more, only the worker itself tells which one is new.
  const isNew = ({ release, slot, id }: Worker) =>
    release === rollout.to &&
    rollout.steps.some((step) => step.slot === slot && (step.from !== rollout.to || step.newWorker === id))
  const canary = Object.values(workers).filter((worker) => worker.state === 'ready' && isNew(worker)).map(({ id }) =>
    id
  )
  // Draining workers count as well: at the end of a rollout no other old ones are left.
  const isOld = (worker: Worker) =>
    worker.state === 'ready' ? !isNew(worker) : worker.readyAt !== null && worker.release !== rollout.to
  // A worker that started after the files of its release had been changed in place does not run the old code.
  const baseline = Object.values(workers).filter((worker) => !worker.orphan && !worker.drift && isOld(worker)).map((
    { id }
  ) => id)
  return { canary, baseline }
}

/** Asks how both sides did until the rollout stopped, lost workers included. */
export function askFigures (transition: Transition, rollout: Rollout) {
  if (rollout.kind !== 'deploy') return
  const { canary, baseline } = sidesOf(transition, rollout)
  const tried = rollout.steps.flatMap(({ newWorker }) =>
    newWorker === null || baseline.includes(newWorker) ? [] : [newWorker]
  )
  const all = [...new Set([...canary, ...tried])]
  transition.command({ type: 'judge', rollout: rollout.id, isFinal: false, canary: all, baseline,
    limits: rollout.strategy.limits })
}
