import { createEventStream } from '../../server/events/stream.js'

/**
 * A deck without workers, for members of a fleet: each of its rollouts succeeds after a while.
 * @param {{ turnMs?: number }} [options]
 */
export function createIdleDeck ({ turnMs = 0 } = {}) {
  const events = createEventStream({ lastId: 0 })
  let rollouts = 0
  return /** @type {any} */ ({
    events,
    snapshot: () => ({ app: { name: 'app' }, release: { id: 'r1' }, readyWorkers: 4, desiredWorkers: 4, rollout: null, workers: [] }),
    health: () => ({ tone: 'ok', text: 'All 4 workers are ready' }),
    crashes: { counts: () => ({ open: 0 }) },
    history: { rollout: () => null },
    notices: { list: () => [] },
    releases: { list: () => ({ items: [] }) },
    dispatch () {
      const rollout = ++rollouts
      setTimeout(() => events.publish({ type: 'rollout.succeeded', rollout, release: 'r1', actor: 'bench', message: '' }), turnMs)
      return { id: rollout }
    }
  })
}
