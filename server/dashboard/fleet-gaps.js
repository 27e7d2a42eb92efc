import { lossEvent, showsLoss, showsUnwritten, spanOf } from './history-gaps.js'

/**
 * Where the history or the crashes of a fleet are incomplete: which hosts cannot write theirs now, and what some have lost.
 * @typedef {import('./history-gaps.js').Gap & { member: string }} MemberGap
 * @typedef {{ unwritten: { member: string, problem: string, since: string | null }[], lost: MemberGap[], isOfCrashes: boolean }} FleetGaps
 * @typedef {import('../fleet/app-fleet.js').AppFleet} Fleet
 */

/** Events of the fleet come over the network, and what is lost stays lost. */
const KEPT_MS = 60_000
const MAX_LOSSES = 20
/** @type {FleetGaps} */
export const NO_FLEET_GAPS = Object.freeze({ unwritten: [], lost: [], isOfCrashes: false })

/** @type {WeakMap<Fleet, Map<string, { at: number, coming: Promise<MemberGap[]> }>>} by the type of the event */
const KNOWN = new WeakMap()

/**
 * @param {Fleet} fleet
 * @param {{ member?: string, since?: string | number, until?: string | number, now: number, isOfCrashes?: boolean }} shown  what the page shows
 * @returns {Promise<FleetGaps>}
 */
export async function fleetGaps (fleet, { member: only, since, until, now, isOfCrashes = false }) {
  const span = spanOf({ since, until })
  const isMeant = (/** @type {{ member: string }} */ { member }) => only === undefined || member === only
  const lost = await knownLosses(fleet, lossEvent(isOfCrashes), now)
  return {
    isOfCrashes,
    unwritten: fleet.status().members
      .flatMap(({ member, unwritten }) => unwritten ? [{ member, ...unwritten }] : [])
      .filter((each) => isMeant(each) && showsUnwritten(span, each)),
    lost: lost.filter((gap) => isMeant(gap) && showsLoss(span, gap))
  }
}

/** @param {Fleet} fleet @param {string} type @param {number} now @returns {Promise<MemberGap[]>} newest first */
function knownLosses (fleet, type, now) {
  const ofFleet = KNOWN.get(fleet) ?? new Map()
  KNOWN.set(fleet, ofFleet)
  const known = ofFleet.get(type)
  if (known && now - known.at < KEPT_MS) return known.coming
  const coming = fleet.history({ types: [type], limit: MAX_LOSSES }).then(({ items }) => items.flatMap(toLoss), () => {
    // Where the fleet is out of reach the page says so itself, and the next page asks again.
    ofFleet.delete(type)
    return []
  })
  ofFleet.set(type, { at: now, coming })
  return coming
}

/** The detail comes from another member and may hold anything. @param {import('../fleet/feed.js').Item} item @returns {MemberGap[]} */
function toLoss ({ member, event: { at, detail } }) {
  const { since, lost, from, to } = Object(detail)
  const isTold = Number.isSafeInteger(lost) && lost > 0 && [at, from, to].every(isTime)
  return isTold ? [{ member, at, since: isTime(since) ? since : null, lost, from, to }] : []
}

/** @param {unknown} text */
function isTime (text) {
  return typeof text === 'string' && !Number.isNaN(Date.parse(text))
}
