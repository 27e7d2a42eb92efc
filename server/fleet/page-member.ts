import { fleetOf, type FleetDeck } from './api.ts'
import { DeckError } from '../errors.ts'
import { marksOf } from './api-builds.ts'
import { cachedMember, fetchMember, type Inside } from './page-member-cache.ts'
import { toMemberRow, usualVersionOf } from './page-members.ts'
import { figuresOf } from '../words/figures.ts'
import { observationsOf } from './page-observations.ts'
import { toFleetRollout } from './page-rollout-parts.ts'
import type { AppFleet, FleetStatus } from './app-fleet.ts'
import type { Powers } from '../dashboard/powers.ts'

/**
 * The page of one member of the fleet: what it reports, its turn in the rollout, and its workers, which it is asked
 * for.
 * `id`: its name
 */
type Asked = { deck: FleetDeck, id: string, now: () => number, can?: Powers }

/** The page waits no longer for the member; a later answer is shown live. */
const FIRST_ANSWER_MS = 1000

const ACCEPTS = Object.freeze({ nothing: 'see its reports', read: 'read its pages', operate: 'restart and scale it' })

/** @throws {DeckError} not-found, no-fleet */
export async function fleetMemberModel ({ deck, id, now }: Asked) {
  const fleet = fleetOf(deck)
  const shown = shownOf(await fleet.look(), { fleet, id, now: now() })
  if (!shown) throw new DeckError('not-found', `No member of the fleet is called ${JSON.stringify(id.slice(0, 100))}`)
  return withInside(shown, shown.isOpen ? await fetchMember(fleet, id, now(), FIRST_ANSWER_MS) : null)
}

export function followFleetMember ({ deck: { fleet }, id, now }: Asked) {
  return () => {
    const shown = fleet && shownOf(fleet.status(), { fleet, id, now: now() })
    return shown && withInside(shown, shown.isOpen ? cachedMember(fleet, id, now()) : null)
  }
}

/** Its workers tell later figures than its last report, and a page shows one of both. */
function withInside (shown: NonNullable<ReturnType<typeof shownOf>>, inside: Inside | null) {
  const figures = inside?.workers && figuresOf(inside.workers)
  const vitals = figures
    ? { requestsPerSecond: figures.requestsPerSecond, latencyP99Ms: figures.p99Ms }
    : shown.row.vitals
  return { ...shown, row: { ...shown.row, vitals }, inside }
}

/** Null: no member has this name */
function shownOf ({ name, members, nats, rollout }: FleetStatus,
  { fleet, id, now }: { fleet: AppFleet, id: string, now: number })
{
  const observations = observationsOf(fleet)
  observations.note(members, now)
  const found = members.find(({ member }) => member === id)
  if (!found) return null
  const row = toMemberRow({ ...found, mark: marksOf(members, rollout).get(id) ?? null }, { observations,
    isAway: !nats.isConnected, usualVersion: usualVersionOf(members), filters: {} })
  const turn = rollout && toFleetRollout(rollout, { members }).rows.find(({ member }) => member === id)
  const isOpen = !row.isOwn && !row.isSilent && found.accept !== 'nothing'
  return { now, name, server: nats.server, row, isOpen, takesOrders: isOpen && found.accept === 'operate',
    accepts: ACCEPTS[found.accept], isAbsent: rollout?.absent.includes(id) ?? false,
    rollout: rollout && { id: rollout.id, turn: turn ?? null } }
}
