import { formatExactDuration } from '../../public/format.js'
import { oneLine } from '../system/one-line.js'
import { isHookRunning, rolloutText } from './output.js'

/** @type {Readonly<Record<string, (step: any) => string>>} */
const STEP_TEXTS = Object.freeze({
  pending: () => 'to be tried again',
  starting: ({ newWorker }) => `worker ${newWorker} is starting`,
  soaking: ({ newWorker }) => `worker ${newWorker} is ready, and has to stay so for a while`,
  ready: ({ newWorker }) => `worker ${newWorker} is ready`,
  draining: ({ newWorker, oldWorker }) => `worker ${newWorker} has taken over, worker ${oldWorker} is draining`,
  done: ({ newWorker, oldWorker }) => oldWorker === null ? `worker ${newWorker} is there` : `worker ${oldWorker} replaced by worker ${newWorker}`,
  failed: ({ newWorker }) => `worker ${newWorker} failed`,
  reverting: ({ newWorker, from }) => `worker ${newWorker} is starting on ${from} again`,
  reverted: ({ from }) => `back on ${from}`
})

/**
 * Tells what changes in a rollout, a line each; what was over before is no news.
 * @param {any} rollout as it is first seen @param {(line: string) => void} tell
 * @returns {(rollout: any) => void} takes it as it is now
 */
export function createProgress (rollout, tell) {
  /** @type {string} */
  let state = rollout.state
  let wasHookRunning = false
  /** @type {Map<number, string>} by slot */
  const known = new Map(rollout.steps.filter((/** @type {any} */ { state, finishedAt }) => state === 'pending' || finishedAt !== null).map((/** @type {any} */ step) => [step.slot, keyOf(step)]))
  return (now) => {
    if (isHookRunning(now) && !wasHookRunning) tell(rolloutText(now))
    wasHookRunning = isHookRunning(now)
    // The end is the result.
    if (now.state !== state && !now.done) tell(stateText(now))
    state = now.state
    for (const step of now.steps) {
      const isNews = known.has(step.slot) ? known.get(step.slot) !== keyOf(step) : step.state !== 'pending'
      known.set(step.slot, keyOf(step))
      if (isNews) tell(stepText(step))
    }
  }
}

/** @param {any} step */
function keyOf ({ state, newWorker }) {
  return `${state} ${newWorker}`
}

/** @param {any} rollout */
function stateText (rollout) {
  return oneLine(rollout.reason ? `${rolloutText(rollout)}; ${rollout.reason}` : rolloutText(rollout))
}

/** @param {any} step */
function stepText (step) {
  const { slot, state, startedAt, finishedAt } = step
  const took = startedAt && finishedAt ? ` (${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))})` : ''
  return oneLine(`slot ${slot}: ${(STEP_TEXTS[state] ?? (() => state))(step)}${took}`)
}
