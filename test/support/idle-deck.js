import { createEventStream } from '../../server/events/stream.js'
import { createFleet } from '../../server/fleet/fleet.js'
import { WHOLE_PROCESS } from '../../server/host/fleet-membership.js'

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

/**
 * A host with one such deck, in a fleet.
 * @param {Pick<import('../../server/fleet/fleet.js').Options, 'servers' | 'name' | 'member'>} options
 * @param {{ folder: string, turnMs?: number, connect?: any }} how
 * @returns {import('../../server/fleet/app-fleet.js').AppFleet & { close: () => Promise<void> }}
 */
export function joinIdleDeck (options, { folder, turnMs, connect }) {
  const deck = createIdleDeck({ turnMs })
  const log = { warn () {} }
  const host = createFleet({
    options: { labels: {}, accept: 'operate', tls: {}, ...options },
    folder,
    only: 'app',
    apps: () => [{ app: 'app', state: 'running', url: null }],
    version: '1.0.0',
    url: null,
    log,
    publish: deck.events.publish,
    serve: async () => { throw new Error('expected no question') },
    ...(connect && { connect })
  })
  host.join({ app: 'app', deck, state: () => 'running', folder, url: null, log, scope: WHOLE_PROCESS })
  const fleet = /** @type {import('../../server/fleet/app-fleet.js').AppFleet} */ (host.of('app'))
  return { ...fleet, close: host.close }
}
