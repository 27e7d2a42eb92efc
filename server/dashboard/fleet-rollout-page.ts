import { fleetOf, rolloutOf, type FleetDeck } from '../api/fleet.ts'
import { ID } from '../config/id.ts'
import { DeckError } from '../errors.ts'
import { momentsOf, supersededView, toFleetRollout, versionOf } from './fleet-rollout.ts'
import type { FleetRollout } from '../fleet/rollout.ts'
import type { Powers } from './powers.ts'
import type { AppFleet } from '../fleet/app-fleet.ts'

/** The page of one rollout of the fleet: each host, step by step, and what happened when. */
type Asked = { deck: FleetDeck, id: string, now: () => number, can?: Powers }

/** The elements of the page that change, by id; each is the partial of the same name. */
const FRAGMENTS = Object.freeze(['fleet-rollout', 'fleet-moments'])

/** @throws {DeckError} not-found, fleet-away, no-fleet */
export async function fleetRolloutModel ({ deck, id, now }: Asked) {
  if (!ID.test(id))
    throw new DeckError('not-found', `Rollout ${JSON.stringify(id.slice(0, 40))} of the fleet does not exist`)
  const fleet = fleetOf(deck)
  return shownOf(await rolloutOf(fleet, Number(id)), { fleet, now })
}

/** @returns empty for a rollout that is over, as it does not change */
export function followFleetRollout (
  { deck: { fleet }, id, now, can, render }: Asked & { render: (name: string, model: object) => string }
): () => { id: string, html: string }[] {
  let seen = ''
  let shown: { id: string, html: string }[] = []
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

function shownOf (rollout: FleetRollout, { fleet, now }: { fleet: AppFleet, now: () => number }) {
  const { nats, members, rollout: current } = fleet.status()
  const isCurrent = rollout.id === current?.id
  const view = toFleetRollout(rollout, { members: isCurrent ? members : [], isAway: !nats.isConnected })
  const { label, isOver } = supersededView(rollout)
  return { now: now(),
    rollout: isCurrent ? view : { ...view, stateView: { ...view.stateView, label, isOver }, controls: [] },
    moments: momentsOf(rollout), isOnItsOwn: true }
}
