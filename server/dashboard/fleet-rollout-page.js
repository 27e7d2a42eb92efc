import { fleetOf, rolloutOf } from '../api/fleet.js'
import { ID } from '../config/id.js'
import { DeckError } from '../errors.js'
import { momentsOf, supersededView, toFleetRollout, versionOf } from './fleet-rollout.js'

/**
 * The page of one rollout of the fleet: each host, step by step, and what happened when.
 * @typedef {import('../fleet/rollout.js').FleetRollout} FleetRollout
 * @typedef {{ deck: import('../api/fleet.js').FleetDeck, id: string, now: () => number, can?: import('./powers.js').Powers }} Asked
 */

/** The elements of the page that change, by id; each is the partial of the same name. */
const FRAGMENTS = Object.freeze(['fleet-rollout', 'fleet-moments'])

/** @param {Asked} asked @throws {DeckError} not-found, fleet-away, no-fleet */
export async function fleetRolloutModel ({ deck, id, now }) {
  if (!ID.test(id)) throw new DeckError('not-found', `Rollout ${JSON.stringify(id.slice(0, 40))} of the fleet does not exist`)
  const fleet = fleetOf(deck)
  return shownOf(await rolloutOf(fleet, Number(id)), { fleet, now })
}

/**
 * @param {Asked & { render: (name: string, model: object) => string }} asked
 * @returns {() => { id: string, html: string }[]} empty for a rollout that is over, as it does not change
 */
export function followFleetRollout ({ deck: { fleet }, id, now, can, render }) {
  let seen = ''
  /** @type {{ id: string, html: string }[]} */
  let shown = []
  return () => {
    const status = fleet?.status()
    if (!fleet || status?.rollout?.id !== Number(id)) return shown
    const version = [versionOf(status.rollout), ...status.members.map(({ rollout }) => rollout?.replaced)].join(' ')
    if (version !== seen) {
      const model = { can, ...shownOf(status.rollout, { fleet, now }) }
      shown = FRAGMENTS.map((name) => ({ id: name, html: render(`partials/${name}`, model) }))
      seen = version
    }
    return shown
  }
}

/** @param {FleetRollout} rollout @param {{ fleet: import('../fleet/app-fleet.js').AppFleet, now: () => number }} parts */
function shownOf (rollout, { fleet, now }) {
  const { nats, members, rollout: current } = fleet.status()
  const isCurrent = rollout.id === current?.id
  const view = toFleetRollout(rollout, { members: isCurrent ? members : [], isAway: !nats.isConnected })
  const { label, isOver } = supersededView(rollout)
  return {
    now: now(),
    rollout: isCurrent ? view : { ...view, stateView: { ...view.stateView, label, isOver }, controls: [] },
    moments: momentsOf(rollout),
    isOnItsOwn: true
  }
}
