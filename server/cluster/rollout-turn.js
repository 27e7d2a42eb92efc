import { needsTurn } from '../lifecycle/rollout/turn.js'

/** @typedef {import('../lifecycle/state.js').Rollout} Rollout */
/**
 * Turns among the apps of a host, some of which start, or are rolled out, at a time. `take`: resolves once a turn has come, which ends with
 * `over`; null: it has come at once. `taken`: the apps that have one.
 * @typedef {{ take: (over: Promise<unknown>) => Promise<void> | null, taken: () => string[] }} Turns
 */

/**
 * Takes a turn for each rollout of this app among those of the other apps of its host.
 * @param {object} parts
 * @param {Turns | null} parts.turns  null: there is no other app
 * @param {(input: import('../lifecycle/state.js').PlainInput) => void} parts.receive
 */
export function createRolloutTurn ({ turns, receive }) {
  /** @type {{ rollout: number, over: PromiseWithResolvers<void> } | null} */
  let last = null

  return {
    /** Whether rollouts need one. */
    isNeeded: turns !== null,

    /** @param {{ rollout: number }} order */
    take ({ rollout }) {
      last = { rollout, over: Promise.withResolvers() }
      const coming = turns?.take(last.over.promise) ?? null
      const begin = () => receive({ type: 'rollout-turn-came', rollout })
      if (coming === null) return begin()
      receive({ type: 'rollout-waits', rollout, apps: turns?.taken() ?? [] })
      coming.then(begin)
    },

    /** @param {Rollout | null} rollout  as it is now */
    look (rollout) { if (last && !needsTurn(rollout, last.rollout)) this.leave() },

    /** Another app may have the turn. */
    leave () {
      last?.over.resolve()
      last = null
    },

    /** @template {{ waitingFor?: string[] | null }} View @param {View | null} view of the running rollout @returns {View | null} with those that it waits for by now */
    shown: (view) => view?.waitingFor ? { ...view, waitingFor: turns?.taken() ?? [] } : view
  }
}
