import { needsTurn } from '../lifecycle/rollout/turn.ts'
import type { Cluster } from './cluster.ts'

/**
 * Turns among the apps of a host, some of which start, or are rolled out, at a time. `take`: resolves once a turn has
 * come, which ends with
 * `over`; null: it has come at once. `taken`: the apps that have one.
 */
export type Turns = { take: (over: Promise<unknown>) => Promise<void> | null, taken: () => string[] }

/** Takes a turn for each rollout of this app among those of the other apps of its host. */
export function createRolloutTurn (cluster: Cluster) {
  const { rolloutTurns: turns, receive } = cluster
  let last: { rollout: number, over: PromiseWithResolvers<void> } | null = null
  cluster.on('turn', () => {
    if (last && !needsTurn(cluster.state.rollout, last.rollout)) leave()
  })

  return {
    isNeeded: turns !== null,

    take ({ rollout }: { rollout: number }) {
      last = { rollout, over: Promise.withResolvers() }
      const coming = turns?.take(last.over.promise) ?? null
      const begin = () => receive({ type: 'rollout-turn-came', rollout })
      if (coming === null) return begin()
      receive({ type: 'rollout-waits', rollout, apps: turns?.taken() ?? [] })
      coming.then(begin)
    },

    leave,

    /** `view`: of the running rollout @returns with those that it waits for by now */
    shown: <View extends { waitingFor?: string[] | null }>(view: View | null): View | null =>
      view?.waitingFor ? { ...view, waitingFor: turns?.taken() ?? [] } : view
  }

  /** Another app may have the turn. */
  function leave () {
    last?.over.resolve()
    last = null
  }
}
