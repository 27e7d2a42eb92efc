import { createEventStream } from '../../server/events/stream.ts'
import { createFleet, type Options } from '../../server/fleet/fleet.ts'
import { WHOLE_PROCESS } from '../../server/host/foreground.ts'
import { fake } from './fake.ts'
import type { AppFleet } from '../../server/fleet/app-fleet.ts'
import type { Deck } from '../../server/deck.ts'

/** A deck without workers, for members of a fleet: each of its rollouts succeeds after a while. */
export function createIdleDeck ({ turnMs = 0 }: { turnMs?: number } = {}) {
  const events = createEventStream({ lastId: 0 })
  let rollouts = 0
  return fake<Deck>({ events,
    snapshot: () => ({ app: { name: 'app' }, release: { id: 'r1' }, readyWorkers: 4, desiredWorkers: 4, rollout: null,
      workers: [] }), health: () => ({ tone: 'ok', text: 'All 4 workers are ready' }),
    crashes: { counts: () => ({ open: 0 }) }, history: { rollout: () => null }, notices: { list: () => [] },
    releases: { list: () => ({ items: [] }) }, dispatch () {
    const rollout = ++rollouts
    setTimeout(() => events.publish({ type: 'rollout.succeeded', rollout, release: 'r1', actor: 'bench', message: '' }),
      turnMs)
    return { id: rollout }
  } })
}

/** A host with one such deck, in a fleet. */
export function joinIdleDeck (options: Pick<Options, 'servers' | 'name' | 'member'>,
  { folder, turnMs, connect }: { folder: string, turnMs?: number,
    connect?: Parameters<typeof createFleet>[0]['connect'] }): AppFleet & { close: () => Promise<void> }
{
  const deck = createIdleDeck({ turnMs })
  const log = { warn () {} }
  const host = createFleet({ options: { labels: {}, accept: 'operate', tls: {}, ...options }, folder, only: 'app',
    apps: () => [{ app: 'app', state: 'running', url: null }], version: '1.0.0', url: null, log,
    publish: deck.events.publish, history: null, serve: async () => {
      throw new Error('expected no question')
    }, ...(connect && { connect }) })
  host.join({ app: 'app', deck, state: () => 'running', folder, url: null, log, scope: WHOLE_PROCESS })
  const fleet = host.of('app') as AppFleet
  return { ...fleet, close: host.close }
}
