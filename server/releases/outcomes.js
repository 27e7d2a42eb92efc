import { releaseNumber } from '../config/release-id.js'

/** The outcome of a release, by the event that ends its deploy. @type {Record<string, import('./catalogue.js').Outcome>} */
const OUTCOMES = { 'rollout.succeeded': 'succeeded', 'rollout.failed': 'failed', 'rollout.rolled-back': 'rolled-back' }

/**
 * Keeps the outcome of rollouts with their release.
 * @param {object} parts
 * @param {Pick<import('./registry.js').Releases, 'settle' | 'markRolledBack' | 'prune' | 'save'>} parts.releases
 * @param {Pick<import('../events/stream.js').EventStream, 'subscribe'>} parts.events
 */
export function keepOutcomes ({ releases, events }) {
  events.subscribe(({ type, rollout, detail }) => {
    if (type === 'history.recovered') return releases.save()
    if (!OUTCOMES[type]) return
    const { kind, from, to, actor, note, reason } = /** @type {import('../lifecycle/rollout/record.js').RolloutView} */ (detail)
    const outcome = OUTCOMES[type]
    // A failed redeploy of the release that runs says nothing against it.
    if (to && kind !== 'restart' && (outcome === 'succeeded' || to !== from)) releases.settle({ release: to, outcome, rollout, actor, reason })
    if (to && rollout !== null && outcome === 'succeeded' && isRolledBack({ kind, from, to, actor })) {
      releases.markRolledBack({ release: from, rollout, actor, reason: note })
    }
    // The lifecycle no longer uses the release by then.
    Promise.resolve().then(releases.prune)
  })
}

/**
 * A rollback to a newer release says nothing against the one that runs.
 * @param {{ kind: string, from: string, to: string, actor: string }} rollout
 */
function isRolledBack ({ kind, from, to, actor }) {
  return kind === 'rollback' && (actor === 'guard' || releaseNumber(to) < releaseNumber(from))
}
