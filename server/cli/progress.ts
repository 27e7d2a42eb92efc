import { formatExactDuration } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import { isHookRunning, rolloutText } from './output.ts'
import type { Rollout } from '../rollouts/api.ts'

type Step = Rollout['steps'][number]

const STEP_TEXTS: Readonly<Partial<Record<Step['state'], (step: Step) => string>>> = Object.freeze({
  pending: () => 'waits for its retry',
  starting: ({ newWorker }) => `worker ${newWorker} is starting`,
  soaking: ({ newWorker }) => `worker ${newWorker} is ready and is watched for a while`,
  ready: ({ newWorker }) => `worker ${newWorker} is ready`,
  draining: ({ newWorker, oldWorker }) => `worker ${newWorker} has taken over, worker ${oldWorker} is draining`,
  done: ({ newWorker, oldWorker }) =>
    oldWorker === null ? `worker ${newWorker} runs` : `worker ${oldWorker} replaced by worker ${newWorker}`,
  failed: ({ newWorker }) => `worker ${newWorker} failed`,
  reverting: ({ newWorker, from }) => `worker ${newWorker} is starting on ${from} again`,
  reverted: ({ from }) => `back on ${from}`
})

/**
 * Tells each change of a rollout in a line; what had ended before is no news.
 * @param rollout as it is first seen
 * @returns takes the rollout as it is now
 */
export function createProgress (rollout: Rollout, tell: (line: string) => void): (rollout: Rollout) => void {
  let state = rollout.state
  let wasHookRunning = false
  let wasWaiting = false
  const knownSteps = rollout.steps.filter(({ state, finishedAt }) => state === 'pending' || finishedAt !== null)
  /** by slot */
  const known: Map<number, string> = new Map(knownSteps.map((step) => [step.slot, keyOf(step)]))
  return (now) => {
    if (isHookRunning(now) && !wasHookRunning) tell(rolloutText(now))
    wasHookRunning = isHookRunning(now)
    // Whom it waits for changes all the time.
    if (now.waitingFor && !wasWaiting) tell(rolloutText(now))
    wasWaiting = Boolean(now.waitingFor)
    // The end is printed as the result.
    if (now.state !== state && !now.done) tell(stateText(now))
    state = now.state
    for (const step of now.steps) {
      const isNews = known.has(step.slot) ? known.get(step.slot) !== keyOf(step) : step.state !== 'pending'
      known.set(step.slot, keyOf(step))
      if (isNews) tell(stepText(step))
    }
  }
}

function keyOf ({ state, newWorker }: Step) {
  return `${state} ${newWorker}`
}

function stateText (rollout: Rollout) {
  return oneLine(rollout.reason ? `${rolloutText(rollout)}; ${rollout.reason}` : rolloutText(rollout))
}

function stepText (step: Step) {
  const { slot, state, startedAt, finishedAt } = step
  const took = startedAt && finishedAt
    ? ` (${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))})`
    : ''
  return oneLine(`slot ${slot}: ${(STEP_TEXTS[state] ?? (() => state))(step)}${took}`)
}
