import { DEFAULT_STRATEGY } from './strategy.ts'
import type { Transition } from '../transition.ts'
import type { Rollout, Slot } from '../state.ts'

/**
 * Watches a release for a while after its deploy has succeeded, and rolls it back once if it crash-loops or answers
 * hardly anything but 5xx. `isTripped`: it does, and the rollback runs or waits for whatever else is going on; a master
 * that ends meanwhile leaves that to the next one. `endsAt`: wall time, ISO 8601; `failing`: it is no crash loop: what
 * it answers, in words.
 */
export type Guard = { release: string, from: string, rollout: number, isTripped: boolean, endsAt: string,
  answers?: Answers, failing?: string }
/** requests that were answered, and how many of them by 5xx */
export type Count = { requests: number, failed: number }
/** `after`: of a release; `before`: of the last five minutes of the one before; `last`: of their end */
export type Answers = { after: Count, before: Count, last: Count }

const LOOK_EVERY_MS = 5000
/** Of so large a share of 5xx the rest may be health checks. */
const NEARLY_ALL = 0.95
/** Fewer answers of the release before than 1 / FEW do not show that so few were 5xx. */
const FEW = 0.05
/** What both need may have failed just before the release was replaced. */
const LAST_FEW = 1 / 3

/** `rollout`: has succeeded */
export function guardDeploy (transition: Transition, { id, kind, from, to }: Rollout) {
  // The guard of the same release goes on.
  if (kind === 'restart') return
  const guardMs = transition.state.options.rollout?.guardMs ?? 0
  liftGuard(transition)
  if (kind !== 'deploy' || to === null || from === to || guardMs === 0) return
  watchUntil(transition, { release: to, from, rollout: id, isTripped: false, endsAt: transition.isoTime(guardMs) },
    guardMs)
}

/** `guard`: of the master before, if it deployed the release that runs */
export function goOnGuarding (transition: Transition, guard: Guard | null = null) {
  if (guard?.release !== transition.state.release.id) return
  const leftMs = Date.parse(guard.endsAt) - Date.parse(transition.isoTime())
  if (leftMs > 0) watchUntil(transition, guard, leftMs)
  else if (guard.isTripped) transition.state.guard = guard
}

function watchUntil (transition: Transition, guard: Guard, ms: number) {
  transition.state.guard = guard
  transition.command({ type: 'set-deadline', deadline: 'guard', id: 0, ms })
  askAnswers(transition)
}

export function askAnswers (transition: Transition) {
  const { guard } = transition.state
  if (!guard || guard.isTripped) return
  transition.command({ type: 'count-answers', release: guard.release, from: guard.from })
  transition.command({ type: 'set-deadline', deadline: 'answers', id: 0, ms: LOOK_EVERY_MS })
}

/** `after`: since they were counted last; `before`: none where only the master before has counted them */
export function takeAnswers (transition: Transition, { release, after, before, last }: Answers & { release: string }) {
  const { guard, options } = transition.state
  if (guard?.release !== release || guard.isTripped) return
  const known = guard.answers
  guard.answers = { ...known && before.requests === 0 ? known : { before, last },
    after: { requests: after.requests + (known?.after.requests ?? 0),
      failed: after.failed + (known?.after.failed ?? 0) } }
  if (guard.answers.after.requests < (options.rollout?.limits?.minRequests ?? DEFAULT_STRATEGY.limits.minRequests))
    return
  // What fails after others were fine may be what any release needs.
  transition.command({ type: 'clear-deadline', deadline: 'answers', id: 0 })
  if (!areFailing(guard.answers)) return
  const [now, then] = [guard.answers.after, guard.answers.before].map(({ failed, requests }) =>
    `${failed} of ${requests} requests`
  )
  guard.isTripped = true
  guard.failing = `${release} answered ${now} by 5xx after rollout ${guard.rollout}, ${guard.from} ${then} before`
}

/** Tells whether hardly anything but 5xx comes since another release runs */
export function areFailing ({ after, before, last }: Answers): boolean {
  return after.failed >= NEARLY_ALL * after.requests && before.requests >= 1 / FEW &&
    before.failed < FEW * before.requests && last.failed < LAST_FEW * last.requests
}

/** `slot`: crash-loops */
export function tripGuard ({ state }: Transition, { release }: Slot) {
  if (state.guard?.release === release) state.guard.isTripped = true
}

export function liftGuard (transition: Transition) {
  if (!transition.state.guard) return
  transition.state.guard = null
  for (const deadline of ['guard', 'answers'] as const)
    transition.command({ type: 'clear-deadline', deadline, id: 0 })
}
