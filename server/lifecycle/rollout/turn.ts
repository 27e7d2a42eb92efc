import type { Release, Rollout } from '../state.ts'

/** What a rollout begins with once its turn has come. */
export type Plan = { release: Release | null, source: Record<string, unknown>, slots: number[] }

/** Tells whether rollouts of other apps come first */
export function awaitsTurn (rollout: Pick<Rollout, 'plan'> | null): boolean {
  return rollout?.plan != null
}

/** `apps`: whose rollouts come first */
export function turnText (apps: readonly string[]) {
  return `waits for its turn: ${new Intl.ListFormat('en-GB').format(apps)} ${
    apps.length === 1 ? 'is' : 'are'
  } being rolled out`
}

/**
 * A rollout gives its turn up as soon as it only waits: for the end of its old workers, for the comparison of its
 * canary, or for an operator. `rollout`: as it is now, of whatever number; `id`: of the one that has the turn.
 */
export function needsTurn (rollout: Rollout | null, id: number) {
  if (rollout?.id !== id) return false
  if (awaitsTurn(rollout)) return true
  const isReplaced = rollout.steps.length > 0 && rollout.progress.replaced === rollout.progress.total
  return rollout.canaryEndsAt === null && rollout.pausedAt === null && !isReplaced
}
