import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { Deck } from '../deck.ts'
import type { Status } from './cluster.ts'

/** What one look at the cluster shows. The lifecycle says the states of workers as any text. */
export function statusOf (deck: Pick<Deck, 'status'>): Status {
  const { workers, standby, rollout, ...status } = deck.status()
  return { ...status, workers: workers as Status['workers'], standby: standby as Status['standby'],
    rollout: rollout && rolloutSummary(rollout) }
}

/** Leaves out the details that only the page of one rollout needs. */
export function rolloutSummary ({ timeline, comparisons, ...rollout }: RolloutView) {
  return rollout
}
