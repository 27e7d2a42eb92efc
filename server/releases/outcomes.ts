import { releaseNumber } from '../config/release-id.ts'
import type { Outcome } from './catalogue.ts'
import type { Releases } from './registry.ts'
import type { EventStream } from '../events/stream.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

/** The outcome of a release, by the event that ends its deploy. */
const OUTCOMES: Record<string, Outcome> = { 'rollout.succeeded': 'succeeded', 'rollout.failed': 'failed',
  'rollout.rolled-back': 'rolled-back' }

export function keepOutcomes (
  { releases, events }: { releases: Pick<Releases, 'settle' | 'markRolledBack' | 'prune' | 'save'>,
    events: Pick<EventStream, 'subscribe'> }
) {
  events.subscribe(({ type, rollout, detail }) => {
    if (type === 'history.recovered') return releases.save()
    if (!OUTCOMES[type]) return
    const { kind, from, to, actor, note, reason } = detail as RolloutView
    const outcome = OUTCOMES[type]
    // A failed redeploy of the release that runs says nothing against it.
    if (to && kind !== 'restart' && (outcome === 'succeeded' || to !== from))
      releases.settle({ release: to, outcome, rollout, actor, reason })
    if (to && rollout !== null && outcome === 'succeeded' && isRolledBack({ kind, from, to, actor })) {
      releases.markRolledBack({ release: from, rollout, actor, reason: note })
    }
    // The lifecycle no longer uses the release by then.
    Promise.resolve().then(releases.prune)
  })
}

/** A rollback to a newer release says nothing against the one that runs. */
function isRolledBack ({ kind, from, to, actor }: { kind: string, from: string, to: string, actor: string }) {
  return kind === 'rollback' && (actor === 'guard' || releaseNumber(to) < releaseNumber(from))
}
