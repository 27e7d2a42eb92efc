/** What the end of a deploy means for its release. @type {Record<string, import('./catalogue.js').Outcome>} */
const OUTCOMES = { 'rollout.succeeded': 'succeeded', 'rollout.failed': 'failed', 'rollout.rolled-back': 'rolled-back' }

/**
 * Keeps with each release what came of it, by listening to the rollouts.
 * @param {object} parts
 * @param {Pick<import('./registry.js').Releases, 'settle' | 'prune' | 'save'>} parts.releases
 * @param {Pick<import('../events/stream.js').EventStream, 'subscribe'>} parts.events
 */
export function keepOutcomes ({ releases, events }) {
  events.subscribe(({ type, rollout, detail }) => {
    if (type === 'history.recovered') return releases.save()
    if (!OUTCOMES[type]) return
    const { kind, from, to } = /** @type {{ kind: string, from: string, to: string | null }} */ (detail)
    const outcome = OUTCOMES[type]
    // A release that runs is no worse for a redeploy of it that was called off.
    if (to && kind !== 'restart' && (outcome === 'succeeded' || to !== from)) releases.settle({ release: to, outcome, rollout })
    // The lifecycle has let go of it by then.
    queueMicrotask(releases.prune)
  })
}
