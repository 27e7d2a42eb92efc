import { fleetOf } from '../api/fleet.js'
import { DeckError } from '../errors.js'
import { marksOf } from '../api/fleet-builds.js'
import { cachedMember, fetchMember } from './fleet-member-cache.js'
import { toMemberRow, usualVersionOf } from './fleet-members.js'
import { observationsOf } from './fleet-observations.js'
import { toFleetRollout } from './fleet-rollout.js'

/**
 * The page of one member of the fleet: what it reports, its turn in the rollout, and its workers, which it is asked for.
 * @typedef {{ deck: import('../api/fleet.js').FleetDeck, id: string, now: () => number, can?: import('./powers.js').Powers }} Asked  `id`: its name
 * @typedef {import('../fleet/app-fleet.js').FleetStatus} FleetStatus
 */

/** The elements of the page that change, by id; each is the partial of the same name. */
const FRAGMENTS = Object.freeze(['fleet-member', 'fleet-inside'])
/** The page waits no longer for the member; a later answer is shown live. */
const FIRST_ANSWER_MS = 1000

const ACCEPTS = Object.freeze({ nothing: 'see its reports', read: 'read its pages', operate: 'restart and scale it' })

/** @param {Asked} asked @throws {DeckError} not-found, no-fleet */
export async function fleetMemberModel ({ deck, id, now }) {
  const fleet = fleetOf(deck)
  const shown = shownOf(await fleet.look(), { fleet, id, now: now() })
  if (!shown) throw new DeckError('not-found', `No member of the fleet is called ${JSON.stringify(id.slice(0, 100))}`)
  return { ...shown, inside: shown.isOpen ? await fetchMember(fleet, id, now(), FIRST_ANSWER_MS) : null }
}

/**
 * @param {Asked & { render: (name: string, model: object) => string }} asked
 * @returns {() => { id: string, html: string }[]}
 */
export function followFleetMember ({ deck: { fleet }, id, now, can, render }) {
  return () => {
    const shown = fleet && shownOf(fleet.status(), { fleet, id, now: now() })
    if (!shown) return []
    const inside = shown.isOpen ? cachedMember(fleet, id, now()) : null
    return FRAGMENTS.map((name) => ({ id: name, html: render(`partials/${name}`, { can, ...shown, inside }) }))
  }
}

/** @param {FleetStatus} status @param {{ fleet: import('../fleet/app-fleet.js').AppFleet, id: string, now: number }} parts @returns null: no member has this name */
function shownOf ({ name, members, nats, rollout }, { fleet, id, now }) {
  const observations = observationsOf(fleet)
  observations.note(members, now)
  const found = members.find(({ member }) => member === id)
  if (!found) return null
  const row = toMemberRow({ ...found, mark: marksOf(members, rollout).get(id) ?? null }, {
    observations,
    isAway: !nats.isConnected,
    usualVersion: usualVersionOf(members),
    filters: {}
  })
  const turn = rollout && toFleetRollout(rollout, { members }).rows.find(({ member }) => member === id)
  const isOpen = !row.isOwn && !row.isSilent && found.accept !== 'nothing'
  return {
    now,
    name,
    server: nats.server,
    row,
    isOpen,
    takesOrders: isOpen && found.accept === 'operate',
    accepts: ACCEPTS[found.accept],
    isAbsent: rollout?.absent.includes(id) ?? false,
    rollout: rollout && { id: rollout.id, turn: turn ?? null }
  }
}
