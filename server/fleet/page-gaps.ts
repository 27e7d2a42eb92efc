import { lossEvent, showsLoss, showsUnwritten, spanOf, type Gap, type Gaps } from '../events/page-gaps.ts'
import type { AppFleet as Fleet } from './app-fleet.ts'
import type { Item } from './feed.ts'

/** Where the history or the crashes of several hosts are incomplete, as historyGaps() says it of this one. */

/** Events of the fleet come over the network, and what is lost stays lost. */
const KEPT_MS = 60_000
const MAX_LOSSES = 20

/** by the type of the event */
const KNOWN: WeakMap<Fleet, Map<string, { at: number, coming: Promise<Gap[]> }>> = new WeakMap()

/** `only`: the one member that the page is about */
export async function fleetGaps (fleet: Fleet,
  { only, since, until, now, isOfCrashes = false }: { only?: string, since?: string | number, until?: string | number,
    now: number, isOfCrashes?: boolean }): Promise<Gaps>
{
  const span = spanOf({ since, until })
  const isMeant = ({ member }: { member?: string }) => only === undefined || member === only
  const lost = await knownLosses(fleet, lossEvent(isOfCrashes), now)
  return { isOfCrashes,
    unwritten: fleet.status().members.flatMap(({ member, unwritten }) => unwritten ? [{ member, ...unwritten }] : [])
      .filter((each) => isMeant(each) && showsUnwritten(span, each)),
    lost: lost.filter((gap) => isMeant(gap) && showsLoss(span, gap)) }
}

/** @returns newest first */
function knownLosses (fleet: Fleet, type: string, now: number): Promise<Gap[]> {
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

/** The detail comes from another member and may hold anything. */
function toLoss ({ member, event: { at, detail } }: Item): Gap[] {
  const { since, lost, from, to } = Object(detail)
  const isTold = Number.isSafeInteger(lost) && lost > 0 && [at, from, to].every(isTime)
  return isTold ? [{ member, at, since: isTime(since) ? since : null, lost, from, to }] : []
}

function isTime (text: unknown) {
  return typeof text === 'string' && !Number.isNaN(Date.parse(text))
}
