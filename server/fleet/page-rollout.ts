import { fleetOf, rolloutOf, type FleetDeck } from './api.ts'
import { ID } from '../config/id.ts'
import { DeckError } from '../errors.ts'
import { momentsOf, supersededView, toFleetRollout, versionOf } from './page-rollout-parts.ts'
import type { FleetRollout } from './document.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { AppFleet } from './app-fleet.ts'

/** The page of one rollout of the fleet: each host, step by step, and what happened when. */
type Asked = { deck: FleetDeck, id: string, now: () => number, can?: Powers }

/** @throws {DeckError} not-found, fleet-away, no-fleet */
export async function fleetRolloutModel ({ deck, id, now }: Asked) {
  if (!ID.test(id))
    throw new DeckError('not-found', `Rollout ${JSON.stringify(id.slice(0, 40))} of the fleet does not exist`)
  const fleet = fleetOf(deck)
  return shownOf(await rolloutOf(fleet, Number(id)), { fleet, now })
}

/** A rollout that is over does not change. */
export function followFleetRollout ({ deck: { fleet }, id, now }: Asked) {
  let seen = ''
  return () => {
    const status = fleet?.status()
    if (!fleet || status?.rollout?.id !== Number(id)) return null
    const version = [versionOf(status.rollout), ...status.members.map(({ rollout }) => rollout?.replaced)].join(' ')
    if (version === seen) return null
    seen = version
    return shownOf(status.rollout, { fleet, now })
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
