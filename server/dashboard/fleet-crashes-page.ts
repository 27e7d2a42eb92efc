import { z } from 'zod'
import { crashFilters } from '../api/filters.ts'
import { fleetOf, type FleetDeck } from '../api/fleet.ts'
import { parseFields, textParam } from '../api/input.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { count, listText } from '../health.ts'
import { GROUP_STATES } from './crash-kinds.ts'
import { tabsOf, crashTexts } from './crashes-page.ts'
import { VIEWER } from './fleet-member-cache.ts'
import { fleetGaps, NO_FLEET_GAPS } from './fleet-gaps.ts'
import { urlOn } from './fleet-members.ts'
import { givenFilters, toShownProblem, urlOf } from './history-filters.ts'
import type { FleetGroup as Group } from '../fleet/crash-groups.ts'
import type { Member } from '../fleet/presence.ts'
import type { Asked } from './pages.ts'
import type { FleetCrashes } from '../fleet/crashes.ts'

/** The crashes of an app on all members of the fleet: a row for each fault, with the hosts that have it. */
/** default: `state` open */
type Filters = Partial<Record<'state' | 'q' | 'member', string>>
type KnownMember = Pick<Member, 'member' | 'isOwn' | 'url'>

const PATH = '/fleet/crashes'
const MAX_SHOWN = 100
/** Not more often, as all members are asked each time. */
const REFRESH_EVERY_MS = 10_000
const STATE = z.enum(['open', 'resolved', 'muted', 'all']).default('open').describe('open, resolved, muted or all')

export async function fleetCrashesModel (
  { deck, params, now }: { deck: FleetDeck, params: URLSearchParams, now: () => number }
) {
  try {
    const fleet = fleetOf(deck)
    const { members } = fleet.status()
    const { filters, state, q, member } = parseCrashFilters(params, now)
    const found = await fleet.crashes({ q, ...(state !== 'all' && { state }) }, VIEWER)
    const groups = found.items.filter((group) =>
      member === undefined || group.members.some((each) => each.member === member)
    )
    return { ...filterModel({ members, filters, now }), problem: null,
      gaps: await fleetGaps(fleet, { member, now: now(), isOfCrashes: true }), missing: missingText(found),
      cut: found.cut.length > 0
        ? `${listText(found.cut)} ${found.cut.length === 1 ? 'has' : 'have'} more crashes than are shown`
        : null, answered: `${found.answered} of ${count(found.asked, 'member')} answered`,
      groups: groups.slice(0, MAX_SHOWN).map((group) => toRow(group, members)),
      more: Math.max(0, groups.length - MAX_SHOWN) }
  } catch (error) {
    return { ...filterModel({ members: [], filters: givenFilters(params), now }), problem: toShownProblem(error),
      gaps: NO_FLEET_GAPS, missing: null, cut: null, answered: '', groups: [], more: 0 }
  }
}

/** All members are asked, so their answers are shown by a later rendering. */
export function followFleetCrashes (asked: Asked) {
  const { deck, now } = asked
  let newest: Awaited<ReturnType<typeof fleetCrashesModel>> | null = null
  let askedAt = now()
  let settledBefore = deck.fleet?.settledTimes() ?? 0
  let isAsking = false
  return () => {
    const settled = deck.fleet?.settledTimes() ?? 0
    if (!isAsking && (now() - askedAt >= REFRESH_EVERY_MS || settled !== settledBefore)) {
      isAsking = true
      askedAt = now()
      settledBefore = settled
      // The page already shows an error, or the next request will.
      fleetCrashesModel(asked).catch(() => null).then((model) => {
        newest = model ?? newest
        isAsking = false
      })
    }
    return newest
  }
}

/** @throws {import('../errors.ts').DeckError} invalid-query */
function parseCrashFilters (params: URLSearchParams, now: () => number) {
  const { texts: filters, values } = parseFields(
    z.object({ state: STATE, q: crashFilters(now).q, member: textParam('the name of a member', MEMBER_NAME) }),
    params
  )
  if (values.state === 'open') delete filters.state
  return { filters, ...values }
}

function filterModel (
  { members, filters, now }: { members: readonly KnownMember[], filters: Filters, now: () => number }
) {
  return { now: now(), filters, choices: { members: members.map(({ member }) => member) },
    tabs: tabsOf(filters, { counts: null, linkTo }),
    isNarrowed: filters.q !== undefined || filters.member !== undefined,
    links: { clear: linkTo(filters, { q: undefined, member: undefined }),
      everywhere: linkTo(filters, { state: 'all' }) }, canonicalUrl: linkTo(filters) }
}

function linkTo (filters: Filters, changes?: Record<string, string | undefined>) {
  return urlOf(PATH, { state: undefined, q: undefined, member: undefined, ...filters }, changes)
}

function missingText ({ silent, refused }: Pick<FleetCrashes, 'silent' | 'refused'>) {
  const names = [...silent, ...refused.map(({ member }) => member)]
  if (names.length === 0) return null
  return `Left out: ${listText(names)} ${silent.length === 0 ? 'cannot be read from here' : 'did not answer'}.`
}

function toRow (group: Group, known: readonly KnownMember[]) {
  const states = Object.keys(GROUP_STATES).map((state) => ({ state,
    number: group.members.filter((each) => each.state === state).length })
  ).filter(({ number }) => number > 0)
  const hosts = group.members.map((each) => ({ ...each,
    ...placeOf(each, known.find(({ member }) => member === each.member)) })
  )
  const nearest = hosts.find(({ member }) => known.some((each) => each.isOwn && each.member === member))
  const releases = [...new Set(group.members.map(({ lastRelease }) => lastRelease))]
  return { ...group, key: group.fingerprint.replace(':', '-'), ...crashTexts(group),
    newIn: !group.isNewInRelease
      ? null
      : releases.length === 1 && releases[0] !== null
      ? `New in ${releases[0]}`
      : 'New in its release',
    mixed: states.length > 1
      ? states.map(({ state, number }) => `${GROUP_STATES[state].label.toLowerCase()} on ${number}`).join(', ')
      : null,
    actions: [...(group.state === 'resolved' ? [] : [{ action: 'resolve', label: 'Resolve' }]),
      ...(group.state === 'muted' ? [] : [{ action: 'mute', label: 'Mute' }]),
      ...(group.state === 'open' ? [] : [{ action: 'reopen', label: 'Reopen' }])], hosts,
    url: (nearest ?? hosts.toSorted((one, other) => one.lastSeenAt > other.lastSeenAt ? -1 : 1)[0]).url }
}

/** The page of this crash on that host, or else the page of the host. */
function placeOf ({ member, id }: { member: string, id: number }, known?: KnownMember) {
  const url = urlOn(known, `/crashes/${id}`)
  return { url: url ?? `/fleet/members/${member}`, isElsewhere: url !== null && !known?.isOwn }
}
